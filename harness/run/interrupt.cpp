#include "harness/run/interrupt.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "backend/vt/error.h"

namespace warmleg::run {

namespace {

volatile std::sig_atomic_t pending = 0;
std::array<int, 2> wake = {-1, -1};

void OnSignal(int) {
  const int saved = errno;
  pending = 1;
  const char byte = 1;
  [[maybe_unused]] const ssize_t n = write(wake[1], &byte, 1);
  errno = saved;
}

}  // namespace

void CatchInterrupts() {
  if (wake[0] >= 0) return;
  if (pipe2(wake.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw vt::EnvironmentError(fmt::format("pipe2: {}", std::strerror(errno)));
  }
  // A pipe whose reader died and a file at its limit are errors of that write, not the end of the program.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    sigaction(signal, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = OnSignal;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

bool InterruptPending() { return pending != 0; }
int InterruptFd() { return wake[0]; }

}  // namespace warmleg::run
