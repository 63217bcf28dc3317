// The parent's side of warmleg-sampler: start it, read its lines, start it once more without librocm_smi64
// when it dies, and put the performance level back when it could not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/telemetry/sample.h"

namespace warmleg::telemetry {

enum class PerfLevel : uint8_t { keep, high };
std::optional<PerfLevel> PerfLevelFromName(std::string_view name);

struct SamplerOptions {
  std::string pci;  // empty: every AMD and NVIDIA GPU
  int interval_ms = 100;
  int64_t count = 0;  // ticks; 0: until stopped
  PerfLevel perf_level = PerfLevel::keep;
  bool use_library = true;
  std::string sys_root = "/sys";
  std::string program;                                // empty: warmleg-sampler beside the running program
  std::function<void(const BoardSample&)> on_sample;  // called on the reader's thread
};

struct SampledDevice {
  std::string pci, name;
  std::string library;  // "rocm_smi" or "nvml": which one could answer for it
};

// What the sampler said about a library.
struct LibraryState {
  bool used = false;
  std::string text;  // why it is not used
  std::string file, soname, version;
};

struct SamplerStatus {
  bool running = false;
  bool no_device = false;  // no GPU, or none at the address asked for
  std::vector<SampledDevice> devices;
  LibraryState library;                // librocm_smi64
  LibraryState nvml;                   // libnvidia-ml; its text is empty where no card was looked for in vain
  std::optional<std::string> aborted;  // why the first sampler died; samples went on without the library
  std::optional<std::string> lost;     // why the second one died
  std::optional<std::string> perf_level_problem;  // perf_level high was asked for and is not in force
  int64_t samples = 0;
};

class SamplerProcess {
 public:
  explicit SamplerProcess(
      SamplerOptions options);  // starts it; EnvironmentError when the program is not there
  ~SamplerProcess();            // Stop()
  SamplerProcess(const SamplerProcess&) = delete;
  SamplerProcess& operator=(const SamplerProcess&) = delete;

  SamplerStatus Status() const;
  // True once a sample at or after `monotonic_ns` is there; false at the timeout or when none can come any
  // more.
  bool WaitForSample(int64_t monotonic_ns, int timeout_ms) const;
  // True when the sampler ended by itself (count reached, no device, lost).
  bool WaitForEnd(int timeout_ms) const;
  // Ends it, waits, restores the performance level where the sampler did not. Safe to repeat.
  void Stop();
  int pid() const;  // of the sampler now running, -1 if none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// warmleg-sampler beside the running program.
std::string SamplerProgram();
int64_t MonotonicNs();

}  // namespace warmleg::telemetry
