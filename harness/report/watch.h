// A watched program: its lines on the screen, and how a comparison shows it beside the verdict.
#pragma once

#include <string>
#include <vector>

#include "harness/record/watch.h"

namespace warmleg::report {

// "   3 s  SCLK 2890 MHz  MCLK 1000 MHz  104 W  71 C  busy 98 %  ! thermal_throttle\n"
std::string WatchLine(const record::WatchSecond& second);

// The window of the whole run and what the rules say.
std::string WatchText(const record::Watch& watch);

// A watch record on one side of a comparison; it enters no verdict.
struct Beside {
  std::string side, file;  // side: "base" | "candidate"
  record::Watch watch;
};
std::string BesideText(const std::vector<Beside>& beside);
std::string BesideMarkdown(const std::vector<Beside>& beside);
record::Json BesideJson(const std::vector<Beside>& beside);

}  // namespace warmleg::report
