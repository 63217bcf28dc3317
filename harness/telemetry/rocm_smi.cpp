#include "harness/telemetry/rocm_smi.h"

#include <dlfcn.h>
#include <link.h>
#include <rocm_smi/rocm_smi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace warmleg::telemetry {
namespace {

constexpr Source kFrom = Source::rocm_smi;

Missing Reason(rsmi_status_t status) {
  switch (status) {
    case RSMI_STATUS_NOT_SUPPORTED:
    case RSMI_STATUS_NOT_FOUND:
    case RSMI_STATUS_NOT_YET_IMPLEMENTED:
      return Missing::unsupported;
    case RSMI_STATUS_PERMISSION:
      return Missing::permission;
    default:
      return Missing::error;
  }
}

std::string Describe(rsmi_status_t status) {
  const char* text = nullptr;
  if (rsmi_status_string(status, &text) != RSMI_STATUS_SUCCESS || text == nullptr) {
    return fmt::format("status {}", static_cast<int>(status));
  }
  return fmt::format("status {} {}", static_cast<int>(status), text);
}

// Majors differ: has_deep_sleep came with 6.0, and a list without a current level is status 0 before it and
// UNEXPECTED_DATA after.
template <typename Frequencies>
bool DeepSleepFirst(const Frequencies& f) {
  if constexpr (requires { f.has_deep_sleep; }) {
    return f.has_deep_sleep;
  } else {
    return false;
  }
}

template <typename Frequencies>
LibraryClock FromFrequencies(rsmi_status_t status, const Frequencies& f) {
  LibraryClock out{Null(Missing::error, kFrom), Null(Missing::error, kFrom)};
  const bool listed_without_current = status == RSMI_STATUS_UNEXPECTED_DATA && f.num_supported > 0;
  if (status != RSMI_STATUS_SUCCESS && !listed_without_current) {
    out.mhz.missing = out.top_mhz.missing = Reason(status);
    return out;
  }
  const size_t count = std::min<size_t>(f.num_supported, std::size(f.frequency));
  double top = 0;
  for (size_t i = DeepSleepFirst(f) ? 1 : 0; i < count; ++i) {
    const uint64_t mhz = f.frequency[i] / 1000000;
    if (!IsAllOnes(mhz)) top = std::max(top, static_cast<double>(mhz));
  }
  if (top > 0) out.top_mhz = Value(top, kFrom);
  if (f.current >= count) {
    out.mhz.missing = Missing::no_current_level;
  } else if (const uint64_t mhz = f.frequency[f.current] / 1000000; IsAllOnes(mhz)) {
    out.mhz.missing = Missing::sentinel_value;
  } else {
    out.mhz = Value(static_cast<double>(mhz), kFrom);
  }
  return out;
}

LibraryClock Clock(uint32_t device, rsmi_clk_type_t type) {
  rsmi_frequencies_t f;
  std::memset(&f, 0, sizeof f);
  const rsmi_status_t status = rsmi_dev_gpu_clk_freq_get(device, type, &f);
  return FromFrequencies(status, f);
}

template <typename T>
Number Divided(rsmi_status_t status, T raw, double by) {
  if (status != RSMI_STATUS_SUCCESS) return Null(Reason(status), kFrom);
  if (IsAllOnes(static_cast<uint64_t>(raw))) return Null(Missing::sentinel_value, kFrom);
  return Value(static_cast<double>(raw) / by, kFrom);
}

Number Temperature(uint32_t device, rsmi_temperature_type_t sensor) {
  int64_t milli = 0;
  const rsmi_status_t status = rsmi_dev_temp_metric_get(device, sensor, RSMI_TEMP_CURRENT, &milli);
  return Divided(status, milli, 1e3);
}

Number Power(uint32_t device) {
  uint64_t micro = 0;
#ifdef WARMLEG_RSMI_HAS_POWER_GET  // 6.0 and later: reads power1_input as well
  RSMI_POWER_TYPE type{};
  const rsmi_status_t status = rsmi_dev_power_get(device, &micro, &type);
#else
  const rsmi_status_t status = rsmi_dev_power_ave_get(device, 0, &micro);
#endif
  return Divided(status, micro, 1e6);
}

// The driver's words for the levels.
Text PerfLevelText(uint32_t device) {
  rsmi_dev_perf_level_t level = RSMI_DEV_PERF_LEVEL_UNKNOWN;
  const rsmi_status_t status = rsmi_dev_perf_level_get(device, &level);
  if (status != RSMI_STATUS_SUCCESS) return Null<std::string>(Reason(status), kFrom);
  constexpr std::array kWords = {
      std::pair{RSMI_DEV_PERF_LEVEL_AUTO, "auto"},
      std::pair{RSMI_DEV_PERF_LEVEL_LOW, "low"},
      std::pair{RSMI_DEV_PERF_LEVEL_HIGH, "high"},
      std::pair{RSMI_DEV_PERF_LEVEL_MANUAL, "manual"},
      std::pair{RSMI_DEV_PERF_LEVEL_STABLE_STD, "profile_standard"},
      std::pair{RSMI_DEV_PERF_LEVEL_STABLE_PEAK, "profile_peak"},
      std::pair{RSMI_DEV_PERF_LEVEL_STABLE_MIN_MCLK, "profile_min_mclk"},
      std::pair{RSMI_DEV_PERF_LEVEL_STABLE_MIN_SCLK, "profile_min_sclk"},
      std::pair{RSMI_DEV_PERF_LEVEL_DETERMINISM, "perf_determinism"},
  };
  for (const auto& [value, word] : kWords) {
    if (value == level) return Value(std::string(word), kFrom);
  }
  return Null<std::string>(Missing::unsupported, kFrom);  // "unknown": the file's own text is better
}

std::string PciOf(uint64_t id) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id >> 32, id >> 8 & 0xFF, id >> 3 & 0x1F, id & 7);
}

// Path of the first mapped file whose name has `part` in it.
std::string MappedFile(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash != std::string::npos && line.find(part, slash) != std::string::npos) return line.substr(slash);
  }
  return {};
}

// File and DT_SONAME of the library that answers.
std::pair<std::string, std::string> Mapped() {
  Dl_info info{};
  link_map* map = nullptr;
  const int found =
      ::dladdr1(reinterpret_cast<void*>(&rsmi_init), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  if (found == 0 || map == nullptr) return {};
  const char* strings = nullptr;
  size_t soname = 0;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
    if (d->d_tag == DT_SONAME) soname = d->d_un.d_val;
  }
  return {map->l_name, strings != nullptr && soname != 0 ? strings + soname : ""};
}

class RocmSmi : public ClockLibrary {
 public:
  explicit RocmSmi(std::vector<std::string> devices) : devices_(std::move(devices)), rare_(devices_.size()) {}
  ~RocmSmi() override { rsmi_shut_down(); }
  RocmSmi(const RocmSmi&) = delete;
  RocmSmi& operator=(const RocmSmi&) = delete;

  const std::vector<std::string>& Devices() const override { return devices_; }
  std::string File() const override { return Mapped().first; }
  std::string Soname() const override { return Mapped().second; }
  std::string Version() const override {
    rsmi_version_t v;
    std::memset(&v, 0, sizeof v);
    if (rsmi_version_get(&v) != RSMI_STATUS_SUCCESS) return {};
    return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
  }

  LibraryReading Read(size_t device) override {
    const auto dv = static_cast<uint32_t>(device);
    LibraryReading r;
    r.sclk = Clock(dv, RSMI_CLK_TYPE_SYS);
    r.mclk = Clock(dv, RSMI_CLK_TYPE_MEM);
    r.perf_level = PerfLevelText(dv);
    r.power_w = Power(dv);
    Rare& rare = rare_[device];
    r.power_cap_w = rare.cap.Ask([&] {
      uint64_t cap = 0;
      const rsmi_status_t status = rsmi_dev_power_cap_get(dv, 0, &cap);
      return Divided(status, cap, 1e6);
    });
    r.temp_c = Temperature(dv, RSMI_TEMP_TYPE_EDGE);
    r.junction_c = rare.junction.Ask([&] { return Temperature(dv, RSMI_TEMP_TYPE_JUNCTION); });
    r.memory_c = rare.memory.Ask([&] { return Temperature(dv, RSMI_TEMP_TYPE_MEMORY); });
    uint32_t busy = 0;
    const rsmi_status_t busy_status = rsmi_dev_busy_percent_get(dv, &busy);
    r.busy_percent = Divided(busy_status, busy, 1);
    r.memory_busy_percent = rare.memory_busy.Ask([&] {
      const rsmi_status_t status = rsmi_dev_memory_busy_percent_get(dv, &busy);
      return Divided(status, busy, 1);
    });
    return r;
  }

  LibraryClock ReadFclk(size_t device) override {
    return Clock(static_cast<uint32_t>(device), RSMI_CLK_TYPE_DF);
  }

 private:
  // What this board does not have is asked for once a second, not at every tick: the sampler must stay cheap.
  class Seldom {
   public:
    template <typename F>
    Number Ask(F ask) {
      const auto now = std::chrono::steady_clock::now();
      if (now < again_) return Null(Missing::unsupported, kFrom);
      const Number n = ask();
      if (!n.value && n.missing == Missing::unsupported) again_ = now + std::chrono::seconds(1);
      return n;
    }

   private:
    std::chrono::steady_clock::time_point again_;
  };
  struct Rare {
    Seldom cap, junction, memory, memory_busy;
  };
  std::vector<std::string> devices_;
  std::vector<Rare> rare_;  // by device
};

}  // namespace

OpenedLibrary OpenRocmSmi() {
  if (const std::string other = MappedFile("libamd_smi"); !other.empty()) {
    return {nullptr, other + " is in the process already; two SMI libraries do not go together"};
  }
  const rsmi_status_t init = rsmi_init(0);
  if (init != RSMI_STATUS_SUCCESS) return {nullptr, "rsmi_init: " + Describe(init)};
  uint32_t count = 0;
  const rsmi_status_t counted = rsmi_num_monitor_devices(&count);
  if (counted != RSMI_STATUS_SUCCESS) {
    rsmi_shut_down();
    return {nullptr, "rsmi_num_monitor_devices: " + Describe(counted)};
  }
  std::vector<std::string> devices;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t id = 0;
    const rsmi_status_t status = rsmi_dev_pci_id_get(i, &id);
    devices.push_back(status == RSMI_STATUS_SUCCESS ? PciOf(id) : std::string());
  }
  return {std::make_unique<RocmSmi>(std::move(devices)), {}};
}

}  // namespace warmleg::telemetry
