// warmleg-sampler: one JSON line per tick and board on stdout. It runs apart from the harness because
// librocm_smi64 may abort its process (libnvidia-ml is opened here too), and because a program that was
// killed cannot put the performance level back.
//
// Lines: {"event": "library" | "device" | "no_device" | "perf_level" | "warning" | "restored", ...} and
// samples (sample.h). The parent's death ends it: PR_SET_PDEATHSIG, getppid() at each tick, and a closed
// stdout. No single kill can leave the performance level behind: this process restores when the parent dies,
// the parent when this one does, and the line that tells the parent the old level is in the pipe before the
// new one is written.
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "harness/telemetry/board_reader.h"
#include "harness/telemetry/nvml.h"
#include "harness/telemetry/perf_level.h"
#include "harness/telemetry/rocm_smi.h"
#include "harness/telemetry/sample.h"
#include "harness/telemetry/sysfs.h"

namespace warmleg::telemetry {
namespace {

using record::Json;

volatile std::sig_atomic_t stop_asked = 0;
std::atomic<PerfLevelHold*> held_level{nullptr};
pid_t parent_at_start = 0;

void OnStop(int) { stop_asked = 1; }

// The library aborted or crashed. A living parent starts the next sampler, which keeps the level; an orphan
// restores.
void OnCrash(int signal) {
  const PerfLevelHold* hold = held_level.load();
  if (hold != nullptr && ::getppid() != parent_at_start) hold->ReleaseFromSignal();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

int64_t ClockNs(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// One write per line: a line is whole or not there. False when nobody reads any more.
bool Emit(const Json& line) {
  std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace);
  text += '\n';
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n < 0 && errno == EINTR && stop_asked == 0) {
      continue;
    } else {
      return false;
    }
  }
  return true;
}

struct Options {
  std::string pci;
  int interval_ms = 100;
  int64_t count = 0;
  bool no_library = false;
  std::string perf_level = "keep";
  std::string perf_restore;  // from the parent: what the first sampler found
  pid_t parent = 0;
  std::string sys_root = "/sys";
};

void Install(const Options& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  parent_at_start = options.parent != 0 ? options.parent : ::getppid();
  struct sigaction stop {};
  stop.sa_handler = OnStop;  // without SA_RESTART: a blocked write returns
  for (int s : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(s, &stop, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  struct sigaction crash {};
  crash.sa_handler = OnCrash;
  crash.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int s : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigaction(s, &crash, nullptr);
}

bool Orphaned() { return ::getppid() != parent_at_start; }

std::unique_ptr<ClockLibrary> OpenLibrary(const Options& options) {
  OpenedLibrary opened;
  if (options.no_library) {
    opened.why_not = "switched off";
  } else if (options.sys_root != "/sys") {
    opened.why_not = "it reads /sys, not " + options.sys_root;
  } else {
    opened = OpenRocmSmi();
  }
  Json line{{"event", "library"}, {"name", "rocm_smi"}, {"used", opened.library != nullptr}};
  if (opened.library) {
    line["file"] = opened.library->File();
    line["soname"] = opened.library->Soname();
    line["version"] = opened.library->Version();
    line["devices"] = opened.library->Devices();
  } else {
    line["text"] = opened.why_not;
  }
  Emit(line);
  return std::move(opened.library);
}

using Readers = std::vector<std::unique_ptr<SampleReader>>;

class NvmlReader : public SampleReader {
 public:
  NvmlReader(const Nvml& nvml, size_t index) : nvml_(nvml), index_(index) {}
  const SysfsBoard& board() const override { return nvml_.boards()[index_]; }
  BoardSample Read(int64_t monotonic_ns) override { return nvml_.Read(index_, monotonic_ns); }

 private:
  const Nvml& nvml_;
  size_t index_;
};

// NVML is spoken of only where a card is there or is asked for: on other machines its absence is no news.
void TellOfNvml(const Boards& boards, bool wanted) {
  Json line{{"event", "library"}, {"name", "nvml"}, {"used", boards.nvml != nullptr}};
  if (boards.nvml) {
    line["file"] = boards.nvml->File();
    line["soname"] = "libnvidia-ml.so.1";
    line["version"] = boards.nvml->Version();
  } else if (wanted) {
    line["text"] = boards.nvml_why_not;
  } else {
    return;
  }
  Emit(line);
}

// One reader a board, those of `pci` alone when it is given.
Readers ReadersFor(const Options& options, ClockLibrary* library, Boards& boards) {
  Readers readers;
  size_t card = 0;  // as NVML lists it
  for (SysfsBoard& board : boards.all) {
    const size_t index = board.nvidia ? card++ : 0;
    if (!options.pci.empty() && board.pci != options.pci) continue;
    Emit({{"event", "device"},
          {"pci", board.pci},
          {"name", board.name},
          {"library", board.nvidia ? "nvml" : "rocm_smi"}});
    if (board.nvidia) {
      readers.push_back(std::make_unique<NvmlReader>(*boards.nvml, index));
    } else {
      readers.push_back(std::make_unique<BoardReader>(std::move(board), library, options.sys_root));
    }
  }
  return readers;
}

// Tells the parent first, then writes. Without rights, or with more than one board, there is one warning.
std::unique_ptr<PerfLevelHold> TakeLevel(const Options& options, const Readers& readers) {
  if (options.perf_level == "keep") return nullptr;
  auto warn = [](const std::string& text) {
    Emit({{"event", "warning"}, {"code", "perf_level_not_set"}, {"text", text}});
  };
  if (readers.size() != 1) {
    warn("the performance level is set for one board; name it by its PCI address");
    return nullptr;
  }
  if (readers[0]->board().nvidia) {
    warn("an NVIDIA card has no performance level that can be set; its state stays with the driver");
    return nullptr;
  }
  const std::string path = PerfLevelPath(readers[0]->board().device_dir);
  const std::optional<std::string> found = ReadPerfLevel(path);
  if (!found) {
    warn("cannot read " + path);
    return nullptr;
  }
  const std::string restore_to = options.perf_restore.empty() ? *found : options.perf_restore;
  if (restore_to == options.perf_level) return nullptr;  // nothing to set, nothing to put back
  if (::access(path.c_str(), W_OK) != 0) {
    warn(fmt::format("no right to write {}: the performance level stays \"{}\"", path, *found));
    return nullptr;
  }
  if (!Emit({{"event", "perf_level"}, {"path", path}, {"was", restore_to}, {"set", options.perf_level}}))
    return nullptr;
  auto hold = std::make_unique<PerfLevelHold>(path, restore_to);
  held_level = hold.get();
  if (const auto problem = hold->Take(options.perf_level)) warn(*problem);
  return hold;
}

// Sleeps to the next multiple of the interval; ticks that were missed are skipped, not caught up.
void SleepToNextTick(int64_t* next_ns, int64_t interval_ns) {
  if (interval_ns == 0) return;
  const int64_t now = ClockNs(CLOCK_MONOTONIC);
  *next_ns += interval_ns;
  if (*next_ns <= now) *next_ns += (now - *next_ns) / interval_ns * interval_ns + interval_ns;
  const timespec until{static_cast<time_t>(*next_ns / 1'000'000'000),
                       static_cast<long>(*next_ns % 1'000'000'000)};
  if (stop_asked == 0) ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

int Sample(const Options& options) {
  const std::unique_ptr<ClockLibrary> library = OpenLibrary(options);
  Boards boards = FindAllBoards(options.sys_root);
  const Readers readers = ReadersFor(options, library.get(), boards);
  TellOfNvml(boards, readers.empty());
  if (readers.empty()) {
    Emit({{"event", "no_device"}, {"pci", options.pci}});
    return 3;
  }
  const std::unique_ptr<PerfLevelHold> level = TakeLevel(options, readers);
  const int64_t interval_ns = int64_t{options.interval_ms} * 1'000'000;
  int64_t next_ns = ClockNs(CLOCK_MONOTONIC);
  bool heard = true;
  for (int64_t tick = 0; heard && stop_asked == 0 && !Orphaned(); ++tick) {
    if (options.count != 0 && tick == options.count) break;
    if (tick != 0) SleepToNextTick(&next_ns, interval_ns);
    for (const std::unique_ptr<SampleReader>& reader : readers) {
      if (stop_asked != 0 || !heard) break;
      BoardSample sample = reader->Read(ClockNs(CLOCK_MONOTONIC));
      sample.sampler_cpu_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
      heard = Emit(SampleJson(sample));
    }
  }
  if (level) {
    const std::optional<std::string> problem = level->Release();
    held_level = nullptr;
    Json line{{"event", problem ? "warning" : "restored"}};
    if (problem) line.update({{"code", "perf_level_not_restored"}, {"text", *problem}});
    Emit(line);
  }
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Samples clocks, power and temperature of AMD and NVIDIA GPUs; one JSON line per tick and board on "
      "stdout.\n"
      "The harness starts it; by hand: warmleg-sampler --count 1");
  app.add_option("--pci", options.pci, "only the board at this PCI address (0000:c5:00.0)");
  app.add_option("--interval-ms", options.interval_ms, "time between ticks; 0: none")
      ->check(CLI::Range(0, 60000));
  app.add_option("--count", options.count, "ticks; 0: until stopped");
  app.add_flag("--no-rocm-smi", options.no_library, "do not open librocm_smi64");
  app.add_option("--perf-level", options.perf_level, "keep or high")->check(CLI::IsMember({"keep", "high"}));
  app.add_option("--perf-restore", options.perf_restore,
                 "level to put back at the end instead of the one found");
  app.add_option("--parent", options.parent, "end when this process is no longer the parent");
  app.add_option("--sys-root", options.sys_root, "read this folder instead of /sys");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : 2;
  }
  if (!options.pci.empty()) {
    const std::optional<std::string> pci = NormalisePci(options.pci);
    if (!pci) {
      fmt::print(stderr, "warmleg-sampler: --pci {} is no PCI address (as 0000:c5:00.0)\n", options.pci);
      return 2;
    }
    options.pci = *pci;
  }
  Install(options);
  if (Orphaned()) return 0;  // the parent died before the signal was asked for
  return Sample(options);
}

}  // namespace
}  // namespace warmleg::telemetry

int main(int argc, char** argv) { return warmleg::telemetry::Main(argc, argv); }
