#include "harness/record/clocks.h"

#include <array>

namespace warmleg::record {
namespace {

constexpr std::array<std::string_view, 10> kMissing = {
    "unsupported",  "no_current_level", "ambiguous", "sentinel_value", "permission", "empty", "error",
    "unit_suspect", "no_device_match",  "lost"};
constexpr std::array<std::string_view, 7> kSources = {"rocm_smi", "hwmon",   "sysfs", "gpu_metrics",
                                                      "nvml",     "cpufreq", "device"};

template <class E, size_t N>
std::optional<E> Find(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace

std::string_view Name(Missing missing) { return kMissing[static_cast<size_t>(missing)]; }
std::string_view Name(Source source) { return kSources[static_cast<size_t>(source)]; }
std::optional<Missing> MissingFromName(std::string_view name) { return Find<Missing>(kMissing, name); }
std::optional<Source> SourceFromName(std::string_view name) { return Find<Source>(kSources, name); }

}  // namespace warmleg::record
