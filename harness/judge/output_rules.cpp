#include "harness/judge/output_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace warmleg::judge {

using record::Code;
using record::Divergence;
using record::MakeReason;

std::optional<Divergence> FindDivergence(std::span<const int32_t> reference, std::span<const float> margins,
                                         std::span<const int32_t> ids) {
  const auto [r, i] = std::mismatch(reference.begin(), reference.end(), ids.begin(), ids.end());
  if (r == reference.end() && i == ids.end()) return std::nullopt;
  Divergence d;
  d.index = r - reference.begin();
  d.reference_token = r == reference.end() ? -1 : *r;
  d.token = i == ids.end() ? -1 : *i;
  if (static_cast<size_t>(d.index) < margins.size()) d.gap = margins[static_cast<size_t>(d.index)];
  return d;
}

record::Reason DivergenceReason(const Divergence& d, const Policy& policy) {
  const double widest = policy.on_device ? limit::kGapDevice : limit::kGapHost;
  const bool tie = d.gap && *d.gap < widest;
  const std::string gap = d.gap ? fmt::format("{:.4f}", *d.gap) : "unknown";
  record::Json value = nullptr;
  if (d.gap) value = *d.gap;
  return MakeReason(
      tie ? Code::near_tie_divergence : Code::structural_divergence, value, widest,
      fmt::format("index {}, token {} instead of {}, gap {}", d.index, d.token, d.reference_token, gap));
}

std::optional<Cycle> FindDegenerate(std::span<const int32_t> ids,
                                    const std::function<bool(int32_t)>& ignored) {
  std::vector<int32_t> counted;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(counted),
               [&](int32_t id) { return !ignored || !ignored(id); });
  const auto n = static_cast<int64_t>(counted.size());
  Cycle best;
  for (int64_t period = 1; period <= limit::kCyclePeriod; ++period) {
    int64_t repeated = 0;  // tokens in a row that equal the one a period before
    for (int64_t i = period; i < n; ++i) {
      repeated =
          counted[static_cast<size_t>(i)] == counted[static_cast<size_t>(i - period)] ? repeated + 1 : 0;
      if (repeated > 0 && repeated + period > best.tokens) best = {period, repeated + period};
    }
  }
  if (best.tokens < limit::kCycleTokens || 2 * best.tokens < n) return std::nullopt;
  return best;
}

bool IsLayout(std::string_view token_text) {
  constexpr std::string_view layout = " \t\r\n|-=_+:";
  // A token without text (a special token) is output like any other.
  return !token_text.empty() && token_text.find_first_not_of(layout) == std::string_view::npos;
}

OutputCheck CheckOutput(std::span<const int32_t> ids, const ReferenceIds* reference, int64_t vocabulary,
                        const std::function<bool(int32_t)>& ignored, const Policy& policy) {
  OutputCheck out;
  if (reference) out.divergence = FindDivergence(reference->ids, reference->margins, ids);
  if (out.divergence) out.reasons.push_back(DivergenceReason(*out.divergence, policy));
  const auto outside =
      std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= vocabulary; });
  if (vocabulary > 0 && outside != ids.end())
    out.reasons.push_back(MakeReason(Code::token_outside_vocabulary, *outside, vocabulary));
  if (const auto cycle = FindDegenerate(ids, ignored)) {
    auto reason = MakeReason(Code::degenerate_output, cycle->tokens, limit::kCycleTokens,
                             fmt::format("{} tokens of period {}", cycle->tokens, cycle->period));
    (policy.allow_degenerate ? out.warnings : out.reasons).push_back(std::move(reason));
  }
  return out;
}

}  // namespace warmleg::judge
