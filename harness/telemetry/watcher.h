// Watches one board while legs run. What a runner needs, in its order:
//
//   telemetry::Watcher watcher;                               // its destructor stops the sampler and
//   restores the board telemetry::WatchOptions options; options.pci = "auto"; // or "0000:c5:00.0"
//   (--telemetry-device, or the runtime's address) options.interval_ms = 100; options.perf_level =
//   telemetry::PerfLevel::high;          // clocks.perf_level of the scenario; keep never writes
//   watcher.Start(options);                                   // InputError: no such board, or several and
//   "auto";
//                                                             // EnvironmentError: no AMD GPU, or the sampler
//                                                             does not start
//   ... a leg runs in [begin_ns, end_ns], CLOCK_MONOTONIC (std::chrono::steady_clock) ...
//   record::ClockWindow clocks = watcher.WindowFor(begin_ns, end_ns, {{"prefill", a, b}, {"decode", b, c}});
//   watcher.Describe(result.telemetry);                       // device, sources, interval_ms, lost
//   for (record::Reason& r : watcher.Warnings()) ...          // rocm_smi_aborted, telemetry_lost,
//   perf_level_not_set result.telemetry.samples_sha256 = watcher.WriteSidecar("NAME.samples.jsonl");   //
//   whole or not at all; may be repeated watcher.Stop();
//
// A run that was not started has empty windows, so a runner need not ask. All calls are for one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/record/clocks.h"
#include "harness/record/result.h"
#include "harness/telemetry/board.h"
#include "harness/telemetry/sampler_process.h"
#include "harness/telemetry/window.h"

namespace warmleg::telemetry {

struct WatchOptions {
  std::string pci = "auto";  // a full or short PCI address, or "auto": the only GPU
  int interval_ms = 100;
  PerfLevel perf_level = PerfLevel::keep;
  std::string sys_root = "/sys";  // elsewhere in tests; then no library is asked
  std::string program;            // the sampler; empty: beside the running program
};

class Watcher {
 public:
  Watcher();
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Returns after the first sample, at most 10 s.
  void Start(const WatchOptions& options);
  bool started() const;
  std::string pci() const;  // full address; empty before Start

  // Waits up to three intervals for a sample past end_ns, so that the last tick of a leg is in its window.
  record::ClockWindow WindowFor(int64_t begin_ns, int64_t end_ns, const std::vector<PhaseSpan>& phases);
  // The raw samples of a span, for rules of one's own and for the sentinel.
  std::vector<record::ClockSample> Samples(int64_t begin_ns, int64_t end_ns) const;

  // What is known of the board beside its clocks. `own`: further processes of ours, such as the worker.
  BoardFingerprint Fingerprint(std::set<int> own) const;
  // Processes beside ours and `own` that have the board open now; null when nobody may look.
  std::optional<int64_t> OtherClients(std::set<int> own) const;

  void Describe(record::Telemetry& out) const;
  std::vector<record::Reason> Warnings() const;
  bool rocm_smi_aborted() const;
  bool lost() const;  // the sampler died twice: no samples come any more

  // All samples so far to `path`, atomically; returns the SHA-256 of the file as hex. EnvironmentError when
  // it cannot be written. The file starts with one line of schema, device and sources; then one line a
  // sample.
  std::string WriteSidecar(const std::string& path) const;

  // Stops the sampler and verifies that the performance level is what it was. Safe to repeat.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmleg::telemetry
