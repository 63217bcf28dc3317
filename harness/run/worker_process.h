// A worker as its parent sees it: a child process that answers requests, may hang, abort or be killed, and
// never outlives the object.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "harness/run/protocol.h"

namespace warmleg::run {

// The worker gave no answer. `signal` is set when it was killed by one, `code` when it exited.
struct WorkerDied {
  std::optional<int> code, signal;
  bool oom = false;  // the kernel's out-of-memory killer counted a kill meanwhile
  std::string Text() const;
};
struct TimedOut {
  bool unkillable = false;  // still there after SIGKILL: a hang in the driver
};
struct Interrupted {};

using Answer = std::variant<Reply, WorkerDied, TimedOut, Interrupted>;

class WorkerProcess {
 public:
  using Clock = std::chrono::steady_clock;
  using OnProgress = std::function<void(const ProgressReply&)>;

  // Re-executes this program as a worker. Throws vt::EnvironmentError when that fails.
  WorkerProcess();
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Sends and waits for the answer. Progress restarts the timeout. After any answer but a Reply the process
  // is gone. An answer that is no protocol message counts as a death.
  Answer Ask(const Request& request, std::chrono::duration<double> timeout, const OnProgress& progress = {});

  // Asks it to leave, then SIGTERM, then SIGKILL.
  void Stop();
  bool alive() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  // Start time in clock ticks after boot (field 22 of /proc/PID/stat): tells two owners of one pid apart.
  uint64_t start_ticks() const { return start_ticks_; }

 private:
  // False when the worker is gone, did not read until the deadline, or the user interrupts.
  bool Write(const std::string& bytes, Clock::time_point deadline);
  // True when the process has been reaped within the time.
  bool Reap(std::chrono::duration<double> wait);
  void Kill(bool gently);
  WorkerDied Death();
  void ClosePipes();

  pid_t pid_ = -1;
  uint64_t start_ticks_ = 0;
  uint64_t oom_kills_before_ = 0;
  int to_ = -1, from_ = -1;
  int status_ = 0;
  bool reaped_ = false;
  FrameReader reader_;
};

}  // namespace warmleg::run
