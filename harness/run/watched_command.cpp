#include "harness/run/watched_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "backend/vt/error.h"

namespace warmleg::run {

namespace {

constexpr int kTickMs = 100;

volatile std::sig_atomic_t child_pid = 0;

// A signal of the terminal's reached the child by itself: the two share a process group.
void PassOn(int signal, siginfo_t* info, void*) {
  if (child_pid > 0 && info != nullptr && info->si_code != SI_KERNEL) kill(child_pid, signal);
}

// While it lives, our own signals go to the child.
class SignalsPassedOn {
 public:
  SignalsPassedOn() {
    struct sigaction action {};
    action.sa_sigaction = PassOn;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &old_[i]);
      if (old_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~SignalsPassedOn() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
    child_pid = 0;
  }
  SignalsPassedOn(const SignalsPassedOn&) = delete;
  SignalsPassedOn& operator=(const SignalsPassedOn&) = delete;

 private:
  static constexpr std::array<int, 4> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  std::array<struct sigaction, 4> old_{};
};

using Pipe = std::array<int, 2>;

Pipe MakePipe() {
  Pipe ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw vt::EnvironmentError(fmt::format("pipe2: {}", std::strerror(errno)));
  return ends;
}

[[noreturn]] void Become(const CommandOptions& options, int out, int failed) {
  if (options.stdout_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
  if (out >= 0) dup2(out, STDOUT_FILENO);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  std::vector<char*> words;
  words.reserve(options.words.size() + 1);
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t n = write(failed, &error, sizeof error);
  _exit(127);
}

void WriteAll(int to, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(to, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // our reader has gone; the command goes on
    data += n, size -= static_cast<size_t>(n);
  }
}

// Passes output on and takes it apart into lines. False at its end.
bool PassOutput(int from, int to, std::string& line, const std::function<void(const std::string&)>& on_line) {
  std::array<char, 1 << 14> buffer{};
  const ssize_t n = read(from, buffer.data(), buffer.size());
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) {
    if (!line.empty()) on_line(line);
    line.clear();
    return false;
  }
  WriteAll(to, buffer.data(), static_cast<size_t>(n));
  for (ssize_t i = 0; i < n; ++i) {
    const char c = buffer[static_cast<size_t>(i)];
    if (c != '\n' && c != '\r') {  // a progress line ends with a carriage return
      line += c;
      continue;
    }
    on_line(line);
    line.clear();
  }
  return true;
}

CommandEnd EndOf(int status) {
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
  return {WEXITSTATUS(status), std::nullopt};
}

}  // namespace

CommandEnd RunCommand(const CommandOptions& options) {
  const Pipe failed = MakePipe();
  const Pipe out = options.on_line ? MakePipe() : Pipe{-1, -1};
  const SignalsPassedOn signals;
  const pid_t pid = fork();
  if (pid < 0) throw vt::EnvironmentError(fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) Become(options, out[1], failed[1]);
  child_pid = pid;
  close(failed[1]);
  if (out[1] >= 0) close(out[1]);
  int error = 0;
  const bool started = read(failed[0], &error, sizeof error) != sizeof error;
  close(failed[0]);
  int status = 0;
  if (!started) {
    waitpid(pid, &status, 0);
    if (out[0] >= 0) close(out[0]);
    throw vt::InputError(fmt::format("{}: cannot be started: {}", options.words[0], std::strerror(error)));
  }
  const auto begin = std::chrono::steady_clock::now();
  const int to = options.stdout_to_stderr ? STDERR_FILENO : STDOUT_FILENO;
  std::string line;
  bool open = out[0] >= 0;
  bool ended = false;
  while (!ended || open) {
    pollfd wait{.fd = open ? out[0] : -1, .events = POLLIN, .revents = 0};
    // What it leaves behind may hold its output open: after its end, only what is there already is passed on.
    const int ready = poll(&wait, 1, ended ? 0 : kTickMs);
    if (open && ready > 0)
      open = PassOutput(out[0], to, line, options.on_line);
    else if (ended)
      break;
    if (!ended) ended = waitpid(pid, &status, WNOHANG) == pid;
    if (options.on_tick)
      options.on_tick(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (!line.empty()) options.on_line(line);
  if (out[0] >= 0) close(out[0]);
  return EndOf(status);
}

}  // namespace warmleg::run
