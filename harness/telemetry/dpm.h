// The text of pp_dpm_sclk, pp_dpm_mclk, pp_dpm_fclk: lines "N: 2900Mhz *", where the star marks the current
// level and a line "S: 19Mhz *" is the deep sleep clock, which is no level.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "harness/telemetry/reading.h"

namespace warmleg::telemetry {

struct DpmLevel {
  int number =
      0;  // as printed; neither an index nor a rank: drivers print both orders, and 49 between 600 and 2900
  double mhz = 0;
};

struct DpmTable {
  std::vector<DpmLevel> levels;       // numbered lines in file order
  std::optional<double> current_mhz;  // null: see problem
  std::optional<int> current_level;   // number of the marked line; null in deep sleep
  bool deep_sleep = false;            // the marked line is "S:"
  std::optional<Missing> problem;     // why current_mhz is null

  std::optional<double> TopMhz() const;  // highest of the listed levels; null when none is listed
};

// Never throws; any bytes are allowed. Two marked lines are ambiguous even where a library takes the first.
DpmTable ParseDpm(std::string_view text);

}  // namespace warmleg::telemetry
