#include "harness/telemetry/sampler_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backend/vt/error.h"
#include "harness/telemetry/child.h"
#include "harness/telemetry/perf_level.h"

namespace warmleg::telemetry {
namespace {

using record::Json;

constexpr int kStopGraceMs = 7000;      // librocm_smi64 waits up to 5 s for its mutex
constexpr int64_t kStallMs = 15000;     // a sampler that says nothing for so long hangs in the library
constexpr size_t kMaxLine = 1U << 20U;  // a longer line is no line of ours

// Takes whole lines off a growing buffer.
class Lines {
 public:
  void Append(const char* data, size_t size) { buffer_.append(data, size); }
  bool Take(std::string& line) {
    const size_t end = buffer_.find('\n');
    if (end == std::string::npos) {
      if (buffer_.size() > kMaxLine) buffer_.clear();
      return false;
    }
    line.assign(buffer_, 0, end);
    buffer_.erase(0, end + 1);
    return true;
  }

 private:
  std::string buffer_;
};

std::string StringAt(const Json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

std::optional<PerfLevel> PerfLevelFromName(std::string_view name) {
  if (name == "keep") return PerfLevel::keep;
  if (name == "high") return PerfLevel::high;
  return std::nullopt;
}

int64_t MonotonicNs() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string SamplerProgram() {
  std::error_code ec;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ec);
  return (ec ? std::filesystem::path(".") : self.parent_path()) / "warmleg-sampler";
}

struct SamplerProcess::Impl {
  struct HeldLevel {
    std::string path, was;
  };

  explicit Impl(SamplerOptions o);
  ~Impl();

  void Run();
  bool RunOnce(bool library, ChildEnd& end);
  void ReadUntilEnd(Child& child);
  void OnLine(const std::string& line);
  void OnSample(BoardSample sample);
  void OnEvent(const Json& event);
  int64_t TicksDone() const;
  bool Finished(const ChildEnd& end) const;
  std::vector<std::string> Arguments(bool library) const;
  void RestoreLevel();
  std::string Cause(const ChildEnd& end) const;
  void Stop();

  SamplerOptions options;
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  SamplerStatus status;                    // under mutex
  pid_t pid = -1;                          // under mutex
  std::optional<std::string> not_started;  // under mutex
  bool started = false;                    // under mutex
  bool ended = false;                      // under mutex
  int64_t last_ns = 0;                     // under mutex
  std::map<std::string, int64_t> ticks;    // under mutex; samples per board
  std::atomic<bool> stopping{false};
  // The reader's own.
  std::optional<HeldLevel> held;
  std::string program;
  std::string last_error;
  bool stalled = false;
  bool said_anything = false;
  int wake = -1;
  std::thread reader;
};

SamplerProcess::Impl::Impl(SamplerOptions o) : options(std::move(o)), program(options.program) {
  if (program.empty()) program = SamplerProgram();
  wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) throw vt::EnvironmentError("eventfd for the sampler failed");
  // The reader starts the child: PR_SET_PDEATHSIG is bound to the thread, and the reader lives as long as the
  // child.
  reader = std::thread([this] { Run(); });
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return started || not_started; });
  if (not_started) {
    lock.unlock();
    reader.join();
    ::close(wake);
    throw vt::EnvironmentError(*not_started);
  }
}

SamplerProcess::Impl::~Impl() {
  Stop();
  if (wake >= 0) ::close(wake);
}

std::vector<std::string> SamplerProcess::Impl::Arguments(bool library) const {
  std::vector<std::string> argv = {program, "--interval-ms", std::to_string(options.interval_ms), "--parent",
                                   std::to_string(::getpid())};
  auto add = [&](const char* name, const std::string& value) {
    argv.emplace_back(name);
    argv.push_back(value);
  };
  if (!options.pci.empty()) add("--pci", options.pci);
  if (options.count != 0) add("--count", std::to_string(options.count - TicksDone()));
  if (!library) argv.emplace_back("--no-rocm-smi");
  if (options.perf_level == PerfLevel::high) add("--perf-level", "high");
  if (held) add("--perf-restore", held->was);
  if (options.sys_root != "/sys") add("--sys-root", options.sys_root);
  return argv;
}

int64_t SamplerProcess::Impl::TicksDone() const {
  const std::lock_guard lock(mutex);
  if (status.devices.empty()) return 0;
  int64_t done = INT64_MAX;
  for (const SampledDevice& device : status.devices) {
    const auto it = ticks.find(device.pci);
    done = std::min(done, it == ticks.end() ? 0 : it->second);
  }
  return done;
}

// True when it ended as it should: asked to, no board, or all its ticks done.
bool SamplerProcess::Impl::Finished(const ChildEnd& end) const {
  if (stopping) return true;
  if (end.signal != 0) return false;
  if (end.exit_code == 3 || end.exit_code == 2) return true;
  return end.exit_code == 0 && options.count != 0 && TicksDone() >= options.count;
}

std::string SamplerProcess::Impl::Cause(const ChildEnd& end) const {
  std::string text = end.Describe();
  if (stalled) text = fmt::format("no sample for {} s", kStallMs / 1000);
  if (!last_error.empty()) text += ": " + last_error;
  return text;
}

bool SamplerProcess::Impl::RunOnce(bool library, ChildEnd& end) {
  last_error.clear();
  stalled = false;
  said_anything = false;
  std::optional<Child> child;
  try {
    child.emplace(Arguments(library));
  } catch (const vt::EnvironmentError& e) {
    const std::lock_guard lock(mutex);
    not_started = e.what();
    changed.notify_all();
    return false;
  }
  {
    const std::lock_guard lock(mutex);
    pid = child->pid();
    started = true;
    status.running = true;
    changed.notify_all();
  }
  ReadUntilEnd(*child);
  child->WaitUntilEnded();
  const std::lock_guard lock(mutex);  // Stop() signals under it, so never a process that is not ours any more
  end = child->Reap();
  pid = -1;
  return true;
}

void SamplerProcess::Impl::Run() {
  bool library = options.use_library;
  bool restarted = false;
  ChildEnd end;
  while (RunOnce(library, end) && !Finished(end)) {
    const std::string cause = Cause(end);
    const std::string twin = program + "-sysfs";
    // The loader did not find the library: the same program without it, and nothing was lost.
    if (end.exit_code == 127 && !said_anything && ::access(twin.c_str(), X_OK) == 0) {
      program = twin;
      library = false;
      const std::lock_guard lock(mutex);
      status.library.text = cause;
      continue;
    }
    const std::lock_guard lock(mutex);
    if (restarted) {
      status.lost = cause;
      break;
    }
    restarted = true;
    library = false;
    status.aborted = cause;
  }
  RestoreLevel();
  const std::lock_guard lock(mutex);
  if (started && not_started) status.lost = *not_started;  // a restart that did not start
  status.running = false;
  ended = true;
  changed.notify_all();
}

void SamplerProcess::Impl::ReadUntilEnd(Child& child) {
  std::array<pollfd, 3> fds = {pollfd{child.out(), POLLIN, 0}, pollfd{child.err(), POLLIN, 0},
                               pollfd{wake, POLLIN, 0}};
  std::array<Lines, 2> lines;
  int64_t heard_ns = MonotonicNs();
  const int64_t stall_ns = std::max<int64_t>(kStallMs, int64_t{20} * options.interval_ms) * 1'000'000;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    ::poll(fds.data(), fds.size(), 1000);
    for (size_t i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      std::array<char, 16384> data;
      const ssize_t n = ::read(fds[i].fd, data.data(), data.size());
      if (n <= 0) {
        if (n == 0 || errno != EINTR) fds[i].fd = -1;
        continue;
      }
      heard_ns = MonotonicNs();
      lines[i].Append(data.data(), static_cast<size_t>(n));
      for (std::string line; lines[i].Take(line);) {
        if (i == 0) {
          OnLine(line);
        } else if (!line.empty()) {
          last_error = line.substr(0, 500);
        }
      }
    }
    if (!stopping && MonotonicNs() - heard_ns > stall_ns) {
      stalled = true;
      ::kill(child.pid(), SIGKILL);
    }
    if (stopping && (fds[2].revents & POLLIN) != 0) fds[2].fd = -1;
  }
}

void SamplerProcess::Impl::OnLine(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return;
  said_anything = true;
  if (json.contains("event")) return OnEvent(json);
  if (std::optional<BoardSample> sample = ParseSample(json)) OnSample(std::move(*sample));
}

void SamplerProcess::Impl::OnSample(BoardSample sample) {
  {
    const std::lock_guard lock(mutex);
    int64_t& n = ticks[sample.pci];
    if (options.count != 0 && n >= options.count)
      return;  // a restart repeats the tick in which the library aborted
    ++n;
  }
  if (options.on_sample) options.on_sample(sample);
  const std::lock_guard lock(mutex);
  ++status.samples;
  last_ns = std::max(last_ns, sample.clocks.monotonic_ns);
  changed.notify_all();
}

void SamplerProcess::Impl::OnEvent(const Json& event) {
  const std::string what = StringAt(event, "event");
  if (what == "perf_level") held = HeldLevel{StringAt(event, "path"), StringAt(event, "was")};
  if (what == "restored") held.reset();
  const std::lock_guard lock(mutex);
  if (what == "library") {
    const auto used = event.find("used");
    LibraryState& l = StringAt(event, "name") == "nvml" ? status.nvml : status.library;
    l.used = used != event.end() && used->is_boolean() && used->get<bool>();
    if (l.used || l.text.empty()) l.text = StringAt(event, "text");
    if (l.used) {
      l.file = StringAt(event, "file");
      l.soname = StringAt(event, "soname");
      l.version = StringAt(event, "version");
    }
  } else if (what == "device") {
    const std::string pci = StringAt(event, "pci");
    const bool known = std::any_of(status.devices.begin(), status.devices.end(),
                                   [&](const SampledDevice& d) { return d.pci == pci; });
    if (!known) status.devices.push_back({pci, StringAt(event, "name"), StringAt(event, "library")});
  } else if (what == "no_device") {
    status.no_device = true;
  } else if (what == "warning") {
    status.perf_level_problem = StringAt(event, "text");
  }
  changed.notify_all();
}

// What the sampler could not put back because it was killed.
void SamplerProcess::Impl::RestoreLevel() {
  if (!held || ReadPerfLevel(held->path) == held->was) return;
  if (const std::optional<std::string> problem = SetPerfLevel(held->path, held->was)) {
    const std::lock_guard lock(mutex);
    status.perf_level_problem = *problem;
  }
}

void SamplerProcess::Impl::Stop() {
  if (!reader.joinable()) return;
  stopping = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake, &one, sizeof one);
  std::unique_lock lock(mutex);
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (pid > 0) ::kill(pid, signal);
    if (changed.wait_for(lock, std::chrono::milliseconds(kStopGraceMs), [this] { return ended; })) break;
  }
  lock.unlock();
  reader.join();
}

SamplerProcess::SamplerProcess(SamplerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
SamplerProcess::~SamplerProcess() = default;

SamplerStatus SamplerProcess::Status() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->status;
}

bool SamplerProcess::WaitForSample(int64_t monotonic_ns, int timeout_ms) const {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                          [&] { return impl_->ended || impl_->last_ns >= monotonic_ns; });
  return impl_->last_ns >= monotonic_ns;
}

bool SamplerProcess::WaitForEnd(int timeout_ms) const {
  std::unique_lock lock(impl_->mutex);
  return impl_->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return impl_->ended; });
}

void SamplerProcess::Stop() { impl_->Stop(); }

int SamplerProcess::pid() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->pid;
}

}  // namespace warmleg::telemetry
