// One tick of one board as the sampler writes it: one JSON object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/record/clocks.h"
#include "harness/telemetry/reading.h"

namespace warmleg::telemetry {

struct BoardSample {
  std::string pci;
  record::ClockSample clocks;
  // Beyond the agreed nine fields. Averages are the firmware's own filter and never stand in for a current
  // clock.
  Number average_sclk_mhz, average_mclk_mhz, average_fclk_mhz, average_power_w;
  Number junction_c, memory_c, memory_busy_percent, stapm_limit_w, cpu_mhz;
  bool deep_sleep = false;
  bool suspended = false;      // power/runtime_status: nothing was read, for reading would wake the board
  int64_t sampler_cpu_ns = 0;  // CPU time of the sampler so far
};

// Calls visit(field) for every field of the sample.
template <typename Visit>
void VisitFields(BoardSample& s, Visit visit) {
  record::ClockSample& c = s.clocks;
  for (Number* n :
       {&c.sclk_mhz, &c.mclk_mhz, &c.fclk_mhz, &c.top_sclk_mhz, &c.power_w, &c.power_cap_w, &c.temp_c,
        &c.busy_percent, &s.average_sclk_mhz, &s.average_mclk_mhz, &s.average_fclk_mhz, &s.average_power_w,
        &s.junction_c, &s.memory_c, &s.memory_busy_percent, &s.stapm_limit_w, &s.cpu_mhz}) {
    visit(*n);
  }
  visit(c.perf_level);
  visit(c.throttle);
}

// What the names of the active throttlers amount to; null as `names` is.
record::Reading<record::Throttle> ClassifyThrottle(const Names& names, uint64_t raw);

// {"pci","name","fields": {"sclk_mhz": {"value","source"} | {"value": null,"reason","source"}, ...}} with the
// fields sclk_mhz, mclk_mhz, fclk_mhz, perf_level, power_w, power_cap_w, temp_c, busy_percent, throttle.
record::Json ClocksJson(const BoardSample& sample, const std::string& name);

// The pipe: the same fields with time, cost and everything else. ParseSampleLine gives null for a line that
// is none.
record::Json SampleJson(const BoardSample& sample);
std::optional<BoardSample> ParseSample(const record::Json& line);

// The sidecar: values only, and under "missing" the reason of each null field.
record::Json SidecarJson(const BoardSample& sample);

}  // namespace warmleg::telemetry
