#include "harness/telemetry/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "backend/vt/error.h"

namespace warmleg::telemetry {
namespace {

struct Pipe {
  std::array<int, 2> end{-1, -1};
  Pipe() {
    if (::pipe2(end.data(), O_CLOEXEC) != 0) {
      throw vt::EnvironmentError(fmt::format("pipe for the sampler: {}", std::strerror(errno)));
    }
  }
  ~Pipe() {
    for (int fd : end) {
      if (fd >= 0) ::close(fd);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int Take(size_t i) {
    const int fd = end[i];
    end[i] = -1;
    return fd;
  }
};

// Between fork and exec: only async-signal-safe calls. `failed` takes errno of what did not work.
[[noreturn]] void Become(char* const* argv, int out, int err, int failed) {
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  // Pipes of the harness to other children end when the harness does, not when the sampler does.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv(argv[0], argv);
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(failed, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

std::string ChildEnd::Describe() const {
  if (signal == 0) return fmt::format("exit {}", exit_code);
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

Child::Child(const std::vector<std::string>& argv) {
  std::vector<char*> raw;
  for (const std::string& arg : argv) raw.push_back(const_cast<char*>(arg.c_str()));
  raw.push_back(nullptr);
  Pipe out;
  Pipe err;
  Pipe failed;
  pid_ = ::fork();
  if (pid_ < 0) throw vt::EnvironmentError(fmt::format("fork for the sampler: {}", std::strerror(errno)));
  if (pid_ == 0) Become(raw.data(), out.end[1], err.end[1], failed.end[1]);
  for (Pipe* p : {&out, &err, &failed}) ::close(p->Take(1));
  int error = 0;
  ssize_t n = 0;
  do {
    n = ::read(failed.end[0], &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof error)) {
    Reap();
    throw vt::EnvironmentError(fmt::format("cannot start {}: {}", argv[0], std::strerror(error)));
  }
  fds_ = {out.Take(0), err.Take(0)};
}

Child::~Child() {
  for (int fd : fds_) {
    if (fd >= 0) ::close(fd);
  }
}

void Child::WaitUntilEnded() const {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
}

ChildEnd Child::Reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  ChildEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

}  // namespace warmleg::telemetry
