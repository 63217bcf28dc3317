#include "harness/judge/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "harness/judge/fingerprint.h"
#include "harness/judge/leg_rules.h"
#include "harness/judge/pairs.h"
#include "harness/judge/stats.h"
#include "harness/record/find_metric.h"
#include "harness/record/json.h"

namespace warmleg::judge {
namespace {

using record::Code;
using record::Leg;
using record::Result;

// The rule of the judge's `counted`, from the fields every file has.
bool Counted(const Leg& leg) {
  return leg.valid && leg.state == record::State::warm && !record::Has(leg.reasons, Code::partner_left_out) &&
         !record::Has(leg.reasons, Code::output_counts_differ);
}

// Tokens and seconds of one leg in one phase.
struct Work {
  double tokens = 0, seconds = 0;
};

Work Decode(const Leg& leg) {
  return {static_cast<double>(leg.counters.committed), leg.times.decode_s.value_or(0)};
}

// prompt_tokens is younger than the rates; a file without it gives the tokens by its rate.
Work Prefill(const Leg& leg) {
  const double seconds = leg.times.prefill_s.value_or(0);
  const double tokens = leg.counters.prompt_tokens > 0 ? static_cast<double>(leg.counters.prompt_tokens)
                                                       : leg.rates.prefill_tok_s.value_or(0) * seconds;
  return {tokens, seconds};
}

Work E2e(const Leg& leg) {
  return {static_cast<double>(leg.counters.output_tokens), leg.times.e2e_s.value_or(0)};
}

std::vector<ProcessRate> Rates(const std::vector<const Leg*>& legs, Work (*work)(const Leg&),
                               const std::function<bool(const Leg&)>& of) {
  std::map<int64_t, std::pair<Work, ProcessRate>> sums;
  for (const Leg* leg : legs) {
    if (!of(*leg)) continue;
    const Work w = work(*leg);
    if (!(w.tokens > 0) || !(w.seconds > 0)) continue;
    auto& [sum, rate] = sums[leg->process];
    sum.tokens += w.tokens, sum.seconds += w.seconds;
    rate.legs.push_back(w.tokens / w.seconds);
  }
  std::vector<ProcessRate> out;
  for (auto& [process, entry] : sums) {
    entry.second.process = process;
    entry.second.value = entry.first.tokens / entry.first.seconds;
    out.push_back(std::move(entry.second));
  }
  return out;
}

std::vector<double> ValuesOf(const std::vector<ProcessRate>& rates) {
  std::vector<double> values;
  for (const ProcessRate& rate : rates) values.push_back(rate.value);
  return values;
}

void SetEndpoint(Measured& out, const Result& result, const std::string& name, const std::string& arm,
                 const std::string& metric, std::vector<ProcessRate> rates) {
  Endpoint& endpoint = out.endpoints[name];
  endpoint.processes = std::move(rates);
  if (const record::Metric* m = record::FindMetric(result, arm, metric)) {
    if (!m->unit.empty()) endpoint.unit = m->unit;
    if (!m->better.empty()) endpoint.better = m->better;
  }
}

void SetEndpoints(Measured& out, const Result& result, const std::vector<const Leg*>& legs) {
  const auto arm_is = [](const std::string& arm) { return [arm](const Leg& leg) { return leg.arm == arm; }; };
  for (const std::string& arm : {std::string("plain"), out.drafting_arm}) {
    SetEndpoint(out, result, arm + " decode", arm, "decode_tok_s", Rates(legs, Decode, arm_is(arm)));
    const auto shown = [&](const char* metric, Work (*work)(const Leg&)) {
      out.exploratory[arm + "." + metric].processes = ValuesOf(Rates(legs, work, arm_is(arm)));
    };
    shown("prefill_tok_s", Prefill);
    shown("e2e_tok_s", E2e);
  }
  SetEndpoint(out, result, "prefill", "plain", "prefill_tok_s",
              Rates(legs, Prefill, [](const Leg&) { return true; }));
}

void SetExploratory(Measured& out, const Result& result) {
  for (const auto& [arm, metrics] : result.summary)
    for (const auto& [name, metric] : metrics) {
      if (name == "decode_tok_s") continue;  // a gate endpoint
      Shown& shown = out.exploratory[arm + "." + name];
      shown.unit = metric.unit, shown.better = metric.better, shown.value = metric.value;
    }
  std::erase_if(out.exploratory, [](const auto& e) { return e.second.unit.empty(); });
  const auto speedup = [&](const std::string& name, const record::Speedup& s) {
    out.exploratory["speedup." + name] = {s.unit, s.better, s.value, s.process_ratios};
  };
  if (!result.speedup) return;
  if (result.speedup->decode) speedup("decode", *result.speedup->decode);
  if (result.speedup->prefill) speedup("prefill", *result.speedup->prefill);
  if (result.speedup->e2e) speedup("e2e", *result.speedup->e2e);
  for (const auto& [name, s] : result.speedup->by_class) speedup("decode." + name, s);
}

// One stable move: the best split into two levels of at least 3 legs, further apart than 2 % and than three
// standard deviations inside the levels. Seconds per round, because they hardly depend on the prompt.
std::optional<LevelShift> FindShift(const std::vector<double>& round_s) {
  constexpr size_t kLeast = 3;
  std::optional<LevelShift> best;
  for (size_t at = kLeast; at + kLeast <= round_s.size(); ++at) {
    const std::span<const double> before(round_s.data(), at);
    const std::span<const double> after(round_s.data() + at, round_s.size() - at);
    const double ratio = *Median(after) / *Median(before);
    const double spread = std::max(*StandardDeviation(before), *StandardDeviation(after)) / *Median(before);
    if (std::abs(ratio - 1) <= std::max(limit::kBoardMoved, 3 * spread)) continue;
    if (best && std::abs(std::log(ratio)) <= std::abs(std::log(best->ratio))) continue;
    best = LevelShift{.process = 0, .arm = {}, .after_leg = static_cast<int64_t>(at), .ratio = ratio};
  }
  return best;
}

void SetLevelShifts(Measured& out, const std::vector<const Leg*>& legs) {
  std::map<std::pair<int64_t, std::string>, std::vector<double>> round_s;
  for (const Leg* leg : legs)
    if (leg->counters.rounds > 0 && leg->times.decode_s.value_or(0) > 0)
      round_s[{leg->process, leg->arm}].push_back(*leg->times.decode_s /
                                                  static_cast<double>(leg->counters.rounds));
  for (const auto& [key, values] : round_s)
    if (auto shift = FindShift(values)) {
      shift->process = key.first, shift->arm = key.second;
      out.level_shifts.push_back(*shift);
    }
}

void SetClocks(Measured& out, const std::vector<const Leg*>& legs) {
  std::map<std::string, std::vector<double>> sclk;
  std::map<std::string, std::vector<double>> mclk;
  for (const Leg* leg : legs) {
    if (leg->clocks.sclk_mhz.p50) sclk[leg->arm].push_back(*leg->clocks.sclk_mhz.p50);
    if (leg->clocks.mclk_mhz.p50) mclk[leg->arm].push_back(*leg->clocks.mclk_mhz.p50);
  }
  for (const auto& [arm, values] : sclk) out.sclk_mhz[arm] = *Median(values);
  for (const auto& [arm, values] : mclk) out.mclk_mhz[arm] = *Median(values);
}

void SetProviders(Measured& out, const std::vector<const Leg*>& legs) {
  std::map<std::array<std::string, 3>, ProviderShare> shares;
  for (const Leg* leg : legs)
    for (const record::Provider& p : leg->providers) {
      ProviderShare& share = shares[{leg->arm, p.op, p.provider}];
      share.arm = leg->arm, share.op = p.op, share.provider = p.provider;
      share.calls += p.calls, share.fallbacks += p.fallbacks;
    }
  for (auto& [key, share] : shares) out.providers.push_back(std::move(share));
}

void CountLegs(Measured& out, const Result& result) {
  std::set<std::string> codes;
  for (const Leg& leg : result.legs) {
    const char* kind = Counted(leg)                       ? "counted"
                       : !leg.valid                       ? "invalid"
                       : leg.state == record::State::cold ? "cold"
                                                          : "left out";
    ++out.legs[kind];
    if (leg.valid) continue;
    for (const record::Reason& reason : leg.reasons)
      if (record::Info(reason.code).severity == record::Severity::invalid)
        codes.insert(std::string(record::Name(reason.code)));
  }
  out.left_out_for.assign(codes.begin(), codes.end());
}

std::string DraftingArm(const Result& result) {
  for (const Leg& leg : result.legs)
    if (leg.arm != "plain") return leg.arm;
  for (const auto& [arm, metrics] : result.summary)
    if (arm != "plain") return arm;
  return "dflash2";
}

}  // namespace

std::vector<std::string> EndpointNames(const std::string& drafting_arm) {
  return {"plain decode", drafting_arm + " decode", "prefill"};
}

std::set<int64_t> SlowProcesses(const Result& result) {
  std::set<int64_t> slow;
  for (const record::Reason& reason : result.warnings)
    if (reason.code == Code::slow_process && reason.process) slow.insert(*reason.process);
  return slow;
}

Measured Measure(const Result& result) {
  Measured out;
  out.name = record::ScenarioText(result, "name", "");
  out.created = result.created, out.complete = result.complete, out.verdict = result.verdict;
  out.drafting_arm = DraftingArm(result);
  out.workload = record::ToJson(result.workload);
  out.workload["arms"] = "plain, " + out.drafting_arm;
  out.components = Components(result.environment);
  out.circumstances = Circumstances(result.environment);
  out.mixed_rocm = MixedRocm(result.environment);
  CountLegs(out, result);
  // A reason that voids both arms leaves no leg to compare.
  if (result.verdict == record::Verdict::invalid) {
    for (const record::Reason& reason : result.reasons)
      out.left_out_for.emplace_back(record::Name(reason.code));
    return out;
  }
  std::vector<const Leg*> legs;  // enter ratios, clocks and shifts
  std::vector<const Leg*> fast;  // and absolute rates
  const std::set<int64_t> slow = SlowProcesses(result);
  for (const Leg& leg : result.legs) {
    if (!Counted(leg)) continue;
    legs.push_back(&leg);
    if (!slow.contains(leg.process)) fast.push_back(&leg);
  }
  for (const record::Process& p : result.processes)
    if (slow.contains(p.index))
      out.slow_processes.push_back(
          fmt::format("{} at {:.2f} of the best", p.index, p.ratio_to_best.value_or(0)));
  SetEndpoints(out, result, fast);
  SetExploratory(out, result);
  SetClocks(out, legs);
  SetProviders(out, legs);
  SetLevelShifts(out, legs);
  return out;
}

}  // namespace warmleg::judge
