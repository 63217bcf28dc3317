// A command of somebody else, run as a shell would: it keeps the terminal, gets the signals that are sent to
// us, and its exit code becomes ours.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace warmleg::run {

struct CommandEnd {
  int exit_code = 0;
  std::optional<int> signal;  // it was ended by one; exit_code is then 128 + signal, as a shell has it
};

struct CommandOptions {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;   // beside what we have
  bool stdout_to_stderr = false;                    // our stdout carries something else
  std::function<void(const std::string&)> on_line;  // each line of its stdout, which is passed on as it comes
  std::function<void(double seconds_so_far)> on_tick;  // about ten times a second
};

// Returns when it has ended. vt::InputError when it cannot be started. SIGINT, SIGTERM and SIGHUP that reach
// us are passed on (a terminal has sent its SIGINT to both already), and we wait for it to end.
CommandEnd RunCommand(const CommandOptions& options);

}  // namespace warmleg::run
