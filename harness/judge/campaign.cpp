#include "harness/judge/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "harness/judge/clock_rules.h"
#include "harness/judge/leg_rules.h"
#include "harness/judge/pairs.h"

namespace warmleg::judge {
namespace {

using record::Code;
using record::Leg;
using record::MakeReason;
using record::Process;
using record::Reason;
using record::Result;
using record::Severity;
using record::State;
using record::Verdict;

// What this file and its neighbours derive; taken out first, so that judging twice changes nothing.
bool IsDerived(Code code) {
  static const std::set<Code> derived = {Code::ramping,
                                         Code::clock_low_under_load,
                                         Code::perf_level_changed,
                                         Code::power_cap_changed,
                                         Code::thermal_throttle,
                                         Code::hw_slowdown,
                                         Code::board_moved,
                                         Code::slow_process,
                                         Code::telemetry_suspect,
                                         Code::thermal_drift,
                                         Code::arms_ran_at_different_clocks,
                                         Code::page_cache_differs,
                                         Code::not_alone,
                                         Code::noisy,
                                         Code::clock_unverified,
                                         Code::clocks_not_enforced,
                                         Code::reference_tier_hits,
                                         Code::counter_identity,
                                         Code::times_inconsistent,
                                         Code::implausible_rate,
                                         Code::partner_left_out,
                                         Code::graph_mode_differs,
                                         Code::output_counts_differ,
                                         Code::all_pairs_differ,
                                         Code::no_valid_pair,
                                         Code::simulated_device,
                                         Code::made_up_weights};
  return derived.contains(code);
}

void Forget(Result& result) {
  const auto derived = [](const Reason& r) { return IsDerived(r.code); };
  std::erase_if(result.reasons, derived);
  std::erase_if(result.warnings, derived);
  for (Leg& leg : result.legs) {
    // A leg that was cold only because its clock climbed is warm until that is found again.
    if (record::Has(leg.reasons, Code::ramping)) {
      std::erase_if(leg.reasons, derived);
      if (!record::HasSeverity(leg.reasons, Severity::cold)) leg.state = State::warm;
    }
    std::erase_if(leg.reasons, derived);
  }
}

void Append(std::vector<Reason>& to, std::vector<Reason> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

const Process* FindProcess(const Result& result, int64_t index) {
  for (const Process& process : result.processes)
    if (process.index == index) return &process;
  return nullptr;
}

// Bandwidth of the slower of the sentinels beside the leg's pair.
std::optional<double> SentinelGbS(const Process* process, int64_t pair) {
  if (!process || !process->sentinel_s.bytes) return std::nullopt;
  std::optional<double> slowest;
  const auto& values = process->sentinel_s.values;
  for (const int64_t i : {pair, pair + 1})
    if (i < static_cast<int64_t>(values.size()) && values[static_cast<size_t>(i)])
      slowest = std::max(slowest.value_or(0), *values[static_cast<size_t>(i)]);
  return Ratio(*process->sentinel_s.bytes / 1e9, slowest);
}

// Clock reasons that do not bind are printed once a code, with the number of legs.
void NoteUnenforced(const std::map<Code, std::pair<Reason, int64_t>>& seen, Result& result) {
  for (const auto& [code, entry] : seen) {
    Reason reason = entry.first;
    reason.text += fmt::format(" ({} legs, not enforced)", entry.second);
    result.warnings.push_back(std::move(reason));
  }
}

void JudgeClocks(Result& result, const Policy& policy) {
  const ClockContext first = FirstOfCampaign(result);
  std::map<Code, std::pair<Reason, int64_t>> unenforced;
  for (Leg& leg : result.legs) {
    leg.clocks.verified = ClocksSeen(leg.clocks);
    if (Died(leg)) continue;
    ClockContext context = first;
    if (policy.on_device) context.sentinel_gb_s = SentinelGbS(FindProcess(result, leg.process), leg.pair);
    for (Reason& reason : ClockReasons(leg.clocks, context)) {
      if (policy.enforce_clocks) {
        if (reason.code == Code::ramping) leg.state = State::cold;
        leg.reasons.push_back(std::move(reason));
      } else if (reason.code != Code::clock_unverified) {
        reason.process = leg.process, reason.leg = leg.index;
        ++unenforced.emplace(reason.code, std::pair{reason, 0}).first->second.second;
      }
    }
  }
  NoteUnenforced(unenforced, result);
}

void JudgeLegs(Result& result, const Policy& policy) {
  for (Leg& leg : result.legs) {
    if (Died(leg)) continue;
    const Process* process = FindProcess(result, leg.process);
    const auto probe = process && process->read_gb_s ? process->read_gb_s : result.roof.read_gb_s;
    Append(leg.reasons, CheckCounters(leg.counters, leg.arm != policy.drafting_arm));
    Append(leg.reasons, CheckTimes(leg.counters, leg.times));
    Append(leg.reasons, CheckProviders(leg));
    // A simulated device has no memory to be faster than.
    if (!policy.simulated) Append(leg.reasons, CheckPlausible(leg, probe));
  }
}

// After every rule: valid, counted, rates.
void Settle(Result& result, const std::vector<Pair>& pairs) {
  for (Leg& leg : result.legs) {
    leg.valid = !record::HasSeverity(leg.reasons, Severity::invalid);
    leg.counted = false;
    leg.rates = leg.valid ? DeriveRates(leg.counters, leg.times) : record::Rates{};
  }
  for (const Pair& pair : pairs) {
    if (!pair.plain || !pair.drafting) continue;
    const auto good = [](const Leg& leg) { return leg.valid && leg.state == State::warm; };
    const bool both = good(*pair.plain) && good(*pair.drafting);
    const int64_t plain_tokens = pair.plain->counters.output_tokens * pair.drafting->repeats;
    const int64_t drafting_tokens = pair.drafting->counters.output_tokens * pair.plain->repeats;
    for (Leg* leg : {pair.plain, pair.drafting}) {
      leg->counted = both && plain_tokens == drafting_tokens;
      if (both && !leg->counted)
        leg->reasons.push_back(MakeReason(Code::output_counts_differ, pair.drafting->counters.output_tokens,
                                          pair.plain->counters.output_tokens));
      if (good(*leg) && !both) leg->reasons.push_back(MakeReason(Code::partner_left_out));
    }
  }
  // A leg whose partner never ran counts as little.
  for (const Pair& pair : pairs)
    for (Leg* leg : {pair.plain, pair.drafting})
      if (leg && (!pair.plain || !pair.drafting) && leg->valid && leg->state == State::warm)
        leg->reasons.push_back(MakeReason(Code::partner_left_out, nullptr, nullptr, "it did not run"));
}

// Seconds per round of one arm inside one process: about the same for every prompt, so its spread is noise.
void WarnNoisy(Result& result) {
  std::map<std::pair<int64_t, std::string>, std::vector<double>> times;
  for (const Leg& leg : result.legs)
    if (leg.counted)
      if (const auto t = Ratio(leg.times.decode_s, static_cast<double>(leg.counters.rounds)))
        times[{leg.process, leg.arm}].push_back(*t);
  for (const auto& [key, values] : times) {
    const auto spread = Ratio(StandardDeviation(values), Median(values));
    if (!spread || *spread <= limit::kNoise) continue;
    Reason reason = MakeReason(Code::noisy, *spread, limit::kNoise,
                               fmt::format("{} of process {}: sd {:.1f} % of the median over {} legs",
                                           key.second, key.first, 100 * *spread, values.size()));
    reason.process = key.first;
    result.warnings.push_back(std::move(reason));
  }
}

void WarnCampaign(Result& result, const Policy& policy) {
  Append(result.warnings, CampaignClockWarnings(result));
  WarnNoisy(result);
  for (const Process& process : result.processes) {
    if (!IsSlow(process, policy)) continue;
    Reason reason = MakeReason(Code::slow_process, *process.ratio_to_best, 1 - limit::kSlowProcess);
    reason.process = process.index;
    result.warnings.push_back(std::move(reason));
  }
  if (!result.speedup || !result.speedup->decode) return;
  const auto& decode = *result.speedup->decode;
  const auto ratio = Ratio(decode.all_pairs_value, decode.value);
  if (ratio && std::abs(*ratio - 1) > limit::kAllPairs)
    result.warnings.push_back(MakeReason(Code::all_pairs_differ, *decode.all_pairs_value, *decode.value));
}

// The arms must have run in one mode, or their ratio compares two things at once.
void CheckGraphMode(Result& result) {
  std::set<std::string> modes;
  for (const Leg& leg : result.legs)
    if (leg.counted && leg.graph_mode) modes.insert(*leg.graph_mode);
  if (modes.size() < 2) return;
  result.speedup.reset();
  result.reasons.push_back(MakeReason(Code::graph_mode_differs));
}

void CountReference(Result& result) {
  if (!result.reference.ids_hash) return;
  std::map<std::string, bool> identical;
  for (const Leg& leg : result.legs) {
    if (!leg.output_sha256) continue;
    const bool equal = !leg.divergence;
    const auto [it, fresh] = identical.emplace(leg.prompt, equal);
    if (!fresh) it->second = it->second && equal;
  }
  result.reference.prompts = static_cast<int64_t>(identical.size());
  result.reference.identical =
      std::count_if(identical.begin(), identical.end(), [](const auto& entry) { return entry.second; });
}

// Tokens that nobody stands for are not judged; the file says so.
void SetRules(Result& result) {
  result.reference.unknown.erase("rules");
  if (!MadeUp(result)) return;
  for (const Code code :
       {Code::structural_divergence, Code::near_tie_divergence, Code::state_leak, Code::degenerate_output})
    result.reference.unknown["rules"][std::string(record::Name(code))] = "not_applicable";
}

void SetRoof(Result& result) {
  std::vector<double> probes;
  for (const Process& process : result.processes)
    if (process.read_gb_s) probes.push_back(*process.read_gb_s);
  if (!probes.empty()) result.roof.read_gb_s = Median(probes);
}

void GiveVerdict(Result& result, const Policy& policy) {
  const auto counted = [](const Leg& leg) { return leg.counted; };
  const auto any_leg = [&](Code code) {
    return std::any_of(result.legs.begin(), result.legs.end(),
                       [&](const Leg& leg) { return record::Has(leg.reasons, code); });
  };
  if (policy.simulated) result.reasons.push_back(MakeReason(Code::simulated_device));
  if (result.workload.weights != "checkpoint") result.reasons.push_back(MakeReason(Code::made_up_weights));
  // A leak says that no output of this build can be trusted, whichever legs showed it.
  if (any_leg(Code::state_leak) && !record::Has(result.reasons, Code::state_leak))
    result.reasons.push_back(MakeReason(Code::state_leak));

  // Asked for no warm-up: legs are valid, cold, and give no warm rate; nothing is wrong with them.
  const bool cold_by_plan = policy.warmup_pairs == 0 && std::any_of(result.legs.begin(), result.legs.end(),
                                                                    [](const Leg& leg) { return leg.valid; });
  const bool some = std::any_of(result.legs.begin(), result.legs.end(), counted);
  if (!some && !cold_by_plan) result.reasons.push_back(MakeReason(Code::no_valid_pair));
  if (!policy.enforce_clocks) result.reasons.push_back(MakeReason(Code::clocks_not_enforced));
  const auto unseen = std::count_if(result.legs.begin(), result.legs.end(),
                                    [](const Leg& leg) { return leg.counted && !leg.clocks.verified; });
  if (policy.enforce_clocks && unseen > 0)
    result.reasons.push_back(
        MakeReason(Code::clock_unverified, unseen, 0, fmt::format("{} counted legs", unseen)));

  if (record::Has(result.reasons, Code::no_valid_pair) || record::Has(result.reasons, Code::state_leak))
    result.verdict = Verdict::invalid;
  else if (policy.simulated || MadeUp(result))
    result.verdict = Verdict::simulated;
  else if (!policy.enforce_clocks || unseen > 0 || !some || result.telemetry.lost)
    result.verdict = Verdict::unverified;
  else
    result.verdict = Verdict::verified;
}

}  // namespace

void Judge(Result& result, const Policy& policy) {
  Forget(result);
  const std::vector<Pair> pairs = Pairs(result, policy);
  SetRules(result);
  SetRoof(result);
  JudgeLegs(result, policy);
  JudgeSentinels(result, pairs, policy);
  JudgeClocks(result, policy);
  JudgeStateLeak(result);
  Settle(result, pairs);
  Summarise(result, pairs, policy);
  CheckGraphMode(result);
  CountReference(result);
  WarnCampaign(result, policy);
  GiveVerdict(result, policy);
}

bool MadeUp(const Result& result) {
  return result.workload.weights != "checkpoint" || record::Has(result.reasons, Code::made_up_accepted);
}

int ExitCode(const Result& result) {
  if (record::Has(result.reasons, Code::interrupted)) return 130;
  for (const Leg& leg : result.legs)
    if (record::Has(leg.reasons, Code::gpu_hang)) return 3;
  return result.verdict == Verdict::invalid ? 1 : 0;
}

std::optional<Code> StopReason(Result& result, const Policy& policy) {
  const auto codes = [&](const Pair& pair) {
    std::set<Code> found;
    for (const Leg* leg : {pair.plain, pair.drafting}) {
      if (!leg) continue;
      for (const Reason& reason : leg->reasons) {
        const bool host_crash = reason.code == Code::crashed && !policy.on_device;
        if (record::Info(reason.code).severity == Severity::invalid && reason.code != Code::board_moved &&
            !host_crash)
          found.insert(reason.code);
      }
    }
    return found;
  };
  std::vector<Pair> warm = Pairs(result, policy);
  std::erase_if(warm, [](const Pair& p) {
    const auto cold = [](const Leg* leg) { return !leg || leg->state == State::cold; };
    return cold(p.plain) && cold(p.drafting);
  });
  if (warm.size() < 2) return std::nullopt;
  const std::set<Code> before = codes(warm[warm.size() - 2]);
  for (const Code code : codes(warm.back()))
    if (before.contains(code)) return code;
  return std::nullopt;
}

std::vector<int64_t> PairsToReplace(Result& result, int64_t process, int64_t planned_pairs,
                                    const Policy& policy) {
  std::vector<int64_t> lost;
  int64_t left = limit::kReplacementPairs;
  const int64_t end = policy.warmup_pairs + planned_pairs;
  for (const Pair& pair : Pairs(result, policy)) {
    if (pair.process != process || pair.index < policy.warmup_pairs) continue;
    const bool kept = pair.plain && pair.drafting && pair.plain->counted && pair.drafting->counted;
    if (pair.index >= end)
      --left;
    else if (!kept)
      lost.push_back(pair.index);
  }
  // Earlier replacements took the first ones.
  const auto done = static_cast<size_t>(limit::kReplacementPairs - left);
  lost.erase(lost.begin(), lost.begin() + static_cast<std::ptrdiff_t>(std::min(done, lost.size())));
  if (static_cast<int64_t>(lost.size()) > std::max<int64_t>(left, 0))
    lost.resize(static_cast<size_t>(std::max<int64_t>(left, 0)));
  return lost;
}

}  // namespace warmleg::judge
