#include "harness/telemetry/perf_level.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "harness/telemetry/sysfs.h"

namespace warmleg::telemetry {

std::string PerfLevelPath(const std::string& device_dir) {
  return device_dir + "/power_dpm_force_performance_level";
}

std::optional<std::string> ReadPerfLevel(const std::string& path) {
  return ReadTrimmed(path, Source::sysfs).value;
}

std::optional<std::string> SetPerfLevel(const std::string& path, const std::string& level) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return fmt::format("cannot write {}: {}", path, std::strerror(errno));
  const std::string line = level + "\n";
  const ssize_t written = ::write(fd, line.data(), line.size());
  const int error = errno;
  ::close(fd);
  if (written != static_cast<ssize_t>(line.size())) {
    return fmt::format("cannot write \"{}\" to {}: {}", level, path, std::strerror(error));
  }
  const std::optional<std::string> now = ReadPerfLevel(path);
  if (now != level)
    return fmt::format("{} reads \"{}\" after \"{}\" was written", path, now.value_or(""), level);
  return std::nullopt;
}

PerfLevelHold::PerfLevelHold(std::string path, std::string restore_to)
    : path_(std::move(path)), restore_to_(std::move(restore_to)) {}

PerfLevelHold::~PerfLevelHold() { Release(); }

std::optional<std::string> PerfLevelHold::Take(const std::string& level) {
  held_ = true;  // a write that failed half way is put back as well
  return SetPerfLevel(path_, level);
}

std::optional<std::string> PerfLevelHold::Release() {
  if (!held_) return std::nullopt;
  held_ = false;
  if (ReadPerfLevel(path_) == restore_to_) return std::nullopt;
  return SetPerfLevel(path_, restore_to_);
}

void PerfLevelHold::ReleaseFromSignal() const noexcept {
  if (!held_) return;
  const int fd = ::open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t n = ::write(fd, restore_to_.data(), restore_to_.size());
  ::close(fd);
}

}  // namespace warmleg::telemetry
