// `run --plan`: a short calibration and what follows from it.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "harness/judge/policy.h"
#include "harness/run/campaign.h"

namespace warmleg::run {

// One line for each rule that the legs so far broke.
std::string Campaign::BrokenRules() {
  Judge();
  std::map<record::Code, std::string> found;
  for (const record::Leg& leg : result_.legs) {
    for (const record::Reason& reason : leg.reasons) {
      const bool planned = reason.code == record::Code::warmup || reason.code == record::Code::no_warmup ||
                           reason.code == record::Code::partner_left_out;
      if (!planned && leg.pair >= plan_.warmup_pairs) found.emplace(reason.code, reason.text);
    }
  }
  for (const record::Reason& warning : result_.warnings) found.emplace(warning.code, warning.text);
  std::string out;
  for (const auto& [code, text] : found) {
    if (code == record::Code::clock_unverified) continue;  // said below, with what to set
    out += fmt::format("{}: {}\n", record::Name(code), text);
  }
  return out;
}

std::string Campaign::DescribePlan() {
  if (!options_.telemetry_device.empty()) StartWatching(options_.telemetry_device);
  Slot slot = SlotFor(0);
  Prepare(slot);
  MeasurePair(slot, 0, false);
  if (worker_ == nullptr) throw last_failure_;
  const std::optional<double> roof = ProcessRecord(0).read_gb_s;
  worker_->Stop();
  worker_.reset();
  const std::string broken = BrokenRules();
  watcher_.Stop();
  double shortest_s = 0, pair_s = sentinel_s_;
  for (const record::Leg& leg : result_.legs) {
    if (leg.pair != slot.next_pair - 1) continue;
    const double leg_s = leg.times.e2e_s.value_or(0);
    shortest_s = shortest_s > 0 ? std::min(shortest_s, leg_s) : leg_s;
    pair_s += leg_s;
  }
  const double process_s = start_s_ + static_cast<double>(pairs_) * pair_s;
  std::string out = fmt::format("{}  {}  {} prompts, {} new tokens each\n", plan_.name,
                                vt::ToString(plan_.device), plan_.prompts.size(), plan_.max_new_tokens);
  out += fmt::format("{} processes of {} pairs (and {} to warm up), each leg repeated {} times\n",
                     plan_.processes, pairs_, plan_.warmup_pairs, repeats_);
  out += fmt::format("a pair takes {:.2f} s, a process {} to its first pair: about {} in all\n", pair_s,
                     DurationText(start_s_), DurationText(process_s * static_cast<double>(plan_.processes)));
  for (const model::Counted& counted : plan_.counts) out += model::CountsText(counted, roof);
  out += broken;
  const double samples = shortest_s * 1000 / static_cast<double>(std::max<int64_t>(plan_.interval_ms, 1));
  if (samples < static_cast<double>(judge::limit::kClockSamples)) {
    out += fmt::format(
        "clock_unverified: the shortest leg of {:.2f} s gives {:.0f} clock samples at {} ms, {} are "
        "needed; set plan.min_leg_s={:.1f}\n",
        shortest_s, samples, plan_.interval_ms, judge::limit::kClockSamples,
        1.2 * static_cast<double>(judge::limit::kClockSamples * plan_.interval_ms) / 1000);
  }
  if (!policy_.enforce_clocks)
    out += "clocks_not_enforced: clock rules are printed, not enforced, on this device\n";
  if (plan_.warmup_pairs == 0) out += "no_warmup: every leg will be cold, so no warm rate is given\n";
  if (plan_.processes < 2) out += "one process: no interval\n";
  return out;
}

}  // namespace warmleg::run
