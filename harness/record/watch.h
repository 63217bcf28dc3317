// "warmleg.watch/1": a board that was sampled while somebody else's program ran. Its rates are that program's
// own words: nobody checked legs, warmth or counts, so they enter no verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/clocks.h"
#include "harness/record/fingerprint.h"
#include "harness/record/result.h"

namespace warmleg::record {

inline constexpr std::string_view kWatchSchema = "warmleg.watch/1";

// Medians of one second of the run; null where nothing was read.
struct WatchSecond {
  int64_t second = 0;  // from the start of the program
  int64_t samples = 0;
  std::optional<double> sclk_mhz, mclk_mhz, power_w, temp_c, busy_percent;
  std::vector<std::string> rules;  // codes of the rules it broke
  Json unknown = Json::object();
};

struct WatchRate {
  std::string name;  // "decode_tok_s"
  double value = 0;
  bool verified = false;  // always: the program said so
  std::string text;       // the line it was taken from
  Json unknown = Json::object();
};

struct Watch {
  std::string schema = std::string(kWatchSchema);
  std::string created;  // UTC
  std::vector<std::string> command;
  std::optional<int64_t> exit_code, signal;  // one of them
  double duration_s = 0;
  std::string verdict = "unverified";  // always
  std::vector<Reason> reasons;         // what the clock rules say of the whole run
  std::vector<WatchRate> rates;
  Telemetry telemetry;
  Environment environment;
  ClockWindow clocks;  // of the whole run
  std::vector<WatchSecond> seconds;
  Json unknown = Json::object();
};

}  // namespace warmleg::record
