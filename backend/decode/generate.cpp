#include "backend/decode/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "backend/decode/chain.h"
#include "backend/decode/steps.h"
#include "backend/vt/check.h"
#include "backend/vt/error.h"

namespace warmleg::decode {

namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the telemetry samples

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool IsStop(const Options& options, const model::TargetConfig& config, int32_t token) {
  return !options.ignore_eos &&
         std::find(config.stop_ids.begin(), config.stop_ids.end(), token) != config.stop_ids.end();
}

}  // namespace

Counters& Counters::operator+=(const Counters& o) {
  rounds += o.rounds;
  drafted += o.drafted;
  accepted += o.accepted;
  bonus += o.bonus;
  committed += o.committed;
  stop_trimmed += o.stop_trimmed;
  budget_trimmed += o.budget_trimmed;
  prefill_made += o.prefill_made;
  output_tokens += o.output_tokens;
  for (size_t i = 0; i < accepted_at.size(); ++i) {
    rounds_with_accepted[i] += o.rounds_with_accepted[i];
    accepted_at[i] += o.accepted_at[i];
  }
  return *this;
}

struct Session::Impl {
  Impl(const model::TargetWeights& target_weights, const model::DraftWeights* draft_weights, int64_t capacity)
      : target(target_weights),
        draft(draft_weights),
        chain(target_weights, draft_weights, capacity),
        steps(chain) {}

  const model::TargetWeights& target;
  const model::DraftWeights* draft;
  Chain chain;
  Steps steps;

  void Check(std::span<const int32_t> prompt, const Options& options, bool drafting) const;
  Generation Generate(std::span<const int32_t> prompt, const Options& options, int block_size);
  void PlainSteps(const Options& options, Generation& g);
  void Rounds(const Options& options, int block_size, Generation& g);
  void Count(const StepResult& step, int width, int64_t remaining, Generation& g) const;
};

namespace {

void CheckSampling(const Sampling& s, int64_t vocab) {
  const bool greedy = s.temperature == 0;
  if (!greedy && !(s.temperature >= kMinTemperature && s.temperature <= kMaxTemperature)) {
    throw vt::InputError(fmt::format("temperature is {}, it must be 0 (greedy) or in {}..{}", s.temperature,
                                     kMinTemperature, kMaxTemperature));
  }
  if (s.top_k < 0) throw vt::InputError(fmt::format("top_k is {}, it must not be negative", s.top_k));
  if (!(s.top_p >= 0 && s.top_p <= 1)) {
    throw vt::InputError(fmt::format("top_p is {}, it must be in 0..1", s.top_p));
  }
  if (!greedy && vocab > vt::kMaxSampledVocabulary) {
    throw vt::InputError(
        fmt::format("the target's vocabulary of {} is too large for temperature {} (at most {})", vocab,
                    s.temperature, vt::kMaxSampledVocabulary));
  }
}

}  // namespace

void CheckRequest(const model::TargetConfig& target, const model::DraftConfig* draft,
                  std::span<const int32_t> prompt, const Options& options) {
  const auto length = static_cast<int64_t>(prompt.size());
  if (prompt.empty()) throw vt::InputError("the prompt is empty: decoding needs at least one token");
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] < 0 || prompt[i] >= target.vocab) {
      throw vt::InputError(fmt::format("prompt id {} at index {} is outside the target's vocabulary of {}",
                                       prompt[i], i, target.vocab));
    }
  }
  if (options.max_new_tokens < 0) {
    throw vt::InputError(
        fmt::format("max_new_tokens is {}, it must not be negative", options.max_new_tokens));
  }
  CheckSampling(options.sampling, target.vocab);
  const auto fits = [&](const char* whose, int64_t limit) {
    if (options.max_new_tokens <= limit - length) return;
    throw vt::InputError(
        fmt::format("prompt of {} + max_new_tokens {} exceeds the {} max_position_embeddings {}", length,
                    options.max_new_tokens, whose, limit));
  };
  fits("target's", target.max_positions);
  if (draft == nullptr) return;
  if (draft->max_positions > 0) fits("draft's", draft->max_positions);
  const int64_t own = std::min<int64_t>(draft->block_size, vt::kMaxRows);
  if (options.block_size < 0 || options.block_size > own) {
    throw vt::InputError(fmt::format("block_size {} is not in 1..{} (the draft's block_size {}, at most {})",
                                     options.block_size, own, draft->block_size, vt::kMaxRows));
  }
}

void Session::Impl::Check(std::span<const int32_t> prompt, const Options& options, bool drafting) const {
  CheckRequest(target.config, drafting ? &draft->config : nullptr, prompt, options);
  const auto length = static_cast<int64_t>(prompt.size());
  if (length + options.max_new_tokens > chain.capacity()) {
    throw vt::InputError(fmt::format("prompt of {} + max_new_tokens {} exceeds the session's capacity {}",
                                     length, options.max_new_tokens, chain.capacity()));
  }
}

// The new tokens of a step go to the output; the cuts are attributed as docs/measuring.md defines them.
void Session::Impl::Count(const StepResult& step, int width, int64_t remaining, Generation& g) const {
  Counters& n = g.counters;
  const int64_t made = step.accepted + 1;
  const auto emitted = static_cast<int64_t>(step.tokens.size());
  const int64_t within = std::min(made, remaining);
  n.rounds += 1;
  n.bonus += 1;
  n.drafted += width - 1;
  n.accepted += step.accepted;
  n.committed += emitted;
  n.budget_trimmed += made - within;
  n.stop_trimmed += within - emitted;
  if (width > 1) {
    n.rounds_with_accepted[static_cast<size_t>(step.accepted)] += 1;
    for (int j = 0; j < step.accepted; ++j) n.accepted_at[static_cast<size_t>(j)] += 1;
  }
  g.output_ids.insert(g.output_ids.end(), step.tokens.begin(), step.tokens.end());
}

void Session::Impl::PlainSteps(const Options& options, Generation& g) {
  while (static_cast<int64_t>(g.output_ids.size()) < options.max_new_tokens) {
    if (IsStop(options, target.config, g.output_ids.back())) return;
    if (options.interrupted && options.interrupted()) throw Interrupted();
    const int64_t remaining = options.max_new_tokens - static_cast<int64_t>(g.output_ids.size());
    const StepResult step = steps.Plain();
    if (options.record_margins) g.margins.push_back(chain.ReadMargin());
    Count(step, 1, remaining, g);
  }
}

void Session::Impl::Rounds(const Options& options, int block_size, Generation& g) {
  vt::Backend& backend = chain.backend();
  const auto length = static_cast<int64_t>(g.prompt_ids.size());
  vt::Queue& queue = chain.queue();
  Clock::time_point host_from = Clock::now();
  while (static_cast<int64_t>(g.output_ids.size()) < options.max_new_tokens) {
    if (IsStop(options, target.config, g.output_ids.back())) return;
    if (options.interrupted && options.interrupted()) throw Interrupted();
    const int64_t remaining = options.max_new_tokens - static_cast<int64_t>(g.output_ids.size());
    const int width = static_cast<int>(std::min<int64_t>(block_size, remaining + 1));
    Round round;
    round.anchor = g.output_ids.back();
    round.position = length + static_cast<int64_t>(g.output_ids.size()) - 1;

    g.times.host_s += Seconds(host_from, Clock::now());
    const auto round_index = static_cast<int64_t>(g.rounds.size());
    StepResult step =
        options.redraft
            ? steps.RoundRedrafted(width, [&](auto drafted) { options.redraft(round_index, drafted); })
            : steps.Round(width);
    host_from = Clock::now();

    g.times.draft_s += backend.StampSeconds(queue, kRoundStart, kDrafted);
    g.times.select_s += backend.StampSeconds(queue, kDrafted, kSelected);
    g.times.verify_s += backend.StampSeconds(queue, kSelected, kVerified);
    g.times.commit_s += backend.StampSeconds(queue, kVerified, kCommitted);
    round.accepted = step.accepted;
    round.emitted = static_cast<int>(step.tokens.size());
    Count(step, width, remaining, g);
    round.drafted = std::move(step.drafted);
    g.rounds.push_back(std::move(round));
  }
  g.times.host_s += Seconds(host_from, Clock::now());
}

Generation Session::Impl::Generate(std::span<const int32_t> prompt, const Options& options, int block_size) {
  const bool drafting = block_size > 1;
  const auto length = static_cast<int64_t>(prompt.size());
  Generation g;
  g.prompt_ids.assign(prompt.begin(), prompt.end());
  chain.Begin(length + options.max_new_tokens,
              options.ignore_eos ? std::span<const int32_t>() : std::span(target.config.stop_ids),
              options.sampling);
  chain.backend().Synchronize(chain.queue());

  const Clock::time_point begin = Clock::now();
  const int32_t first = chain.Prefill(prompt, options.precision, drafting);
  chain.backend().Synchronize(chain.queue());
  const Clock::time_point prefilled = Clock::now();
  g.times.prefill_s = Seconds(begin, prefilled);
  g.times.ttft_s = g.times.prefill_s;  // the first token is on the host when Prefill returns
  if (options.first_logits > 0) chain.FirstLogits(options.first_logits, &g.first_ids, &g.first_logits);
  if (options.record_margins && options.max_new_tokens > 0) g.margins.push_back(chain.ReadMargin());

  const Clock::time_point decode_begin = Clock::now();
  if (options.max_new_tokens > 0) {
    g.output_ids.push_back(first);
    g.counters.prefill_made = 1;
    if (drafting) {
      Rounds(options, block_size, g);
    } else {
      PlainSteps(options, g);
    }
    chain.backend().Synchronize(chain.queue());
  }
  Times& t = g.times;
  t.decode_s = Seconds(decode_begin, Clock::now());
  t.e2e_s =
      t.prefill_s + t.decode_s;  // what lies between (first_logits, margins) is not part of a measured leg
  if (drafting) t.unaccounted_s = t.decode_s - (t.draft_s + t.select_s + t.verify_s + t.commit_s + t.host_s);
  g.graph = steps.graphs() && !options.redraft;
  g.graph_refusal = steps.refusal();
  g.graph_replay_mismatch = steps.replay_mismatch();
  g.counters.output_tokens = static_cast<int64_t>(g.output_ids.size());
  g.finish = !g.output_ids.empty() && IsStop(options, target.config, g.output_ids.back()) ? Finish::stop
                                                                                          : Finish::length;
  return g;
}

Session::Session(const model::TargetWeights& target, const model::DraftWeights* draft, int64_t capacity)
    : impl_(std::make_unique<Impl>(target, draft, capacity)) {}

Session::~Session() = default;

Generation Session::Plain(std::span<const int32_t> prompt, const Options& options) {
  impl_->Check(prompt, options, false);
  return impl_->Generate(prompt, options, 1);
}

Generation Session::DFlash2(std::span<const int32_t> prompt, const Options& options) {
  if (impl_->draft == nullptr) throw vt::InputError("DFlash2 decoding needs a draft checkpoint");
  impl_->Check(prompt, options, true);
  const int64_t own = impl_->draft->config.block_size;
  return impl_->Generate(prompt, options,
                         options.block_size == 0 ? static_cast<int>(own) : options.block_size);
}

Chain& Session::chain() { return impl_->chain; }

}  // namespace warmleg::decode
