// power_dpm_force_performance_level: set, verified, put back. Who holds it says so before it writes (see
// sampler_main.cpp), so that whoever survives a kill knows what to put back.
#pragma once

#include <optional>
#include <string>

namespace warmleg::telemetry {

std::string PerfLevelPath(const std::string& device_dir);
// The level in force; null when it cannot be read.
std::optional<std::string> ReadPerfLevel(const std::string& path);
// Writes and reads back. Null when the level is in force now, else one line that says why not.
std::optional<std::string> SetPerfLevel(const std::string& path, const std::string& level);

// Holds a level from Take to Release, which the destructor calls.
class PerfLevelHold {
 public:
  PerfLevelHold(std::string path, std::string restore_to);
  ~PerfLevelHold();
  PerfLevelHold(const PerfLevelHold&) = delete;
  PerfLevelHold& operator=(const PerfLevelHold&) = delete;

  // Null when `level` is in force.
  std::optional<std::string> Take(const std::string& level);
  // Null when the old level is in force again. Safe to repeat.
  std::optional<std::string> Release();
  // From a handler of a deadly signal: open, write, close, nothing else.
  void ReleaseFromSignal() const noexcept;

 private:
  std::string path_;
  std::string restore_to_;
  bool held_ = false;
};

}  // namespace warmleg::telemetry
