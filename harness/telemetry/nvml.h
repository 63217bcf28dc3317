// libnvidia-ml (NVML), opened at run time and never linked: clocks, power, temperature and throttle reasons
// of NVIDIA cards. Function names, types and numbers: NVIDIA's NVML API reference. A function that the
// library lacks is `unsupported`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/telemetry/board.h"
#include "harness/telemetry/sample.h"
#include "harness/telemetry/sysfs.h"

namespace warmleg::telemetry {

struct OpenedNvml;

class Nvml {
 public:
  // `file` as dlopen takes it. Null with the reason when the library is not there, has no driver or sees no
  // card.
  static OpenedNvml Open(const std::string& file = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // One board a card, ordered by PCI address; the position is the index below.
  const std::vector<SysfsBoard>& boards() const;
  // Never throws and never gives a made-up number. SCLK is the clock of the multiprocessors, perf_level the
  // performance state ("P0"), which the driver changes by itself. Clocks, power, state and throttle reasons
  // are of this moment; utilisation is asked for every 150 ms, power cap and temperature once a second, the
  // top clock until there is one. `monotonic_ns` never falls.
  BoardSample Read(size_t board, int64_t monotonic_ns) const;
  BoardFingerprint Describe(size_t board, const std::set<int>& own) const;
  // Processes that compute on the card. Null with `reason` where they may not be seen, or where the driver
  // counts them in another process namespace than ours.
  std::optional<std::set<int>> Clients(size_t board, std::string* reason) const;

  std::string File() const;  // the library file that is mapped, "" if unknown
  std::string Version() const;

 private:
  struct Impl;
  explicit Nvml(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct OpenedNvml {
  std::unique_ptr<Nvml> library;  // null: `why_not`
  std::string why_not;
};

// AMD boards of sysfs, then the cards of NVML, which is asked only when `sys_root` is the machine's own.
struct Boards {
  std::vector<SysfsBoard> all;
  std::unique_ptr<Nvml> nvml;  // null: `nvml_why_not`
  std::string nvml_why_not;
};
Boards FindAllBoards(const std::string& sys_root);

}  // namespace warmleg::telemetry
