// One child process with its stdout and stderr on pipes, in a process group of its own so that a signal of
// the terminal, or one for the parent's group, does not reach it.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace warmleg::telemetry {

// How it ended.
struct ChildEnd {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  std::string Describe() const;  // "exit 3", "SIGABRT"
};

class Child {
 public:
  // EnvironmentError when it cannot be started. argv[0] is the program's path.
  explicit Child(const std::vector<std::string>& argv);
  ~Child();  // closes the pipes; the process must have been reaped
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int out() const { return fds_[0]; }
  int err() const { return fds_[1]; }
  void WaitUntilEnded() const;  // leaves it unreaped, so that its id stays its own
  ChildEnd Reap();

 private:
  pid_t pid_ = -1;
  std::array<int, 2> fds_{-1, -1};
};

}  // namespace warmleg::telemetry
