// What was seen of the board: one sample, and the window of one leg that the clock rules judge. Frequencies
// in MHz, power in W, temperatures in degrees C. A value nobody could read is absent, never 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/reason.h"

namespace warmleg::record {

// Why a field has no value.
enum class Missing : uint8_t {
  unsupported,
  no_current_level,
  ambiguous,
  sentinel_value,
  permission,
  empty,
  error,
  unit_suspect,
  no_device_match,
  lost,
};
enum class Source : uint8_t { rocm_smi, hwmon, sysfs, gpu_metrics, nvml, cpufreq, device };

std::string_view Name(Missing missing);
std::string_view Name(Source source);
std::optional<Missing> MissingFromName(std::string_view name);
std::optional<Source> SourceFromName(std::string_view name);

// One field of one sample: a value and its source, or null with a reason and the source that gave it.
template <class T>
struct Reading {
  std::optional<T> value = {};
  Missing missing = Missing::unsupported;  // read only when there is no value
  std::optional<Source> source = {};
};

// Bits that a throttle status is reduced to, whatever the board's own numbering is. Power-cap bits are
// normal.
struct Throttle {
  bool thermal = false;
  bool power_cap = false;
  bool hw_slowdown = false;         // current or voltage limits, hardware slow-down, external signal
  uint64_t raw = 0;                 // as read: a status word, or a sum of residency counters
  std::vector<std::string> active;  // names of the throttlers at work, power-cap ones included
};

// One tick of the sampler.
struct ClockSample {
  int64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  Reading<double> sclk_mhz, mclk_mhz, fclk_mhz;
  Reading<double> top_sclk_mhz;  // the highest level offered at that moment
  Reading<std::string> perf_level;
  Reading<double> power_w, power_cap_w, temp_c, busy_percent;
  Reading<Throttle> throttle;
};

// Summary of one field over one span. Percentiles by nearest rank; thirds are medians of the first and last
// third in time.
struct ClockStat {
  std::optional<double> p5, p50, p95, mean, first_third, last_third;
  Json unknown = Json::object();
};

struct ClockPhase {
  int64_t samples = 0;
  ClockStat sclk_mhz, mclk_mhz, fclk_mhz;
  Json unknown = Json::object();
};

// The window of one leg: the "clocks" object of the result and all that the clock rules read.
struct ClockWindow {
  bool verified = false;    // SCLK seen in at least 20 samples; set by the judge
  int64_t samples = 0;      // samples with SCLK
  int64_t samples_all = 0;  // all samples of the leg
  // When the leg ran, CLOCK_MONOTONIC: the clock of the samples file.
  std::optional<int64_t> begin_ns, end_ns;
  ClockStat sclk_mhz, mclk_mhz, fclk_mhz, power_w, temp_c, busy_percent;
  std::optional<double> top_sclk_mhz;  // current top level: the highest seen during the leg
  std::optional<double> energy_j;
  std::optional<std::string> perf_level;  // the first seen in the leg
  std::vector<std::string> perf_levels;   // every distinct value of the leg, in the order seen
  std::vector<double> power_caps_w;       // likewise
  // Throttling seen in the leg; absent when the board does not tell.
  std::optional<bool> thermal_throttle, hw_slowdown, power_capped;
  std::optional<int64_t> other_clients;      // processes beside ours that hold the device
  std::optional<int64_t> cached_bytes;       // page cache when the leg started
  std::optional<double> sampler_cpu_share;   // CPU time of the sampler over the leg's wall time
  std::map<std::string, ClockPhase> phases;  // "prefill", "decode"
  Json unknown = Json::object();
};

}  // namespace warmleg::record
