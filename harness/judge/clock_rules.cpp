#include "harness/judge/clock_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/judge/policy.h"
#include "harness/judge/stats.h"

namespace warmleg::judge {
namespace {

using record::ClockWindow;
using record::Code;
using record::MakeReason;
using record::Reason;
using Reasons = std::vector<Reason>;

void LowClock(const ClockWindow& w, const ClockContext& context, Reasons& out) {
  if (!w.sclk_mhz.p50 || !w.top_sclk_mhz) return;
  const bool busy =
      !w.busy_percent.p50 || *w.busy_percent.p50 >= limit::kBusyPercent;  // unreadable: computing
  const double lowest = limit::kLowClock * *w.top_sclk_mhz;
  if (!busy || *w.sclk_mhz.p50 > lowest) return;
  const bool fast = context.sentinel_gb_s && context.peak_gb_s &&
                    *context.sentinel_gb_s >= limit::kBandwidthOk * *context.peak_gb_s;
  const Code code = fast ? Code::telemetry_suspect : Code::clock_low_under_load;
  out.push_back(MakeReason(
      code, *w.sclk_mhz.p50, lowest,
      fmt::format("median SCLK {:.0f} MHz, top level {:.0f} MHz", *w.sclk_mhz.p50, *w.top_sclk_mhz)));
}

void Thirds(const ClockWindow& w, Reasons& out) {
  if (!w.sclk_mhz.first_third || !w.sclk_mhz.last_third || !(*w.sclk_mhz.first_third > 0)) return;
  const double first = *w.sclk_mhz.first_third;
  const double last = *w.sclk_mhz.last_third;
  const auto detail = fmt::format("{:.0f} -> {:.0f} MHz", first, last);
  if (last > first * (1 + limit::kRamping))
    out.push_back(MakeReason(Code::ramping, last, first * (1 + limit::kRamping), detail));
  if (last < first * (1 - limit::kThermalDrift))
    out.push_back(MakeReason(Code::thermal_drift, last, first * (1 - limit::kThermalDrift), detail));
}

void Changed(const ClockWindow& w, const ClockContext& context, Reasons& out) {
  for (const std::string& level : w.perf_levels) {
    if (!context.first_perf_level || level == *context.first_perf_level) continue;
    out.push_back(MakeReason(Code::perf_level_changed, level, *context.first_perf_level));
    break;
  }
  for (const double cap : w.power_caps_w) {
    if (!context.first_power_cap_w || cap == *context.first_power_cap_w) continue;
    out.push_back(MakeReason(Code::power_cap_changed, cap, *context.first_power_cap_w));
    break;
  }
}

}  // namespace

bool ClocksSeen(const ClockWindow& window) {
  return window.sclk_mhz.p50.has_value() && window.samples >= limit::kClockSamples;
}

Reasons ClockReasons(const ClockWindow& w, const ClockContext& context) {
  Reasons out;
  LowClock(w, context, out);
  Thirds(w, out);
  Changed(w, context, out);
  if (w.thermal_throttle.value_or(false)) out.push_back(MakeReason(Code::thermal_throttle));
  if (w.hw_slowdown.value_or(false)) out.push_back(MakeReason(Code::hw_slowdown));
  if (w.other_clients.value_or(0) > 0) out.push_back(MakeReason(Code::not_alone, *w.other_clients, 0));
  if (!ClocksSeen(w)) out.push_back(MakeReason(Code::clock_unverified, w.samples, limit::kClockSamples));
  return out;
}

ClockContext FirstOfCampaign(const record::Result& result) {
  ClockContext first;
  for (const record::Leg& leg : result.legs) {
    const ClockWindow& w = leg.clocks;
    if (!first.first_perf_level && !w.perf_levels.empty()) first.first_perf_level = w.perf_levels.front();
    if (!first.first_power_cap_w && !w.power_caps_w.empty()) first.first_power_cap_w = w.power_caps_w.front();
  }
  if (result.environment.gpu) first.peak_gb_s = result.environment.gpu->peak_gb_s;
  return first;
}

Reasons CampaignClockWarnings(const record::Result& result) {
  Reasons out;
  std::map<std::string, std::vector<double>> sclk;  // by arm
  std::vector<double> cached;
  for (const record::Leg& leg : result.legs) {
    if (!leg.counted) continue;
    if (leg.clocks.sclk_mhz.p50) sclk[leg.arm].push_back(*leg.clocks.sclk_mhz.p50);
    if (leg.clocks.cached_bytes) cached.push_back(static_cast<double>(*leg.clocks.cached_bytes));
  }
  if (sclk.size() == 2) {
    const double a = *Median(sclk.begin()->second);
    const double b = *Median(sclk.rbegin()->second);
    if (std::abs(a - b) > limit::kClockApart * std::max(a, b))
      out.push_back(MakeReason(
          Code::arms_ran_at_different_clocks, std::abs(a - b), limit::kClockApart * std::max(a, b),
          fmt::format("{} {:.0f} MHz, {} {:.0f} MHz", sclk.begin()->first, a, sclk.rbegin()->first, b)));
  }
  if (!cached.empty() && result.environment.ram_bytes) {
    const auto [low, high] = std::minmax_element(cached.begin(), cached.end());
    const double most = limit::kPageCache * static_cast<double>(*result.environment.ram_bytes);
    if (*high - *low > most) out.push_back(MakeReason(Code::page_cache_differs, *high - *low, most));
  }
  return out;
}

}  // namespace warmleg::judge
