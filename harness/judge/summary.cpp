// Numbers of a campaign. The process is the unit: each gives one rate an arm (sum of tokens over sum of time
// of its counted legs), and a headline is the geometric mean over processes. Legs are counted in pairs, so a
// speed-up, the geometric mean of the process ratios, is the quotient of the two headlines beside it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "harness/judge/leg_rules.h"
#include "harness/judge/pairs.h"

namespace warmleg::judge {
namespace {

using record::Leg;
using record::Metric;
using record::Process;
using record::Result;
using record::Speedup;
using Rate = std::optional<double> (Sums::*)() const;

struct BothArms {
  Sums plain, drafting;
};

bool HasRates(const Pair& pair) { return pair.plain && pair.drafting; }

bool Counted(const Pair& pair) { return HasRates(pair) && pair.plain->counted && pair.drafting->counted; }

// A warm pair whose two legs were measured, whatever rule left it out.
bool Measured(const Pair& pair) {
  if (!HasRates(pair)) return false;
  for (const Leg* leg : {pair.plain, pair.drafting})
    if (leg->state == record::State::cold || Died(*leg) || !(leg->times.decode_s.value_or(0) > 0) ||
        leg->counters.committed <= 0 || record::Has(leg->reasons, record::Code::counter_identity) ||
        record::Has(leg->reasons, record::Code::times_inconsistent))
      return false;
  return true;
}

std::map<int64_t, BothArms> PerProcess(const std::vector<Pair>& pairs,
                                       const std::function<bool(const Pair&)>& use) {
  std::map<int64_t, BothArms> sums;
  for (const Pair& pair : pairs) {
    if (!use(pair)) continue;
    sums[pair.process].plain.Add(*pair.plain);
    sums[pair.process].drafting.Add(*pair.drafting);
  }
  return sums;
}

std::vector<double> Values(const std::vector<std::optional<double>>& values) {
  std::vector<double> out;
  for (const auto& v : values)
    if (v) out.push_back(*v);
  return out;
}

std::vector<double> Ratios(const std::map<int64_t, BothArms>& sums, Rate rate) {
  std::vector<double> ratios;
  for (const auto& [process, arms] : sums)
    if (const auto ratio = Ratio((arms.drafting.*rate)(), (arms.plain.*rate)())) ratios.push_back(*ratio);
  return ratios;
}

Metric ToMetric(const Estimate& e, const char* unit, const char* better) {
  Metric m;
  m.value = e.value, m.ci95 = e.ci95, m.n = e.n, m.unit = unit, m.better = better;
  return m;
}

std::optional<Speedup> ToSpeedup(const std::vector<Pair>& pairs, Rate rate,
                                 const std::function<bool(const Pair&)>& of, bool slow) {
  const auto both = [&](bool (*rule)(const Pair&)) {
    return [rule, &of](const Pair& p) { return rule(p) && of(p); };
  };
  Speedup s;
  s.process_ratios = Ratios(PerProcess(pairs, both(Counted)), rate);
  const Estimate estimate = GeometricMean(s.process_ratios);
  if (!estimate.value) return std::nullopt;
  s.value = estimate.value, s.ci95 = estimate.ci95, s.n = estimate.n;
  s.all_pairs_value = GeometricMean(Ratios(PerProcess(pairs, both(Measured)), rate)).value;
  s.pairs = std::count_if(pairs.begin(), pairs.end(), both(Counted));
  s.pairs_all = std::count_if(pairs.begin(), pairs.end(), [&](const Pair& p) {
    return HasRates(p) && of(p) && p.plain->state == record::State::warm &&
           p.drafting->state == record::State::warm;
  });
  s.ratios_only = slow;
  return s;
}

// committed_per_round at which the arms tie. A plain step commits one token in t_step, a round c tokens in
// t_round; the rates c / t_round and 1 / t_step are equal at c = t_round / t_step, with each time a sum of
// decode_s over a sum of rounds.
std::optional<double> BreakEven(const std::map<int64_t, BothArms>& sums) {
  std::vector<double> values;
  for (const auto& [process, arms] : sums)
    if (const auto c = Ratio(arms.drafting.RoundTime(), arms.plain.RoundTime())) values.push_back(*c);
  return GeometricMean(values).value;
}

// Means over the counted legs of an arm, pooled: sum over sum, no interval. Times are absolute, so those of a
// slow process are left out, as its rates are; counts of tokens are not.
void PooledMetrics(const Result& result, const std::string& arm, bool drafting, const std::set<int64_t>& slow,
                   std::map<std::string, Metric>& out) {
  Sums sums;
  Sums timed;
  std::map<std::string, double> parts;
  double bytes = 0;
  double bytes_s = 0;
  std::set<int64_t> processes;
  std::set<int64_t> timed_processes;
  for (const Leg& leg : result.legs) {
    if (!leg.counted || leg.arm != arm) continue;
    sums.Add(leg);
    processes.insert(leg.process);
    if (slow.contains(leg.process)) continue;
    timed.Add(leg);
    timed_processes.insert(leg.process);
    const record::Times& t = leg.times;
    for (const auto& [name, part] : {std::pair{"draft", t.draft_s},
                                     {"select", t.select_s},
                                     {"verify", t.verify_s},
                                     {"commit", t.commit_s},
                                     {"host", t.host_s},
                                     {"unaccounted", t.unaccounted_s}})
      if (part) parts[name] += *part;
    if (leg.read_bytes_per_round) {
      bytes += *leg.read_bytes_per_round * static_cast<double>(leg.counters.rounds);
      bytes_s += t.decode_s.value_or(0);
    }
  }
  const auto pooled = [&](const std::string& name, std::optional<double> value, const char* unit,
                          const char* better, const std::set<int64_t>& of) {
    if (value) out[name] = ToMetric({value, std::nullopt, std::ssize(of)}, unit, better);
  };
  pooled("round_s", timed.RoundTime(), "s", "lower", timed_processes);
  if (bytes > 0 && result.roof.read_gb_s)
    pooled("read_roof_share", Ratio(Ratio(bytes / 1e9, bytes_s), *result.roof.read_gb_s), "ratio", "higher",
           timed_processes);
  if (!drafting) return;
  pooled("committed_per_round", Ratio(sums.committed, sums.rounds), "tokens/round", "higher", processes);
  pooled("accepted_per_round", Ratio(sums.accepted, sums.rounds), "tokens/round", "higher", processes);
  pooled("accepted_per_drafted", Ratio(sums.accepted, sums.drafted), "ratio", "higher", processes);
  for (const auto& [name, seconds] : parts)
    pooled(name + "_s_per_round", Ratio(seconds, timed.rounds), "s", "lower", timed_processes);
}

void ProcessRates(Result& result, const std::string& plain, const std::string& drafting,
                  const std::map<int64_t, BothArms>& sums, const Policy& policy) {
  std::map<std::string, std::vector<std::optional<double>>> decode;
  std::map<std::string, std::vector<std::optional<double>>> prefill;
  std::map<std::string, std::vector<std::optional<double>>> e2e;
  for (Process& process : result.processes) {
    const auto it = sums.find(process.index);
    const BothArms none;
    const BothArms& arms = it == sums.end() ? none : it->second;
    for (const auto& [arm, s] : {std::pair{plain, arms.plain}, {drafting, arms.drafting}}) {
      process.decode_tok_s[arm] = s.DecodeRate();
      process.prefill_tok_s[arm] = s.PrefillRate();
      process.e2e_tok_s[arm] = s.E2eRate();
      if (IsSlow(process, policy)) continue;  // shown in the process, left out of the headline
      decode[arm].push_back(s.DecodeRate());
      prefill[arm].push_back(s.PrefillRate());
      e2e[arm].push_back(s.E2eRate());
    }
  }
  for (const std::string& arm : {plain, drafting}) {
    auto& out = result.summary[arm];
    out["decode_tok_s"] = ToMetric(GeometricMean(Values(decode[arm])), "tok/s", "higher");
    out["prefill_tok_s"] = ToMetric(GeometricMean(Values(prefill[arm])), "tok/s", "higher");
    out["e2e_tok_s"] = ToMetric(GeometricMean(Values(e2e[arm])), "tok/s", "higher");
  }
}

}  // namespace

void Sums::Add(const Leg& leg) {
  const auto real = [](int64_t v) { return static_cast<double>(v); };
  prompt_tokens += real(leg.counters.prompt_tokens), output_tokens += real(leg.counters.output_tokens);
  committed += real(leg.counters.committed), rounds += real(leg.counters.rounds);
  drafted += real(leg.counters.drafted), accepted += real(leg.counters.accepted);
  prefill_s += leg.times.prefill_s.value_or(0), decode_s += leg.times.decode_s.value_or(0);
  e2e_s += leg.times.e2e_s.value_or(0);
}

// A rate without tokens is no rate: null, not 0.
std::optional<double> Sums::DecodeRate() const {
  return committed > 0 ? Ratio(committed, decode_s) : std::nullopt;
}
std::optional<double> Sums::PrefillRate() const {
  return prompt_tokens > 0 ? Ratio(prompt_tokens, prefill_s) : std::nullopt;
}
std::optional<double> Sums::E2eRate() const {
  return output_tokens > 0 ? Ratio(output_tokens, e2e_s) : std::nullopt;
}
std::optional<double> Sums::RoundTime() const {
  return decode_s > 0 ? Ratio(decode_s, rounds) : std::nullopt;
}

void Summarise(Result& result, const std::vector<Pair>& pairs, const Policy& policy) {
  const std::string plain = "plain";
  const std::string& drafting = policy.drafting_arm;
  result.summary.clear();
  result.speedup.reset();
  const auto sums = PerProcess(pairs, Counted);
  ProcessRates(result, plain, drafting, sums, policy);
  std::set<int64_t> slow_processes;
  for (const Process& p : result.processes)
    if (IsSlow(p, policy)) slow_processes.insert(p.index);
  PooledMetrics(result, plain, false, slow_processes, result.summary[plain]);
  PooledMetrics(result, drafting, true, slow_processes, result.summary[drafting]);

  const bool slow = std::any_of(slow_processes.begin(), slow_processes.end(),
                                [&](int64_t process) { return sums.contains(process); });
  const auto any = [](const Pair&) { return true; };
  record::Speedups s;
  s.decode = ToSpeedup(pairs, &Sums::DecodeRate, any, slow);
  s.prefill = ToSpeedup(pairs, &Sums::PrefillRate, any, slow);
  s.e2e = ToSpeedup(pairs, &Sums::E2eRate, any, slow);
  if (!s.decode && !s.prefill && !s.e2e) return;
  std::set<std::string> classes;
  for (const Leg& leg : result.legs) classes.insert(leg.prompt_class);
  for (const std::string& name : classes) {
    const auto of_class = [&](const Pair& p) { return p.plain->prompt_class == name; };
    if (auto of = ToSpeedup(pairs, &Sums::DecodeRate, of_class, slow)) s.by_class[name] = *of;
  }
  s.break_even_committed_per_round = BreakEven(sums);
  result.speedup = std::move(s);
}

}  // namespace warmleg::judge
