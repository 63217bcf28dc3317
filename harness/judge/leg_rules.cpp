#include "harness/judge/leg_rules.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "harness/judge/policy.h"

namespace warmleg::judge {

using record::MakeReason;

std::optional<double> Ratio(std::optional<double> numerator, std::optional<double> denominator) {
  if (!numerator || !denominator || !(*denominator > 0)) return std::nullopt;
  return *numerator / *denominator;
}

record::Rates DeriveRates(const record::Counters& c, const record::Times& t) {
  const auto real = [](int64_t v) { return static_cast<double>(v); };
  record::Rates r;
  if (c.committed > 0) r.decode_tok_s = Ratio(real(c.committed), t.decode_s);
  if (c.prompt_tokens > 0) r.prefill_tok_s = Ratio(real(c.prompt_tokens), t.prefill_s);
  if (c.output_tokens > 0) r.e2e_tok_s = Ratio(real(c.output_tokens), t.e2e_s);
  r.accepted_per_drafted = Ratio(real(c.accepted), real(c.drafted));
  r.accepted_per_round = Ratio(real(c.accepted), real(c.rounds));
  r.committed_per_round = Ratio(real(c.committed), real(c.rounds));
  return r;
}

std::vector<Reason> CheckCounters(const record::Counters& c, bool plain) {
  std::vector<Reason> reasons;
  const auto equal = [&](const char* rule, int64_t left, int64_t right) {
    if (left != right) reasons.push_back(MakeReason(Code::counter_identity, left, right, rule));
  };
  equal("output_tokens == prefill_made + committed", c.output_tokens, c.prefill_made + c.committed);
  equal("bonus == rounds", c.bonus, c.rounds);
  equal("accepted + bonus == committed + stop_trimmed + budget_trimmed", c.accepted + c.bonus,
        c.committed + c.stop_trimmed + c.budget_trimmed);
  equal("accepted_at sums to accepted",
        std::accumulate(c.accepted_at.begin(), c.accepted_at.end(), int64_t{0}), c.accepted);
  if (c.accepted > c.drafted)
    reasons.push_back(MakeReason(Code::counter_identity, c.accepted, c.drafted, "accepted <= drafted"));
  if (plain) equal("a plain arm drafts nothing", c.drafted, 0);
  for (const int64_t v : {c.rounds, c.drafted, c.accepted, c.bonus, c.committed, c.stop_trimmed,
                          c.budget_trimmed, c.prefill_made, c.output_tokens, c.prompt_tokens})
    if (v < 0) reasons.push_back(MakeReason(Code::counter_identity, v, 0, "no counter is negative"));
  return reasons;
}

std::vector<Reason> CheckTimes(const record::Counters& c, const record::Times& t) {
  std::vector<Reason> reasons;
  const auto wrong = [&](double value, double bound, const char* rule) {
    reasons.push_back(MakeReason(Code::times_inconsistent, value, bound, rule));
  };
  const auto sane = [&](std::optional<double> v, const char* name) {
    if (v && (!(*v >= 0) || !std::isfinite(*v))) wrong(*v, 0, name);
  };
  sane(t.prefill_s, "prefill_s"), sane(t.ttft_s, "ttft_s"), sane(t.decode_s, "decode_s"),
      sane(t.e2e_s, "e2e_s");
  sane(t.draft_s, "draft_s"), sane(t.select_s, "select_s"), sane(t.verify_s, "verify_s");
  sane(t.commit_s, "commit_s"), sane(t.host_s, "host_s");
  if (!t.prefill_s || !t.ttft_s || !t.decode_s || !t.e2e_s) {
    reasons.push_back(MakeReason(Code::times_inconsistent, nullptr, nullptr,
                                 "one of prefill_s, ttft_s, decode_s, e2e_s is missing"));
    return reasons;
  }
  constexpr double rounding = 1e-9;  // seconds; sums over repeats
  if (*t.prefill_s + *t.decode_s > *t.e2e_s + rounding)
    wrong(*t.prefill_s + *t.decode_s, *t.e2e_s, "prefill_s + decode_s <= e2e_s");
  if (*t.ttft_s > *t.e2e_s + rounding) wrong(*t.ttft_s, *t.e2e_s, "ttft_s <= e2e_s");
  if (c.committed > 0 && !(*t.decode_s > 0)) wrong(*t.decode_s, 0, "tokens were committed in no time");
  if (c.prompt_tokens > 0 && c.output_tokens > 0 && !(*t.prefill_s > 0))
    wrong(*t.prefill_s, 0, "the prompt was read in no time");
  // Host and device clocks meet in unaccounted_s, so a little below 0 is rounding and not an error.
  if (t.unaccounted_s && *t.unaccounted_s < -limit::kUnaccounted * *t.decode_s)
    wrong(*t.unaccounted_s, -limit::kUnaccounted * *t.decode_s,
          "the parts of a round are longer than decode_s");
  return reasons;
}

std::vector<Reason> CheckProviders(const Leg& leg) {
  int64_t hits = 0;
  std::string ops;
  for (const record::Provider& p : leg.providers) {
    if (p.provider != "vt-cpu-ref" || p.device == "cpu") continue;
    hits += p.calls;
    ops += fmt::format("{}{} on {} ({})", ops.empty() ? "" : ", ", p.op, p.device,
                       p.fallback_reason.value_or("no reason given"));
  }
  if (hits == 0) return {};
  return {MakeReason(Code::reference_tier_hits, hits, 0, ops)};
}

std::optional<double> ReadRateGbS(const Leg& leg) {
  if (!leg.read_bytes_per_round || leg.counters.rounds <= 0) return std::nullopt;
  const auto bytes = *leg.read_bytes_per_round * static_cast<double>(leg.counters.rounds);
  return Ratio(bytes / 1e9, leg.times.decode_s);
}

std::vector<Reason> CheckPlausible(const Leg& leg, std::optional<double> probe_gb_s) {
  const std::optional<double> rate = ReadRateGbS(leg);
  if (!rate || !probe_gb_s || *rate <= limit::kImplausible * *probe_gb_s) return {};
  return {MakeReason(Code::implausible_rate, *rate, limit::kImplausible * *probe_gb_s,
                     fmt::format("{:.1f} GB/s with a probe of {:.1f} GB/s", *rate, *probe_gb_s))};
}

bool Died(const Leg& leg) {
  for (const Code code : {Code::crashed, Code::oom, Code::timeout, Code::gpu_hang, Code::load_stalled})
    if (record::Has(leg.reasons, code)) return true;
  return false;
}

}  // namespace warmleg::judge
