// `warmleg watch`: the board while somebody else's command runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/record/watch.h"

namespace warmleg::run {

struct RatePattern {
  std::string name, pattern;  // PCRE2; its first group is the number
};

struct WatchRunOptions {
  std::vector<std::string> command;
  std::string device = "auto";  // PCI address, or "auto": the only AMD GPU
  int interval_ms = 100;
  bool stdout_to_stderr = false;
  std::vector<RatePattern> rates;  // looked for in its stdout; the last match of each counts
  std::function<void(const record::WatchSecond&)> on_second;
};

struct WatchRun {
  record::Watch record;
  int exit_code = 0;  // of the command, 128 + N after signal N
};

// "decode_tok_s=([0-9.]+) tok/s". vt::InputError when it is no pattern with a group.
RatePattern ParseRate(const std::string& text);

// vt::InputError: no such board, or the command cannot be started. vt::EnvironmentError: no board at all,
// before the command is started.
WatchRun WatchCommand(const WatchRunOptions& options);

}  // namespace warmleg::run
