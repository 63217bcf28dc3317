#include "harness/run/worker_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "backend/vt/error.h"
#include "harness/run/interrupt.h"

namespace warmleg::run {

namespace {

using std::chrono::duration;
using Clock = WorkerProcess::Clock;

constexpr duration<double> kGrace{2.0};       // between SIGTERM and SIGKILL
constexpr duration<double> kAfterKill{10.0};  // a process in the driver may need this long to go

Clock::time_point In(duration<double> time) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
}

uint64_t OomKills() {
  std::ifstream in("/proc/vmstat");
  std::string name;
  uint64_t value = 0;
  while (in >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

uint64_t StartTicks(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t end = text.rfind(')');  // the program name may hold blanks
  if (end == std::string::npos) return 0;
  std::istringstream fields(text.substr(end + 1));
  std::string field;
  for (int i = 3; i < 22; ++i) fields >> field;
  uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

std::array<int, 2> Pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0)
    throw vt::EnvironmentError(fmt::format("pipe2: {}", std::strerror(errno)));
  return fds;
}

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void ExecWorker(int in, int out, char* const* argv) {
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);  // the parent decides
  std::signal(SIGTERM, SIG_DFL);
  const int null = open("/dev/null", O_RDONLY);
  // Above every number in use, so that none of the copies below lands on another.
  const int in_copy = fcntl(in, F_DUPFD, 10);
  const int out_copy = fcntl(out, F_DUPFD, 10);
  dup2(null, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // a library that prints must not reach the table
  dup2(in_copy, 3);
  dup2(out_copy, 4);
  close(in_copy);
  close(out_copy);
  execv("/proc/self/exe", argv);
  _exit(127);
}

}  // namespace

std::string WorkerDied::Text() const {
  if (signal) {
    const char* name = sigabbrev_np(*signal);
    return fmt::format("worker killed by SIG{}", name != nullptr ? name : std::to_string(*signal));
  }
  return fmt::format("worker exited with {}", code.value_or(-1));
}

WorkerProcess::WorkerProcess() : oom_kills_before_(OomKills()) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that is gone is an answer of Ask
  const std::array<int, 2> down = Pipe();
  const std::array<int, 2> up = Pipe();
  const std::string parent = std::to_string(getpid());
  std::array<std::string, 4> words = {"warmleg", "worker", "--parent", parent};
  std::array<char*, 5> argv{};
  for (size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
  pid_ = fork();
  if (pid_ == 0) ExecWorker(down[0], up[1], argv.data());
  const int error = errno;
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  fcntl(to_, F_SETFL, O_NONBLOCK);  // a worker that stopped reading must not hang its parent
  from_ = up[0];
  if (pid_ < 0) {
    ClosePipes();
    throw vt::EnvironmentError(fmt::format("cannot start a worker process: {}", std::strerror(error)));
  }
  start_ticks_ = StartTicks(pid_);
}

WorkerProcess::~WorkerProcess() {
  try {
    Stop();
  } catch (...) {  // nothing to add while unwinding
  }
}

void WorkerProcess::ClosePipes() {
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
  to_ = from_ = -1;
}

bool WorkerProcess::Write(const std::string& bytes, Clock::time_point deadline) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(to_, bytes.data() + done, bytes.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || errno != EAGAIN) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || InterruptPending()) return false;
    std::array<pollfd, 2> fds = {pollfd{to_, POLLOUT, 0}, pollfd{InterruptFd(), POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left + 1, 1000000)));
  }
  return true;
}

Answer WorkerProcess::Ask(const Request& request, duration<double> timeout, const OnProgress& progress) {
  auto deadline = In(timeout);
  const bool sent = !InterruptPending() && alive() && Write(Encode(request), deadline);
  if (InterruptPending()) {
    Kill(true);
    return run::Interrupted{};
  }
  if (!sent && alive() && Clock::now() >= deadline) {  // it does not even read
    Kill(true);
    return TimedOut{.unkillable = !reaped_};
  }
  if (!sent) return Death();
  for (;;) {
    try {
      while (std::optional<std::string> frame = reader_.Next()) {
        Reply reply = DecodeReply(*frame);
        if (!std::holds_alternative<ProgressReply>(reply)) return reply;
        if (progress) progress(std::get<ProgressReply>(reply));
        deadline = In(timeout);
      }
    } catch (const ProtocolError&) {
      Kill(false);
      return Death();
    }
    const duration<double> left = deadline - Clock::now();
    if (left.count() <= 0) {
      Kill(true);
      return TimedOut{.unkillable = !reaped_};
    }
    std::array<pollfd, 2> fds = {pollfd{from_, POLLIN, 0}, pollfd{InterruptFd(), POLLIN, 0}};
    const int ready = poll(fds.data(), fds.size(), static_cast<int>(std::min(left.count() * 1000 + 1, 1e9)));
    if (InterruptPending()) {
      Kill(true);
      return run::Interrupted{};
    }
    if (ready <= 0 || fds[0].revents == 0) continue;
    std::array<char, 65536> bytes{};
    const ssize_t n = read(from_, bytes.data(), bytes.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return Death();
    reader_.Feed({bytes.data(), static_cast<size_t>(n)});
  }
}

bool WorkerProcess::Reap(duration<double> wait) {
  const auto end = Clock::now() + wait;
  while (!reaped_) {
    const pid_t got = waitpid(pid_, &status_, WNOHANG);
    if (got == pid_ || (got < 0 && errno == ECHILD)) {
      reaped_ = true;
      break;
    }
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

void WorkerProcess::Kill(bool gently) {
  if (pid_ <= 0) return;
  if (gently) {
    kill(pid_, SIGTERM);
    if (!Reap(kGrace)) gently = false;
  }
  if (!gently) {
    kill(pid_, SIGKILL);
    Reap(kAfterKill);
  }
  ClosePipes();
  pid_ = -1;
}

WorkerDied WorkerProcess::Death() {
  WorkerDied died;
  if (pid_ > 0) {
    // The pipe is closed, so it is about to be gone; if it is not, it has lost its way.
    if (!Reap(kGrace)) Kill(false);
    ClosePipes();
    pid_ = -1;
  }
  if (WIFEXITED(status_)) died.code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) died.signal = WTERMSIG(status_);
  died.oom = died.signal == SIGKILL && OomKills() > oom_kills_before_;
  return died;
}

void WorkerProcess::Stop() {
  if (pid_ <= 0) return;
  const bool asked = to_ >= 0 && Write(Encode(Request{QuitRequest{}}), In(kGrace));
  if (asked && Reap(kGrace)) {
    ClosePipes();
    pid_ = -1;
    return;
  }
  Kill(true);
}

}  // namespace warmleg::run
