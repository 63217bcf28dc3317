// Reads one board once per tick: the library first, then sysfs and hwmon of the same PCI address, then
// gpu_metrics raw.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/telemetry/gpu_metrics.h"
#include "harness/telemetry/library.h"
#include "harness/telemetry/sample.h"
#include "harness/telemetry/sysfs.h"

namespace warmleg::telemetry {

// What the sampler asks at each tick.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  virtual const SysfsBoard& board() const = 0;
  // Never throws and never gives a made-up number. `monotonic_ns` is stamped on the sample.
  virtual BoardSample Read(int64_t monotonic_ns) = 0;
};

class BoardReader : public SampleReader {
 public:
  // `library` may be null, or have no device at this address: then the files answer alone. It outlives the
  // reader.
  BoardReader(SysfsBoard board, ClockLibrary* library, std::string sys_root);

  const SysfsBoard& board() const override { return board_; }
  BoardSample Read(int64_t monotonic_ns) override;

 private:
  struct ClockFiles {
    const char* dpm;          // "pp_dpm_sclk"
    const char* hwmon_label;  // of freqN_input; null: none
  };
  Number ReadClock(const ClockFiles& files, const LibraryClock& from_library, const Number& from_metrics,
                   Number* top, bool* deep_sleep) const;
  Number HwmonFrequency(const char* label) const;
  Number HwmonTemperature(const char* label, int64_t now_ns);
  Number ReadPower(const LibraryReading& library, const GpuMetrics& metrics, const Number& busy) const;
  Number ReadBusy(const LibraryReading& library, const GpuMetrics& metrics) const;
  void ReadThrottle(const GpuMetrics& metrics, BoardSample& sample);
  void ReadTemperatures(const LibraryReading& library, const GpuMetrics& metrics, BoardSample& sample);
  GpuMetrics ReadMetrics() const;
  Number CpuFrequency();
  void ReadSeldom(int64_t now_ns);
  bool Suspended(int64_t now_ns);

  SysfsBoard board_;
  ClockLibrary* library_;
  std::optional<size_t> library_index_;
  std::string sys_root_;
  bool apu_ = false;
  std::optional<ThrottleResidency> residency_;
  Number cpu_mhz_, fclk_mhz_;  // no rule looks at them: read once a second, to keep a tick cheap
  int64_t seldom_ns_ = 0;      // when they were read; 0: never
  int64_t no_status_until_ns_ = 0;
  std::map<std::string, int64_t> no_sensor_until_ns_;  // label -> when it is looked for again
};

}  // namespace warmleg::telemetry
