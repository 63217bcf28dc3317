#include "backend/decode/sentinel.h"

#include <algorithm>
#include <chrono>

namespace warmleg::decode {

namespace {
constexpr int64_t kProbeSteps = 8;
constexpr int64_t kMaxSteps = 4096;  // bounds the sentinel's KV cache
}  // namespace

Sentinel::Sentinel(const model::TargetWeights& target, std::span<const int32_t> prompt, int64_t steps)
    : steps_(steps),
      prompt_tokens_(static_cast<int64_t>(prompt.size())),
      chain_(target, nullptr, prompt_tokens_ + steps + 1),
      step_(chain_) {
  chain_.Begin(prompt_tokens_ + steps + 1, {});  // no stop token: every step runs
  chain_.Prefill(prompt, vt::Precision::exact, false);
  chain_.Save();
  chain_.backend().Synchronize(chain_.queue());
}

double Sentinel::Run() {
  chain_.Restore();
  tokens_.clear();
  chain_.backend().Synchronize(chain_.queue());
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < steps_; ++i) {
    // a capture of the first step saves the very state that was just restored
    tokens_.push_back(step_.Plain().tokens.front());
  }
  chain_.backend().Synchronize(chain_.queue());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

uint64_t Sentinel::bytes() const {
  uint64_t sum = 0;
  for (int64_t i = 0; i < steps_; ++i) sum += chain_.target().StepBytes(prompt_tokens_ + i + 1);
  return sum;
}

int64_t StepsForSeconds(const model::TargetWeights& target, std::span<const int32_t> prompt, double seconds) {
  Sentinel probe(target, prompt, kProbeSteps);
  probe.Run();  // first use of every kernel
  const double step_s = std::max(probe.Run() / kProbeSteps, 1e-9);
  return std::clamp(static_cast<int64_t>(seconds / step_s), int64_t{1}, kMaxSteps);
}

}  // namespace warmleg::decode
