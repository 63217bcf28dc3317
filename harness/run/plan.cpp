#include "harness/run/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "backend/vt/error.h"

namespace warmleg::run {

std::vector<std::vector<int32_t>> OneOfEachLength(const std::vector<Prompt>& prompts) {
  std::vector<std::vector<int32_t>> some;
  std::set<size_t> lengths;
  for (const Prompt& prompt : prompts) {
    if (lengths.insert(prompt.ids.size()).second) some.push_back(prompt.ids);
  }
  return some;
}

int64_t Capacity(const Plan& plan) {
  size_t longest = 0;
  for (const Prompt& prompt : plan.prompts) longest = std::max(longest, prompt.ids.size());
  return static_cast<int64_t>(longest) + plan.max_new_tokens;
}

int64_t RepeatsFor(double min_leg_s, double leg_s) {
  constexpr int64_t kMost = 10000;
  if (min_leg_s <= 0 || leg_s >= min_leg_s) return 1;
  // Warm legs are a little faster than the one that was timed.
  const double repeats = std::ceil(1.15 * min_leg_s / std::max(leg_s, 1e-6));
  return std::clamp(static_cast<int64_t>(std::min(repeats, 1e9)), int64_t{1}, kMost);
}

int64_t PairsWithin(double left_s, int64_t processes, double start_s, double pair_s, int64_t planned) {
  const double each_s = left_s / static_cast<double>(std::max<int64_t>(processes, 1)) - start_s;
  const double fit = std::floor(each_s / std::max(pair_s, 1e-9));
  if (!(fit > 1)) return 1;
  return fit < static_cast<double>(planned) ? static_cast<int64_t>(fit) : planned;
}

double ParseDuration(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string unit(rest, end);
  double scale = 0;
  if (unit.empty() || unit == "s") scale = 1;
  if (unit == "m" || unit == "min") scale = 60;
  if (unit == "h") scale = 3600;
  const double seconds = value * scale;
  if (error != std::errc() || !(seconds > 0) || !std::isfinite(seconds)) {
    throw vt::InputError(
        fmt::format("duration '{}' is not a positive number with s, m or h, such as 15m", text));
  }
  return seconds;
}

std::string DurationText(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace warmleg::run
