// The binary file gpu_metrics, read raw: discrete cards write format 1.0-1.3, Strix Halo 3.0. Layouts:
// structs gpu_metrics_v1_0 .. v1_3 and v3_0 of the kernel's kgd_pp_interface.h (natural alignment, little
// endian).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/telemetry/reading.h"

namespace warmleg::telemetry {

// What a throttler says about a measurement.
enum class ThrottleClass : uint8_t { power, thermal, hw_slowdown, other };

// Time spent throttled per cause since boot, in the driver's own unit; only a rise between two samples means
// something.
struct ThrottleResidency {
  static constexpr size_t kCount = 7;
  std::array<uint32_t, kCount> count{};  // prochot, spl, fppt, sppt, thm_core, thm_gfx, thm_soc
};

struct GpuMetrics {
  int format = 0;   // 1: discrete card; 3: APU
  int content = 0;  // revision within the format
  // Fields this format does not have are unsupported; all-ones fillers are sentinel_value.
  Number temp_c, junction_c, memory_c;
  Number busy_percent, memory_busy_percent;
  Number socket_power_w;                                        // an average in both formats
  Number average_sclk_mhz, average_mclk_mhz, average_fclk_mhz;  // never stand in for a current clock
  Number current_sclk_mhz, current_mclk_mhz;                    // format 1 only
  Number stapm_limit_w;                                         // format 3: skin temperature limit in force
  std::optional<uint64_t> throttle_bits;                        // 1.3: meaning is the same on every board
  std::optional<uint32_t> asic_throttle_bits;       // 1.0-1.3: meaning differs from board to board
  std::optional<ThrottleResidency> residency;       // 3.0
  Missing throttle_missing = Missing::unsupported;  // why none of the three above is there
};

struct GpuMetricsResult {
  std::optional<GpuMetrics> metrics;
  Missing reason = Missing::unsupported;  // or empty, or error: shorter than its format needs
};

// All fields null for `why`: what a file that cannot be read amounts to.
GpuMetrics NoGpuMetrics(Missing why);

// Never throws; any bytes are allowed.
GpuMetricsResult ParseGpuMetrics(std::span<const std::byte> bytes);

// Names of the set bits ("ppt0", "temp_hotspot", ...; a bit without a name is "bit_N").
std::vector<std::string> ThrottleNames(uint64_t bits);
// Names of the counters that rose from `before` to `after` ("thm_gfx", ...); a counter that fell was reset
// and is no rise.
std::vector<std::string> ThrottleNames(const ThrottleResidency& before, const ThrottleResidency& after);
// Names of the board's own bits ("asic_bit_N"): shown, judged by no rule.
std::vector<std::string> AsicThrottleNames(uint32_t bits);
ThrottleClass ClassOf(const std::string& throttle_name);

}  // namespace warmleg::telemetry
