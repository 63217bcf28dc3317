#include "harness/telemetry/watcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "backend/vt/error.h"
#include "harness/telemetry/nvml.h"
#include "harness/telemetry/sidecar.h"
#include "harness/telemetry/sysfs.h"

namespace warmleg::telemetry {
namespace {

constexpr int kFirstSampleMs = 10000;

// The board that the options name, or the only one.
SysfsBoard ChooseBoard(const WatchOptions& options, const Boards& found) {
  const std::vector<SysfsBoard>& boards = found.all;
  if (boards.empty()) {
    throw vt::EnvironmentError(fmt::format(
        "telemetry: no AMD GPU below {}/class/drm (is the amdgpu driver loaded?) and no NVIDIA GPU ({})",
        options.sys_root, found.nvml_why_not));
  }
  std::string list;
  for (const SysfsBoard& b : boards) list += fmt::format("\n  {}  {}", b.pci, b.name);
  if (options.pci == "auto") {
    if (boards.size() > 1) {
      throw vt::InputError(fmt::format("--telemetry-device auto: {} GPUs, name one by its PCI address:{}",
                                       boards.size(), list));
    }
    return boards.front();
  }
  const std::optional<std::string> pci = NormalisePci(options.pci);
  if (!pci) {
    throw vt::InputError(
        fmt::format("--telemetry-device {}: no PCI address (as 0000:c5:00.0) and not auto", options.pci));
  }
  const auto it =
      std::find_if(boards.begin(), boards.end(), [&](const SysfsBoard& b) { return b.pci == *pci; });
  if (it == boards.end()) {
    throw vt::InputError(
        fmt::format("--telemetry-device {}: no GPU at this address; there is{}", *pci, list));
  }
  return *it;
}

}  // namespace

struct Watcher::Impl {
  WatchOptions options;
  SysfsBoard board;
  std::unique_ptr<Nvml> nvml;  // of an NVIDIA board, for what is asked beside the samples
  size_t nvml_index = 0;
  mutable std::mutex mutex;
  std::vector<record::ClockSample> samples;         // under mutex, in time order
  std::vector<std::pair<int64_t, int64_t>> cpu_ns;  // under mutex: (time, CPU time of the sampler)
  std::optional<record::ClockSample> latest;        // under mutex
  std::optional<Sidecar> sidecar;                   // under mutex
  std::unique_ptr<SamplerProcess> process;          // last: its reader uses the above

  void OnSample(const BoardSample& sample) {
    const std::lock_guard lock(mutex);
    samples.push_back(sample.clocks);
    cpu_ns.emplace_back(sample.clocks.monotonic_ns, sample.sampler_cpu_ns);
    sidecar->Add(sample);
  }

  std::optional<double> CpuShare(int64_t begin_ns, int64_t end_ns) const;
  BoardRoots Roots() const;
  std::set<int> Ours(std::set<int> own) const;
  std::optional<std::set<int>> AllClients() const;
};

BoardRoots Watcher::Impl::Roots() const {
  return {.sys = options.sys_root, .debug = options.sys_root + "/kernel/debug"};
}

std::set<int> Watcher::Impl::Ours(std::set<int> own) const {
  own.insert({::getpid(), process->pid()});
  return own;
}

std::optional<std::set<int>> Watcher::Impl::AllClients() const {
  std::string reason;
  return nvml ? nvml->Clients(nvml_index, &reason) : Clients(board, Roots(), &reason);
}

// Over the ticks of the span; a restart in between sets the counter back and gives null.
std::optional<double> Watcher::Impl::CpuShare(int64_t begin_ns, int64_t end_ns) const {
  auto at = [&](int64_t ns) {
    return std::lower_bound(cpu_ns.begin(), cpu_ns.end(), ns,
                            [](const std::pair<int64_t, int64_t>& a, int64_t t) { return a.first < t; });
  };
  const auto first = at(begin_ns);
  auto last = at(end_ns);
  if (first == cpu_ns.end() || last == cpu_ns.begin()) return std::nullopt;
  --last;
  if (last->first <= first->first || last->second < first->second) return std::nullopt;
  return static_cast<double>(last->second - first->second) / static_cast<double>(last->first - first->first);
}

Watcher::Watcher() : impl_(std::make_unique<Impl>()) {}
Watcher::~Watcher() { Stop(); }

void Watcher::Start(const WatchOptions& options) {
  if (started()) throw vt::InputError("telemetry: the watcher runs already");
  Impl& impl = *impl_;
  impl.options = options;
  Boards boards = FindAllBoards(options.sys_root);
  impl.board = ChooseBoard(options, boards);
  if (impl.board.nvidia) {
    impl.nvml = std::move(boards.nvml);
    while (impl.nvml->boards()[impl.nvml_index].pci != impl.board.pci) ++impl.nvml_index;
  }
  impl.sidecar.emplace(impl.board.pci, impl.board.name, options.interval_ms);
  SamplerOptions o;
  o.pci = impl.board.pci;
  o.interval_ms = options.interval_ms;
  o.perf_level = options.perf_level;
  o.sys_root = options.sys_root;
  o.program = options.program;
  o.on_sample = [&impl](const BoardSample& sample) { impl.OnSample(sample); };
  impl.process = std::make_unique<SamplerProcess>(std::move(o));
  impl.process->WaitForSample(1, kFirstSampleMs);
}

bool Watcher::started() const { return impl_->process != nullptr; }
std::string Watcher::pci() const { return impl_->board.pci; }

record::ClockWindow Watcher::WindowFor(int64_t begin_ns, int64_t end_ns,
                                       const std::vector<PhaseSpan>& phases) {
  if (!started()) return {};
  if (!lost()) impl_->process->WaitForSample(end_ns, 3 * impl_->options.interval_ms);
  const std::lock_guard lock(impl_->mutex);
  record::ClockWindow window =
      MakeWindow(impl_->samples, begin_ns, end_ns, phases, int64_t{impl_->options.interval_ms} * 1'000'000);
  window.sampler_cpu_share = impl_->CpuShare(begin_ns, end_ns);
  return window;
}

std::vector<record::ClockSample> Watcher::Samples(int64_t begin_ns, int64_t end_ns) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<record::ClockSample> inside;
  for (const record::ClockSample& s : impl_->samples) {
    if (s.monotonic_ns >= begin_ns && s.monotonic_ns <= end_ns) inside.push_back(s);
  }
  return inside;
}

BoardFingerprint Watcher::Fingerprint(std::set<int> own) const {
  if (!started()) return {};
  if (impl_->nvml) return impl_->nvml->Describe(impl_->nvml_index, impl_->Ours(std::move(own)));
  return ReadBoard(impl_->board, impl_->Ours(std::move(own)), impl_->Roots());
}

std::optional<int64_t> Watcher::OtherClients(std::set<int> own) const {
  if (!started()) return std::nullopt;
  std::optional<std::set<int>> clients = impl_->AllClients();
  if (!clients) return std::nullopt;
  const size_t all = clients->size();
  const bool ours_computes = !own.empty();
  for (const int pid : impl_->Ours(std::move(own))) clients->erase(pid);
  // In a container NVML may count in another namespace: then even our own worker is not among its clients.
  if (impl_->nvml && ours_computes && clients->size() == all) return std::nullopt;
  return static_cast<int64_t>(clients->size());
}

void Watcher::Describe(record::Telemetry& out) const {
  if (!started()) return;
  out.device = record::TelemetryDevice{};
  out.device->pci = impl_->board.pci;
  out.interval_ms = impl_->options.interval_ms;
  out.lost = impl_->process->Status().lost;
  const std::lock_guard lock(impl_->mutex);
  out.sources = impl_->sidecar->sources();
}

std::vector<record::Reason> Watcher::Warnings() const {
  std::vector<record::Reason> out;
  if (!started()) return out;
  const SamplerStatus status = impl_->process->Status();
  if (status.aborted) {
    out.push_back(record::MakeReason(record::Code::rocm_smi_aborted, nullptr, nullptr, *status.aborted));
  }
  if (status.lost)
    out.push_back(record::MakeReason(record::Code::telemetry_lost, nullptr, nullptr, *status.lost));
  if (status.perf_level_problem) {
    out.push_back(
        record::MakeReason(record::Code::perf_level_not_set, nullptr, nullptr, *status.perf_level_problem));
  }
  return out;
}

bool Watcher::rocm_smi_aborted() const { return started() && impl_->process->Status().aborted.has_value(); }
bool Watcher::lost() const { return started() && impl_->process->Status().lost.has_value(); }

std::string Watcher::WriteSidecar(const std::string& path) const {
  if (!started()) throw vt::EnvironmentError("telemetry: no samples to write to " + path);
  const std::lock_guard lock(impl_->mutex);
  return impl_->sidecar->WriteTo(path);
}

void Watcher::Stop() {
  if (impl_->process) impl_->process->Stop();
}

}  // namespace warmleg::telemetry
