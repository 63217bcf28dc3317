#include "harness/telemetry/window.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/telemetry/reading.h"

namespace warmleg::telemetry {
namespace {

using record::ClockSample;

double Quantile(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

std::optional<double> Median(std::span<const TimedValue> values, int64_t begin_ns, int64_t end_ns) {
  std::vector<double> inside;
  for (const TimedValue& v : values) {
    if (v.ns >= begin_ns && v.ns <= end_ns) inside.push_back(v.value);
  }
  if (inside.empty()) return std::nullopt;
  std::sort(inside.begin(), inside.end());
  return Quantile(inside, 0.5);
}

std::vector<TimedValue> Collect(std::span<const ClockSample> samples, Number ClockSample::*field) {
  std::vector<TimedValue> values;
  for (const ClockSample& s : samples) {
    if ((s.*field).value) values.push_back({s.monotonic_ns, *(s.*field).value});
  }
  return values;
}

record::ClockStat Stat(std::span<const ClockSample> samples, Number ClockSample::*field, int64_t begin_ns,
                       int64_t end_ns) {
  return Summarise(Collect(samples, field), begin_ns, end_ns);
}

template <typename T>
void AddDistinct(std::vector<T>& seen, const T& value) {
  if (std::find(seen.begin(), seen.end(), value) == seen.end()) seen.push_back(value);
}

void AddThrottle(record::ClockWindow& w, const record::Throttle& t) {
  w.thermal_throttle = w.thermal_throttle.value_or(false) || t.thermal;
  w.hw_slowdown = w.hw_slowdown.value_or(false) || t.hw_slowdown;
  w.power_capped = w.power_capped.value_or(false) || t.power_cap;
}

record::ClockPhase MakePhase(std::span<const ClockSample> samples, std::span<const PhaseSpan> spans,
                             const std::string& name) {
  std::vector<ClockSample> inside;
  int64_t begin_ns = INT64_MAX;
  int64_t end_ns = INT64_MIN;
  for (const PhaseSpan& span : spans) {
    if (span.name != name) continue;
    begin_ns = std::min(begin_ns, span.begin_ns);
    end_ns = std::max(end_ns, span.end_ns);
  }
  for (const ClockSample& s : samples) {
    const bool in = std::any_of(spans.begin(), spans.end(), [&](const PhaseSpan& span) {
      return span.name == name && s.monotonic_ns >= span.begin_ns && s.monotonic_ns <= span.end_ns;
    });
    if (in) inside.push_back(s);
  }
  record::ClockPhase phase;
  phase.samples = static_cast<int64_t>(inside.size());
  phase.sclk_mhz = Stat(inside, &ClockSample::sclk_mhz, begin_ns, end_ns);
  phase.mclk_mhz = Stat(inside, &ClockSample::mclk_mhz, begin_ns, end_ns);
  phase.fclk_mhz = Stat(inside, &ClockSample::fclk_mhz, begin_ns, end_ns);
  return phase;
}

}  // namespace

record::ClockStat Summarise(std::span<const TimedValue> values, int64_t begin_ns, int64_t end_ns) {
  record::ClockStat stat;
  if (values.empty()) return stat;
  std::vector<double> sorted;
  double sum = 0;
  for (const TimedValue& v : values) {
    sorted.push_back(v.value);
    sum += v.value;
  }
  std::sort(sorted.begin(), sorted.end());
  stat.p5 = Quantile(sorted, 0.05);
  stat.p50 = Quantile(sorted, 0.5);
  stat.p95 = Quantile(sorted, 0.95);
  stat.mean = sum / static_cast<double>(sorted.size());
  const int64_t third = (end_ns - begin_ns) / 3;
  stat.first_third = Median(values, begin_ns, begin_ns + third);
  stat.last_third = Median(values, end_ns - third, end_ns);
  return stat;
}

std::optional<double> EnergyJoule(std::span<const TimedValue> power_w, int64_t begin_ns, int64_t end_ns,
                                  int64_t interval_ns) {
  if (power_w.empty() || end_ns <= begin_ns) return std::nullopt;
  const int64_t reach = 3 * std::max<int64_t>(interval_ns, 1'000'000);
  double joule = 0;
  int64_t covered_ns = 0;
  auto add = [&](int64_t from, int64_t to, double w_from, double w_to) {
    const int64_t span = to - from;
    if (span <= 0) return;
    joule += 0.5 * (w_from + w_to) * static_cast<double>(span) * 1e-9;
    covered_ns += std::min(span, reach);
  };
  add(begin_ns, power_w.front().ns, power_w.front().value, power_w.front().value);
  for (size_t i = 1; i < power_w.size(); ++i) {
    add(power_w[i - 1].ns, power_w[i].ns, power_w[i - 1].value, power_w[i].value);
  }
  add(power_w.back().ns, end_ns, power_w.back().value, power_w.back().value);
  if (static_cast<double>(covered_ns) < 0.9 * static_cast<double>(end_ns - begin_ns)) return std::nullopt;
  return joule;
}

record::ClockWindow MakeWindow(std::span<const ClockSample> all, int64_t begin_ns, int64_t end_ns,
                               std::span<const PhaseSpan> phases, int64_t interval_ns) {
  const auto first = std::lower_bound(all.begin(), all.end(), begin_ns,
                                      [](const ClockSample& s, int64_t ns) { return s.monotonic_ns < ns; });
  const auto last = std::upper_bound(all.begin(), all.end(), end_ns,
                                     [](int64_t ns, const ClockSample& s) { return ns < s.monotonic_ns; });
  const std::span<const ClockSample> samples =
      first < last ? all.subspan(static_cast<size_t>(first - all.begin()), static_cast<size_t>(last - first))
                   : std::span<const ClockSample>();
  record::ClockWindow w;
  w.samples_all = static_cast<int64_t>(samples.size());
  for (const ClockSample& s : samples) {
    if (s.sclk_mhz.value) ++w.samples;
    if (s.top_sclk_mhz.value) w.top_sclk_mhz = std::max(w.top_sclk_mhz.value_or(0), *s.top_sclk_mhz.value);
    if (s.perf_level.value) AddDistinct(w.perf_levels, *s.perf_level.value);
    if (s.power_cap_w.value) AddDistinct(w.power_caps_w, *s.power_cap_w.value);
    if (s.throttle.value) AddThrottle(w, *s.throttle.value);
  }
  if (!w.perf_levels.empty()) w.perf_level = w.perf_levels.front();
  w.sclk_mhz = Stat(samples, &ClockSample::sclk_mhz, begin_ns, end_ns);
  w.mclk_mhz = Stat(samples, &ClockSample::mclk_mhz, begin_ns, end_ns);
  w.fclk_mhz = Stat(samples, &ClockSample::fclk_mhz, begin_ns, end_ns);
  w.power_w = Stat(samples, &ClockSample::power_w, begin_ns, end_ns);
  w.temp_c = Stat(samples, &ClockSample::temp_c, begin_ns, end_ns);
  w.busy_percent = Stat(samples, &ClockSample::busy_percent, begin_ns, end_ns);
  w.energy_j = EnergyJoule(Collect(samples, &ClockSample::power_w), begin_ns, end_ns, interval_ns);
  for (const PhaseSpan& span : phases) {
    if (!w.phases.contains(span.name)) w.phases[span.name] = MakePhase(samples, phases, span.name);
  }
  return w;
}

void UseDeviceClock(std::span<const TimedValue> mhz, std::optional<double> top_mhz, int64_t begin_ns,
                    int64_t end_ns, std::span<const PhaseSpan> phases, int64_t interval_ns,
                    record::ClockWindow& window) {
  std::vector<ClockSample> samples;
  for (const TimedValue& value : mhz) {
    ClockSample& sample = samples.emplace_back();
    sample.monotonic_ns = value.ns;
    sample.sclk_mhz = Value(value.value, Source::device);
    if (top_mhz) sample.top_sclk_mhz = Value(*top_mhz, Source::device);
  }
  record::ClockWindow seen = MakeWindow(samples, begin_ns, end_ns, phases, interval_ns);
  window.samples = seen.samples;
  window.samples_all = std::max(window.samples_all, seen.samples_all);
  window.sclk_mhz = std::move(seen.sclk_mhz);
  window.top_sclk_mhz = seen.top_sclk_mhz;
  for (auto& [name, phase] : seen.phases) {
    record::ClockPhase& to = window.phases[name];
    to.samples = phase.samples;
    to.sclk_mhz = std::move(phase.sclk_mhz);
  }
}

}  // namespace warmleg::telemetry
