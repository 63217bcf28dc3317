// The series of a board beside a result (NAME.samples.jsonl), as far as a plot needs it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/result.h"

namespace warmleg::report {

// One tick; NaN where nobody could read the field.
struct Tick {
  int64_t ns = 0;                // CLOCK_MONOTONIC
  std::array<float, 4> value{};  // in the order of kSeries
};

struct SeriesKind {
  const char* field;  // in the samples file
  const char* title;
  const char* unit;
};
inline constexpr std::array<SeriesKind, 4> kSeries = {SeriesKind{"sclk_mhz", "SCLK", "MHz"},
                                                      {"mclk_mhz", "MCLK", "MHz"},
                                                      {"power_w", "Power", "W"},
                                                      {"temp_c", "Temperature", "\u00b0C"}};

struct Samples {
  std::vector<Tick> ticks;
  std::vector<std::string> problems;  // of files that were left out: missing, changed, damaged
};

// Every samples file that the result names, oldest first, read beside `result_file`. One whose hash differs
// from the result's is left out, for it is not what was judged.
Samples ReadSamples(const record::Telemetry& telemetry, const std::filesystem::path& result_file);

}  // namespace warmleg::report
