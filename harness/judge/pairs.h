// Parts of Judge, each testable on its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/judge/campaign.h"
#include "harness/judge/stats.h"

namespace warmleg::judge {

// Sentinels: process medians and ratios to the best; board_moved on the legs of each pair one of whose
// sentinels lies too far from the median (devices only).
void JudgeSentinels(record::Result& result, const std::vector<Pair>& pairs, const Policy& policy);

// The same prompt by the same arm in one process gave other ids or other accept counts. Sampled legs too: the
// seed and the prompt's index decide their random numbers.
void JudgeStateLeak(record::Result& result);

// Process index below 1 - 5 % of the best: its absolute rates are left out.
bool IsSlow(const record::Process& process, const Policy& policy);

// Summary, speed-ups, break-even, process rates: over counted legs.
void Summarise(record::Result& result, const std::vector<Pair>& pairs, const Policy& policy);

// Sums of one arm over some legs.
struct Sums {
  double prompt_tokens = 0, output_tokens = 0, committed = 0, rounds = 0, drafted = 0, accepted = 0;
  double prefill_s = 0, decode_s = 0, e2e_s = 0;
  void Add(const record::Leg& leg);
  std::optional<double> DecodeRate() const, PrefillRate() const, E2eRate() const, RoundTime() const;
};

}  // namespace warmleg::judge
