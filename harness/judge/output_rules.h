// Rules over the token ids of a leg. Ids are not in the result file, so these run while a campaign does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "harness/judge/policy.h"
#include "harness/record/leg.h"

namespace warmleg::judge {

// Where `ids` first differ from the plain reference, and the reference's top-1 minus top-2 logit there
// (`margins`, one a reference token). Outputs that end at different lengths differ where the shorter one
// ended, with token -1 for the end. After the first difference nothing is compared.
std::optional<record::Divergence> FindDivergence(std::span<const int32_t> reference,
                                                 std::span<const float> margins,
                                                 std::span<const int32_t> ids);

// structural_divergence at or above the gap of the device (an unknown gap too), else the warning
// near_tie_divergence.
record::Reason DivergenceReason(const record::Divergence& divergence, const Policy& policy);

struct Cycle {
  int64_t period = 0, tokens = 0;  // the longest stretch that repeats itself
};
// Degenerate: one stretch of period <= 16 has at least 64 tokens and half of the output. Tokens for which
// `ignored` is true (white space, table rules) are taken out before anything is counted.
std::optional<Cycle> FindDegenerate(std::span<const int32_t> ids,
                                    const std::function<bool(int32_t)>& ignored);

// True for token text that degenerate output does not count: white space and the marks that draw tables and
// rules.
bool IsLayout(std::string_view token_text);

struct OutputCheck {
  std::vector<record::Reason> reasons;   // of the leg
  std::vector<record::Reason> warnings;  // of the campaign: degenerate output where the scenario allows it
  std::optional<record::Divergence> divergence;
};
// All of the above for one leg; `reference` null: no ids to compare with (or not greedy). vocabulary: rows of
// the tokenizer, 0 when there is none.
struct ReferenceIds {
  std::span<const int32_t> ids;
  std::span<const float> margins;
};
OutputCheck CheckOutput(std::span<const int32_t> ids, const ReferenceIds* reference, int64_t vocabulary,
                        const std::function<bool(int32_t)>& ignored, const Policy& policy);

}  // namespace warmleg::judge
