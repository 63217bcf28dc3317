// A vendor library as a source of samples. Only programs that may die link one: see rocm_smi.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "harness/telemetry/reading.h"

namespace warmleg::telemetry {

struct LibraryClock {
  Number mhz;
  Number top_mhz;  // the highest level it lists
};

struct LibraryReading {
  LibraryClock sclk, mclk;
  Text perf_level;  // in the words of power_dpm_force_performance_level
  Number power_w, power_cap_w, temp_c, junction_c, memory_c, busy_percent, memory_busy_percent;
};

class ClockLibrary {
 public:
  virtual ~ClockLibrary() = default;
  virtual const std::vector<std::string>& Devices()
      const = 0;  // PCI addresses; the position is the index below
  virtual LibraryReading Read(size_t device) = 0;
  virtual LibraryClock ReadFclk(size_t device) = 0;  // apart: one clock costs as much as all but the clocks
  virtual std::string File() const = 0;              // the library file that is mapped, "" if unknown
  virtual std::string Soname() const = 0;
  virtual std::string Version() const = 0;
};

struct OpenedLibrary {
  std::unique_ptr<ClockLibrary> library;  // null: `why_not`
  std::string why_not;
};

}  // namespace warmleg::telemetry
