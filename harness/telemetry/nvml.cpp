#include "harness/telemetry/nvml.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/telemetry/gpu_metrics.h"

namespace warmleg::telemetry {
namespace {

constexpr Source kFrom = Source::nvml;

// nvmlReturn_t
enum Status : int {
  kSuccess = 0,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kNoData = 21,
};
constexpr int kClockSm = 1, kClockMemory = 2;  // nvmlClockType_t
constexpr int kSensorGpu = 0;                  // nvmlTemperatureSensors_t
constexpr int kStateUnknown = 32;              // nvmlPstates_t
// Times between two readings of what is dear or changes slowly: the sampler must stay cheap. Measured on an
// H200, CPU time a call: top clock 1.3 ms, utilisation 0.18 ms, all others below 0.08 ms.
constexpr int64_t kSeldomNs = 1'000'000'000;
constexpr int64_t kBusyNs = 150'000'000;  // the driver's own average is over a sixth of a second or more
constexpr uint64_t kReasonIdle = 1;       // of nvmlClocksEventReasons: nothing runs, nothing is held back

using Handle = void*;
struct PciInfo {  // nvmlPciInfo_t
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
struct Utilization {  // nvmlUtilization_t, percent
  unsigned gpu, memory;
};
struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total, free, used;
};
struct Process {  // nvmlProcessInfo_t of the _v3 calls
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

struct NamedReason {
  uint64_t bit;
  std::string_view name;
  ThrottleClass what;
};
constexpr std::array kReasons = {
    NamedReason{0x2, "applications_clocks_setting", ThrottleClass::other},
    NamedReason{0x4, "sw_power_cap", ThrottleClass::power},
    NamedReason{0x8, "hw_slowdown", ThrottleClass::hw_slowdown},
    NamedReason{0x10, "sync_boost", ThrottleClass::other},
    NamedReason{0x20, "sw_thermal_slowdown", ThrottleClass::thermal},
    NamedReason{0x40, "hw_thermal_slowdown", ThrottleClass::thermal},
    NamedReason{0x80, "hw_power_brake_slowdown", ThrottleClass::hw_slowdown},
    NamedReason{0x100, "display_clock_setting", ThrottleClass::other},
};

Missing Why(int status) {
  switch (status) {
    case kNotSupported:
    case kNotFound:
    case kFunctionNotFound:
      return Missing::unsupported;
    case kNoPermission:
      return Missing::permission;
    case kNoData:
      return Missing::empty;
    case kGpuIsLost:
      return Missing::lost;
    default:
      return Missing::error;
  }
}

// One function of the library; calling one that is not there is kFunctionNotFound.
template <class... P>
class Function {
 public:
  void Find(void* library, const char* name) {
    call_ = reinterpret_cast<int (*)(P...)>(::dlsym(library, name));
  }
  explicit operator bool() const { return call_ != nullptr; }
  int operator()(P... arguments) const { return call_ == nullptr ? kFunctionNotFound : call_(arguments...); }

 private:
  int (*call_)(P...) = nullptr;
};

record::Reading<record::Throttle> ThrottleOf(uint64_t bits) {
  record::Throttle throttle;
  throttle.raw = bits;
  for (const NamedReason& reason : kReasons) {
    if ((bits & reason.bit) == 0) continue;
    throttle.active.emplace_back(reason.name);
    throttle.thermal |= reason.what == ThrottleClass::thermal;
    throttle.power_cap |= reason.what == ThrottleClass::power;
    throttle.hw_slowdown |= reason.what == ThrottleClass::hw_slowdown;
    bits &= ~reason.bit;
  }
  bits &= ~kReasonIdle;
  for (int bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1) != 0) throttle.active.push_back(fmt::format("reason_bit_{}", bit));
  }
  return Value(std::move(throttle), kFrom);
}

Number ToNumber(int status, unsigned raw, double by) {
  if (status != kSuccess) return Null(Why(status), kFrom);
  if (IsAllOnes(raw)) return Null(Missing::sentinel_value, kFrom);
  return Value(raw / by, kFrom);
}
Number Ask(const Function<Handle, unsigned*>& function, Handle card, double by) {
  unsigned raw = 0;
  const int status = function(card, &raw);
  return ToNumber(status, raw, by);
}
Number Ask(const Function<Handle, int, unsigned*>& function, Handle card, int which) {
  unsigned raw = 0;
  const int status = function(card, which, &raw);
  return ToNumber(status, raw, 1);
}

// What is not asked for at every tick, and until when it holds.
struct Kept {
  int64_t seldom_until_ns = 0, busy_until_ns = 0;
  Number top_sclk_mhz, power_cap_w, temp_c;
  Number busy_percent, memory_busy_percent;
};

}  // namespace

struct Nvml::Impl {
  void* library = nullptr;
  bool started = false;
  std::vector<std::pair<SysfsBoard, Handle>> cards;
  std::vector<SysfsBoard> boards;
  std::vector<Kept> kept;  // of each card

  Function<> init, shutdown;
  Function<char*, unsigned> version, driver;
  Function<unsigned*> count;
  Function<unsigned, Handle*> handle;
  Function<Handle, char*, unsigned> name, vbios;
  Function<Handle, PciInfo*> pci;
  Function<Handle, int, unsigned*> clock, top_clock, temperature;
  Function<Handle, unsigned*> power, power_cap;
  Function<Handle, Utilization*> utilization;
  Function<Handle, unsigned long long*> reasons;
  Function<Handle, int*> state;
  Function<Handle, Memory*> memory;
  Function<Handle, unsigned*, Process*> processes;

  ~Impl() {
    if (started) shutdown();
    if (library != nullptr) ::dlclose(library);
  }
  void FindFunctions();
  int FindCards();
  const Kept& Refresh(size_t board, int64_t now_ns);
};

void Nvml::Impl::FindFunctions() {
  init.Find(library, "nvmlInit_v2");
  shutdown.Find(library, "nvmlShutdown");
  version.Find(library, "nvmlSystemGetNVMLVersion");
  driver.Find(library, "nvmlSystemGetDriverVersion");
  count.Find(library, "nvmlDeviceGetCount_v2");
  handle.Find(library, "nvmlDeviceGetHandleByIndex_v2");
  name.Find(library, "nvmlDeviceGetName");
  vbios.Find(library, "nvmlDeviceGetVbiosVersion");
  pci.Find(library, "nvmlDeviceGetPciInfo_v3");
  clock.Find(library, "nvmlDeviceGetClockInfo");
  top_clock.Find(library, "nvmlDeviceGetMaxClockInfo");
  temperature.Find(library, "nvmlDeviceGetTemperature");
  power.Find(library, "nvmlDeviceGetPowerUsage");
  power_cap.Find(library, "nvmlDeviceGetEnforcedPowerLimit");
  utilization.Find(library, "nvmlDeviceGetUtilizationRates");
  reasons.Find(library, "nvmlDeviceGetCurrentClocksEventReasons");  // since driver 535; the name before it:
  if (!reasons) reasons.Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
  state.Find(library, "nvmlDeviceGetPerformanceState");
  memory.Find(library, "nvmlDeviceGetMemoryInfo");
  processes.Find(library, "nvmlDeviceGetComputeRunningProcesses_v3");
}

// A card that does not tell its address is left out: nothing could be matched to it.
int Nvml::Impl::FindCards() {
  unsigned n = 0;
  if (const int status = count(&n); status != kSuccess) return status;
  for (unsigned i = 0; i < n; ++i) {
    Handle card = nullptr;
    PciInfo info{};
    if (handle(i, &card) != kSuccess || pci(card, &info) != kSuccess) continue;
    SysfsBoard board;
    board.pci = fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
    board.nvidia = true;
    board.device_dir = "/sys/bus/pci/devices/" + board.pci;
    std::array<char, 96> text{};
    board.name = name(card, text.data(), text.size()) == kSuccess ? text.data() : "NVIDIA GPU";
    cards.emplace_back(std::move(board), card);
  }
  std::sort(cards.begin(), cards.end(),
            [](const auto& a, const auto& b) { return a.first.pci < b.first.pci; });
  for (const auto& [board, card] : cards) boards.push_back(board);
  kept.resize(cards.size());
  return kSuccess;
}

const Kept& Nvml::Impl::Refresh(size_t board, int64_t now_ns) {
  const Handle card = cards.at(board).second;
  Kept& k = kept[board];
  if (now_ns >= k.seldom_until_ns) {
    k.seldom_until_ns = now_ns + kSeldomNs;
    // A property of the board.
    if (!k.top_sclk_mhz.value) k.top_sclk_mhz = Ask(top_clock, card, kClockSm);
    k.power_cap_w = Ask(power_cap, card, 1e3);
    k.temp_c = Ask(temperature, card, kSensorGpu);
  }
  if (now_ns >= k.busy_until_ns) {
    k.busy_until_ns = now_ns + kBusyNs;
    Utilization busy{};
    if (const int status = utilization(card, &busy); status == kSuccess) {
      k.busy_percent = Value(static_cast<double>(busy.gpu), kFrom);
      k.memory_busy_percent = Value(static_cast<double>(busy.memory), kFrom);
    } else {
      k.busy_percent = k.memory_busy_percent = Null(Why(status), kFrom);
    }
  }
  return k;
}

Nvml::Nvml(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Nvml::~Nvml() = default;

OpenedNvml Nvml::Open(const std::string& file) {
  auto impl = std::make_unique<Impl>();
  impl->library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (impl->library == nullptr) {
    const char* text = ::dlerror();
    return {nullptr, text != nullptr ? text : file + " cannot be opened"};
  }
  impl->FindFunctions();
  if (const int status = impl->init(); status != kSuccess) {
    return {nullptr, fmt::format("{}: nvmlInit_v2: status {}", file, status)};
  }
  impl->started = true;
  if (const int status = impl->FindCards(); status != kSuccess) {
    return {nullptr, fmt::format("{}: nvmlDeviceGetCount_v2: status {}", file, status)};
  }
  if (impl->cards.empty()) return {nullptr, file + " lists no card with a PCI address"};
  return {std::unique_ptr<Nvml>(new Nvml(std::move(impl))), {}};
}

const std::vector<SysfsBoard>& Nvml::boards() const { return impl_->boards; }

BoardSample Nvml::Read(size_t board, int64_t monotonic_ns) const {
  Impl& nvml = *impl_;
  const auto& [info, card] = nvml.cards.at(board);
  BoardSample sample;
  sample.pci = info.pci;
  VisitFields(sample, [](auto& field) {  // what NVML has no call for
    field.missing = Missing::unsupported;
    field.source = kFrom;
  });
  record::ClockSample& clocks = sample.clocks;
  clocks.monotonic_ns = monotonic_ns;
  clocks.sclk_mhz = Ask(nvml.clock, card, kClockSm);
  clocks.mclk_mhz = Ask(nvml.clock, card, kClockMemory);
  clocks.power_w = Ask(nvml.power, card, 1e3);
  const Kept& kept = nvml.Refresh(board, monotonic_ns);
  clocks.top_sclk_mhz = kept.top_sclk_mhz;
  clocks.power_cap_w = kept.power_cap_w;
  clocks.temp_c = kept.temp_c;
  clocks.busy_percent = kept.busy_percent;
  sample.memory_busy_percent = kept.memory_busy_percent;
  int state = kStateUnknown;
  if (const int status = nvml.state(card, &state); status != kSuccess) {
    clocks.perf_level = Null<std::string>(Why(status), kFrom);
  } else if (state >= 0 && state < kStateUnknown) {
    clocks.perf_level = Value(fmt::format("P{}", state), kFrom);
  }
  unsigned long long reasons = 0;
  if (const int status = nvml.reasons(card, &reasons); status == kSuccess) {
    clocks.throttle = ThrottleOf(reasons);
  } else {
    clocks.throttle = Null<record::Throttle>(Why(status), kFrom);
  }
  return sample;
}

std::optional<std::set<int>> Nvml::Clients(size_t board, std::string* reason) const {
  std::vector<Process> list(64);
  auto count = static_cast<unsigned>(list.size());
  int status = impl_->processes(impl_->cards.at(board).second, &count, list.data());
  if (status == kInsufficientSize) {
    list.resize(count + 16);
    count = static_cast<unsigned>(list.size());
    status = impl_->processes(impl_->cards.at(board).second, &count, list.data());
  }
  if (status != kSuccess) {
    *reason = fmt::format("{}: nvmlDeviceGetComputeRunningProcesses_v3", record::Name(Why(status)));
    return std::nullopt;
  }
  std::set<int> pids;
  for (unsigned i = 0; i < std::min<size_t>(count, list.size()); ++i)
    pids.insert(static_cast<int>(list[i].pid));
  return pids;
}

BoardFingerprint Nvml::Describe(size_t board, const std::set<int>& own) const {
  const auto& [info, card] = impl_->cards.at(board);
  BoardFingerprint out;
  out.nvidia = true;
  out.gpu.name = info.name;
  out.gpu.pci = info.pci;
  std::array<char, 96> text{};
  const auto note = [&](const char* field, int status) {
    out.unreadable[field] = fmt::format("{}: nvml status {}", record::Name(Why(status)), status);
  };
  if (const int status = impl_->vbios(card, text.data(), text.size()); status == kSuccess) {
    out.gpu.vbios = text.data();
  } else {
    note("gpu.vbios", status);
  }
  Memory memory{};
  if (const int status = impl_->memory(card, &memory); status == kSuccess) {
    out.gpu.vram_bytes = static_cast<int64_t>(memory.total);
  } else {
    note("gpu.vram_bytes", status);
  }
  if (const int status = impl_->driver(text.data(), text.size()); status == kSuccess) {
    out.driver = text.data();
  } else {
    note("cuda.driver", status);
  }
  std::string reason;
  if (std::optional<std::set<int>> clients = Clients(board, &reason)) {
    for (const int pid : own) clients->erase(pid);
    out.other_clients = static_cast<int64_t>(clients->size());
  } else {
    out.unreadable["other_clients"] = reason;
  }
  return out;
}

std::string Nvml::File() const {
  link_map* map = nullptr;
  if (::dlinfo(impl_->library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  return map->l_name;
}

std::string Nvml::Version() const {
  std::array<char, 96> text{};
  return impl_->version(text.data(), text.size()) == kSuccess ? text.data() : "";
}

Boards FindAllBoards(const std::string& sys_root) {
  Boards boards;
  boards.all = FindBoards(sys_root);
  if (sys_root != "/sys") {
    boards.nvml_why_not = "it tells of this machine, not of " + sys_root;
    return boards;
  }
  OpenedNvml opened = Nvml::Open();
  boards.nvml = std::move(opened.library);
  boards.nvml_why_not = std::move(opened.why_not);
  if (boards.nvml != nullptr) {
    for (const SysfsBoard& board : boards.nvml->boards()) boards.all.push_back(board);
  }
  return boards;
}

}  // namespace warmleg::telemetry
