#include "harness/telemetry/board_reader.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "harness/telemetry/dpm.h"

namespace warmleg::telemetry {
namespace {

// Once a second: what is dear and under no rule (scaling_cur_freq may cost milliseconds), and what is not
// there.
constexpr int64_t kSeldomNs = 1'000'000'000;
constexpr double kMaxApuW = 1000;
constexpr double kMinBusyW = 1;
constexpr double kLoadPercent = 90;

// A temperature outside this is a number in another unit.
Number Celsius(Number n) {
  if (n.value && (*n.value < -60 || *n.value > 200)) return Null(Missing::unit_suspect, *n.source);
  return n;
}

Number Percent(Number n) {
  if (n.value && *n.value > 100) return Null(Missing::unit_suspect, *n.source);
  return n;
}

}  // namespace

BoardReader::BoardReader(SysfsBoard board, ClockLibrary* library, std::string sys_root)
    : board_(std::move(board)), library_(library), sys_root_(std::move(sys_root)) {
  if (library_ != nullptr) {
    const auto& devices = library_->Devices();
    for (size_t i = 0; i < devices.size(); ++i) {
      if (devices[i] == board_.pci) library_index_ = i;
    }
  }
  const GpuMetrics metrics = ReadMetrics();  // the base from which throttle residency may rise
  residency_ = metrics.residency;
  apu_ = metrics.format == 3;
}

bool BoardReader::Suspended(int64_t now_ns) {
  if (now_ns < no_status_until_ns_) return false;
  const Text status = ReadTrimmed(board_.device_dir + "/power/runtime_status", Source::sysfs);
  if (!status.value) no_status_until_ns_ = now_ns + kSeldomNs;
  return status.value && *status.value == "suspended";
}

GpuMetrics BoardReader::ReadMetrics() const {
  const FileText file = ReadFile(board_.device_dir + "/gpu_metrics");
  GpuMetricsResult result;
  if (file.missing) {
    result.reason = *file.missing;
  } else {
    result = ParseGpuMetrics(file.Bytes());
  }
  return result.metrics ? *result.metrics : NoGpuMetrics(result.reason);
}

Number BoardReader::HwmonFrequency(const char* label) const {
  if (label == nullptr || board_.hwmon_dir.empty()) return Null(Missing::unsupported, Source::hwmon);
  for (int i = 1; i <= 2; ++i) {
    const std::string base = fmt::format("{}/freq{}_", board_.hwmon_dir, i);
    const Text name = ReadTrimmed(base + "label", Source::hwmon);
    if (name.value && *name.value == label) return ReadNumber(base + "input", 1e6, Source::hwmon);
  }
  return Null(Missing::unsupported, Source::hwmon);
}

Number BoardReader::HwmonTemperature(const char* label, int64_t now_ns) {
  int64_t& again_ns = no_sensor_until_ns_[label];
  if (board_.hwmon_dir.empty() || now_ns < again_ns) return Null(Missing::unsupported, Source::hwmon);
  for (int i = 1; i <= 3; ++i) {
    const std::string base = fmt::format("{}/temp{}_", board_.hwmon_dir, i);
    const Text name = ReadTrimmed(base + "label", Source::hwmon);
    if (name.value && *name.value == label) return ReadNumber(base + "input", 1e3, Source::hwmon);
  }
  again_ns = now_ns + kSeldomNs;
  return Null(Missing::unsupported, Source::hwmon);
}

Number BoardReader::ReadClock(const ClockFiles& files, const LibraryClock& from_library,
                              const Number& from_metrics, Number* top, bool* deep_sleep) const {
  const FileText file = ReadFile(board_.device_dir + "/" + files.dpm);
  const DpmTable table = file.missing ? DpmTable{} : ParseDpm(file.text);
  Number library = from_library.mhz;
  // The library takes the first of two marked levels; the file shows that there are two.
  if (library.value && !file.missing && table.problem == Missing::ambiguous) {
    library = Null(Missing::ambiguous, Source::rocm_smi);
  }
  Number sysfs = Null(file.missing.value_or(table.problem.value_or(Missing::error)), Source::sysfs);
  if (table.current_mhz) sysfs = Value(*table.current_mhz, Source::sysfs);
  if (top != nullptr) {
    *top = from_library.top_mhz;
    const std::optional<double> listed = table.TopMhz();
    *top = Prefer(*top, listed ? Value(*listed, Source::sysfs) : Null(sysfs.missing, Source::sysfs));
  }
  if (deep_sleep != nullptr) *deep_sleep = table.deep_sleep;
  Number clock = Prefer(std::move(library), std::move(sysfs));
  if (!clock.value) clock = Prefer(std::move(clock), HwmonFrequency(files.hwmon_label));
  return Prefer(std::move(clock), from_metrics);
}

Number BoardReader::ReadBusy(const LibraryReading& library, const GpuMetrics& metrics) const {
  const std::string path = board_.device_dir + "/gpu_busy_percent";
  Number first = Percent(library.busy_percent);
  // 0 % is also what the library makes of an empty file.
  if (first.value && *first.value == 0) {
    if (const FileText file = ReadFile(path); file.missing == Missing::empty) {
      first = Null(Missing::empty, Source::rocm_smi);
    }
  }
  if (!first.value) first = Prefer(std::move(first), Percent(ReadNumber(path, 1, Source::sysfs)));
  return Prefer(std::move(first), metrics.busy_percent);
}

Number BoardReader::ReadPower(const LibraryReading& library, const GpuMetrics& metrics,
                              const Number& busy) const {
  const bool loaded = busy.value && *busy.value >= kLoadPercent;
  auto plausible = [&](Number n) {
    if (n.value && ((apu_ && *n.value > kMaxApuW) || (loaded && *n.value < kMinBusyW))) {
      return Null(Missing::unit_suspect, *n.source);
    }
    return n;
  };
  Number power = plausible(library.power_w);
  for (const char* file : {"/power1_average", "/power1_input"}) {
    if (power.value || board_.hwmon_dir.empty()) break;
    power = Prefer(std::move(power), plausible(ReadNumber(board_.hwmon_dir + file, 1e6, Source::hwmon)));
  }
  return Prefer(std::move(power), plausible(metrics.socket_power_w));
}

void BoardReader::ReadTemperatures(const LibraryReading& library, const GpuMetrics& metrics,
                                   BoardSample& sample) {
  auto read = [&](const Number& from_library, const char* label, const Number& from_metrics) {
    Number n = Celsius(from_library);
    if (!n.value) n = Prefer(std::move(n), Celsius(HwmonTemperature(label, sample.clocks.monotonic_ns)));
    return Prefer(std::move(n), Celsius(from_metrics));
  };
  sample.clocks.temp_c = read(library.temp_c, "edge", metrics.temp_c);
  sample.junction_c = read(library.junction_c, "junction", metrics.junction_c);
  sample.memory_c = read(library.memory_c, "mem", metrics.memory_c);
}

void BoardReader::ReadThrottle(const GpuMetrics& metrics, BoardSample& sample) {
  constexpr Source kFrom = Source::gpu_metrics;
  uint64_t raw = 0;
  Names active = Null<std::vector<std::string>>(metrics.throttle_missing, kFrom);
  if (metrics.residency) {
    for (uint32_t count : metrics.residency->count) raw += count;
    active = Value(ThrottleNames(residency_.value_or(*metrics.residency), *metrics.residency), kFrom);
    residency_ = metrics.residency;
  } else if (metrics.throttle_bits) {
    raw = *metrics.throttle_bits;
    active = Value(ThrottleNames(raw), kFrom);
  } else if (metrics.asic_throttle_bits) {
    raw = *metrics.asic_throttle_bits;
    active = Value(AsicThrottleNames(*metrics.asic_throttle_bits), kFrom);
  }
  sample.clocks.throttle = ClassifyThrottle(active, raw);
}

Number BoardReader::CpuFrequency() {
  return ReadNumber(sys_root_ + "/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", 1e3, Source::cpufreq);
}

void BoardReader::ReadSeldom(int64_t now_ns) {
  if (seldom_ns_ != 0 && now_ns - seldom_ns_ < kSeldomNs) return;
  seldom_ns_ = now_ns;
  cpu_mhz_ = CpuFrequency();
  const LibraryClock library = library_index_ ? library_->ReadFclk(*library_index_) : LibraryClock{};
  fclk_mhz_ = ReadClock({"pp_dpm_fclk", nullptr}, library, Null(Missing::unsupported, Source::gpu_metrics),
                        nullptr, nullptr);
}

BoardSample BoardReader::Read(int64_t monotonic_ns) {
  BoardSample sample;
  sample.pci = board_.pci;
  sample.clocks.monotonic_ns = monotonic_ns;
  sample.suspended = Suspended(monotonic_ns);
  if (sample.suspended) {
    VisitFields(sample, [](auto& field) {
      field.missing = Missing::empty;
      field.source = Source::sysfs;
    });
    return sample;
  }
  const GpuMetrics metrics = ReadMetrics();
  // Without the library its fields have no source, and the files answer alone.
  const LibraryReading library = library_index_ ? library_->Read(*library_index_) : LibraryReading{};
  record::ClockSample& clocks = sample.clocks;
  clocks.sclk_mhz = ReadClock({"pp_dpm_sclk", "sclk"}, library.sclk, metrics.current_sclk_mhz,
                              &clocks.top_sclk_mhz, &sample.deep_sleep);
  clocks.mclk_mhz =
      ReadClock({"pp_dpm_mclk", "mclk"}, library.mclk, metrics.current_mclk_mhz, nullptr, nullptr);
  ReadSeldom(monotonic_ns);
  clocks.fclk_mhz = fclk_mhz_;
  clocks.perf_level = library.perf_level;
  if (!clocks.perf_level.value) {
    clocks.perf_level =
        Prefer(clocks.perf_level,
               ReadTrimmed(board_.device_dir + "/power_dpm_force_performance_level", Source::sysfs));
  }
  clocks.busy_percent = ReadBusy(library, metrics);
  clocks.power_w = ReadPower(library, metrics, clocks.busy_percent);
  clocks.power_cap_w = library.power_cap_w;
  if (!clocks.power_cap_w.value) {
    const Number cap = board_.hwmon_dir.empty()
                           ? Null(Missing::unsupported, Source::hwmon)
                           : ReadNumber(board_.hwmon_dir + "/power1_cap", 1e6, Source::hwmon);
    clocks.power_cap_w = Prefer(clocks.power_cap_w, cap);
  }
  ReadTemperatures(library, metrics, sample);
  ReadThrottle(metrics, sample);
  sample.average_sclk_mhz = metrics.average_sclk_mhz;
  sample.average_mclk_mhz = metrics.average_mclk_mhz;
  sample.average_fclk_mhz = metrics.average_fclk_mhz;
  sample.average_power_w = metrics.socket_power_w;
  sample.stapm_limit_w = metrics.stapm_limit_w;
  sample.memory_busy_percent =
      Percent(Prefer(library.memory_busy_percent,
                     Prefer(ReadNumber(board_.device_dir + "/mem_busy_percent", 1, Source::sysfs),
                            metrics.memory_busy_percent)));
  sample.cpu_mhz = cpu_mhz_;
  return sample;
}

}  // namespace warmleg::telemetry
