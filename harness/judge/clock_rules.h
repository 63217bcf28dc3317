// Clock rules: pure functions over one leg's window, and over the legs of a campaign.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/record/result.h"

namespace warmleg::judge {

// What a leg's window is judged against.
struct ClockContext {
  std::optional<std::string> first_perf_level;  // of the campaign
  std::optional<double> first_power_cap_w;      // of the campaign
  std::optional<double> sentinel_gb_s;          // bandwidth of the slower sentinel beside the pair
  std::optional<double> peak_gb_s;              // of the board; null: unknown, so no exemption
};

// SCLK was seen in enough samples.
bool ClocksSeen(const record::ClockWindow& window);

// Every rule that one window decides: ramping, clock_low_under_load or telemetry_suspect, perf_level_changed,
// power_cap_changed, thermal_throttle, hw_slowdown, thermal_drift, not_alone, clock_unverified. A field that
// nobody could read fails nothing.
std::vector<record::Reason> ClockReasons(const record::ClockWindow& window, const ClockContext& context);

// First values seen in the campaign, in the order of the legs.
ClockContext FirstOfCampaign(const record::Result& result);

// Warnings over the counted legs: arms_ran_at_different_clocks, page_cache_differs.
std::vector<record::Reason> CampaignClockWarnings(const record::Result& result);

}  // namespace warmleg::judge
