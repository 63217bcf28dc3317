#include "harness/judge/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "harness/judge/leg_rules.h"

namespace warmleg::judge {

using record::Code;
using record::Leg;
using record::MakeReason;
using record::Process;
using record::Result;

std::vector<Pair> Pairs(Result& result, const Policy& policy) {
  std::vector<Pair> pairs;
  for (Leg& leg : result.legs) {
    auto it = std::find_if(pairs.begin(), pairs.end(),
                           [&](const Pair& p) { return p.process == leg.process && p.index == leg.pair; });
    if (it == pairs.end()) it = pairs.insert(pairs.end(), Pair{.process = leg.process, .index = leg.pair});
    if (leg.arm == policy.drafting_arm)
      it->drafting = &leg;
    else
      it->plain = &leg;
  }
  return pairs;
}

bool IsSlow(const Process& process, const Policy& policy) {
  return policy.on_device && process.ratio_to_best && *process.ratio_to_best < 1 - limit::kSlowProcess;
}

void JudgeSentinels(Result& result, const std::vector<Pair>& pairs, const Policy& policy) {
  std::optional<double> best;
  for (Process& process : result.processes) {
    std::vector<double> seen;
    for (const auto& value : process.sentinel_s.values)
      if (value) seen.push_back(*value);
    process.sentinel_s.median = Median(seen);
    if (process.sentinel_s.median)
      best = std::min(best.value_or(*process.sentinel_s.median), *process.sentinel_s.median);
  }
  for (Process& process : result.processes) process.ratio_to_best = Ratio(best, process.sentinel_s.median);
  if (!policy.on_device) return;

  for (const Pair& pair : pairs) {
    const auto process = std::find_if(result.processes.begin(), result.processes.end(),
                                      [&](const Process& p) { return p.index == pair.process; });
    if (process == result.processes.end() || !process->sentinel_s.median) continue;
    const double median = *process->sentinel_s.median;
    const auto& values = process->sentinel_s.values;
    for (const int64_t beside : {pair.index, pair.index + 1}) {
      if (beside >= static_cast<int64_t>(values.size()) || !values[static_cast<size_t>(beside)]) continue;
      const double off = *values[static_cast<size_t>(beside)] / median - 1;
      if (std::abs(off) <= limit::kBoardMoved) continue;
      for (Leg* leg : {pair.plain, pair.drafting})
        if (leg)
          leg->reasons.push_back(MakeReason(Code::board_moved, off, limit::kBoardMoved,
                                            fmt::format("sentinel {:+.1f} %", 100 * off)));
      break;
    }
  }
}

void JudgeStateLeak(Result& result) {
  if (MadeUp(result)) return;
  // Counts are compared a repeat, crosswise so that they stay whole.
  const auto same = [](const Leg& a, const Leg& b) {
    return a.output_sha256 == b.output_sha256 &&
           a.counters.rounds * b.repeats == b.counters.rounds * a.repeats &&
           a.counters.accepted * b.repeats == b.counters.accepted * a.repeats;
  };
  std::map<std::tuple<int64_t, std::string, std::string>, std::vector<Leg*>> groups;
  for (Leg& leg : result.legs)
    if (leg.output_sha256) groups[{leg.process, leg.arm, leg.prompt}].push_back(&leg);
  for (const auto& [key, legs] : groups) {
    const Leg& first = *legs.front();
    if (std::all_of(legs.begin(), legs.end(), [&](const Leg* leg) { return same(*leg, first); })) continue;
    for (Leg* leg : legs)
      if (!record::Has(leg->reasons, Code::state_leak))
        leg->reasons.push_back(MakeReason(Code::state_leak, nullptr, nullptr, "prompt " + leg->prompt));
  }
}

}  // namespace warmleg::judge
