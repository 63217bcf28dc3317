// From samples to the window of one leg: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/record/clocks.h"

namespace warmleg::telemetry {

// Where a leg was in a phase. A phase may have several spans (repeats).
struct PhaseSpan {
  std::string name;  // "prefill" or "decode"
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // CLOCK_MONOTONIC
};

// Percentiles by nearest rank; thirds are medians over the first and last third of [begin_ns, end_ns]. Nulls
// do not count. `values` are (time, value) in time order.
struct TimedValue {
  int64_t ns = 0;
  double value = 0;
};
record::ClockStat Summarise(std::span<const TimedValue> values, int64_t begin_ns, int64_t end_ns);

// Trapezoids between samples, the edge samples held to the ends of the span. Null when less than nine tenths
// of the span lie within three intervals of a power sample.
std::optional<double> EnergyJoule(std::span<const TimedValue> power_w, int64_t begin_ns, int64_t end_ns,
                                  int64_t interval_ns);

// `samples` in time order; those outside [begin_ns, end_ns] are ignored. `verified` is left for the judge.
record::ClockWindow MakeWindow(std::span<const record::ClockSample> samples, int64_t begin_ns, int64_t end_ns,
                               std::span<const PhaseSpan> phases, int64_t interval_ns);

// Answers of the device clock source: (time, MHz), with the top clock that the runtime states. They take the
// place of the SCLK that no sensor gave, in the window and its phases; everything else of `window` stays.
void UseDeviceClock(std::span<const TimedValue> mhz, std::optional<double> top_mhz, int64_t begin_ns,
                    int64_t end_ns, std::span<const PhaseSpan> phases, int64_t interval_ns,
                    record::ClockWindow& window);

}  // namespace warmleg::telemetry
