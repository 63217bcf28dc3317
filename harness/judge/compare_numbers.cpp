#include "harness/judge/compare_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "backend/vt/error.h"
#include "harness/judge/stats.h"
#include "harness/judge/welch.h"

namespace warmleg::judge {
namespace {

using record::Code;
using record::MakeReason;

// Factor to the first unit of its row; 0: not a listed unit.
double InSeconds(const std::string& unit) {
  if (unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us") return 1e-6;
  if (unit == "ns") return 1e-9;
  return 0;
}

// What a value in `from` must be multiplied with to be in `to`.
double Conversion(const std::string& metric, const std::string& from, const std::string& to) {
  if (from == to) return 1;
  const double a = InSeconds(from);
  const double b = InSeconds(to);
  if (a == 0 || b == 0)
    throw vt::InputError(
        fmt::format("{}: one file gives it in {}, another in {}, and these do not convert; compare "
                    "files of one build",
                    metric, to, from));
  return a / b;
}

void CheckDirection(const std::string& metric, const std::string& a, const std::string& b) {
  for (const std::string& better : {a, b})
    if (better != "higher" && better != "lower")
      throw vt::InputError(fmt::format("{}: better is \"{}\", expected higher or lower", metric, better));
  if (a != b)
    throw vt::InputError(fmt::format(
        "{}: better is {} in one file and {} in another; compare files of one build", metric, a, b));
}

std::optional<double> Quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

// Two levels: the widest gap of the sorted values exceeds 2 % and three times the spread on both of its
// sides.
std::optional<size_t> LowLevel(std::vector<double> values) {
  if (values.size() < 3) return std::nullopt;
  std::sort(values.begin(), values.end());
  size_t at = 1;
  for (size_t i = 2; i < values.size(); ++i)
    if (values[i] / values[i - 1] > values[at] / values[at - 1]) at = i;
  const double gap = values[at] - values[at - 1];
  const double inside = std::max(values[at - 1] - values.front(), values.back() - values[at]);
  if (gap <= limit::kThreshold * values[at] || gap <= 3 * inside) return std::nullopt;
  return at;
}

Side MakeSide(const Files& files, const std::string& name, const EndpointVerdict& verdict) {
  Side side;
  for (const Measured* file : files) {
    const auto it = file->endpoints.find(name);
    if (it == file->endpoints.end()) continue;
    const Endpoint& endpoint = it->second;
    if (endpoint.processes.empty()) continue;
    CheckDirection(name, verdict.better, endpoint.better);
    const double factor = Conversion(name, endpoint.unit, verdict.unit);
    for (const ProcessRate& process : endpoint.processes) {
      side.values.push_back(process.value * factor);
      for (const double leg : process.legs) side.legs.push_back(leg * factor);
    }
  }
  side.geomean = GeometricMean(side.values).value;
  side.median = Median(side.values);
  if (!side.median) return side;
  std::vector<double> deviations;
  for (const double v : side.values) {
    deviations.push_back(std::abs(v - *side.median));
    side.ratios.push_back(v / *side.median);
  }
  side.mad = Median(deviations);
  side.iqr = *Quantile(side.values, 0.75) - *Quantile(side.values, 0.25);
  side.low_processes = LowLevel(side.values);
  return side;
}

// The one number of a side: geometric mean where all values are positive, else the plain mean.
std::optional<double> Pool(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const bool positive = std::all_of(values.begin(), values.end(), [](double v) { return v > 0; });
  return positive ? GeometricMean(values).value : Mean(values);
}

struct Pooled {
  std::vector<double> values, processes;
};

Pooled Collect(const Files& files, const std::string& name, const ExploratoryChange& as) {
  Pooled out;
  for (const Measured* file : files) {
    const auto it = file->exploratory.find(name);
    if (it == file->exploratory.end()) continue;
    const Shown& shown = it->second;
    CheckDirection(name, as.better, shown.better);
    const double factor = Conversion(name, shown.unit, as.unit);
    for (const double v : shown.processes) out.processes.push_back(v * factor);
    if (shown.value) out.values.push_back(*shown.value * factor);
  }
  return out;
}

std::string Direction(const ExploratoryChange& e) {
  if (!e.base || !e.candidate) return "unknown";
  if (*e.base == *e.candidate) return "equal";
  return (*e.candidate > *e.base) == (e.better == "higher") ? "better" : "worse";
}

std::optional<double> MedianClock(const Files& files, const std::string& arm,
                                  std::map<std::string, double> Measured::*clock) {
  std::vector<double> values;
  for (const Measured* file : files)
    if (const auto it = (file->*clock).find(arm); it != (file->*clock).end()) values.push_back(it->second);
  return Median(values);
}

using Shares = std::map<std::string, double>;  // provider -> share of the op's calls

std::map<std::pair<std::string, std::string>, Shares> ProviderShares(const Files& files) {
  std::map<std::pair<std::string, std::string>, Shares> calls;
  for (const Measured* file : files)
    for (const ProviderShare& p : file->providers)
      calls[{p.arm, p.op}][p.provider] += static_cast<double>(p.calls);
  for (auto& [key, shares] : calls) {
    double all = 0;
    for (const auto& [provider, n] : shares) all += n;
    for (auto& [provider, n] : shares) n = all > 0 ? n / all : 0;
  }
  return calls;
}

std::string Text(const Shares& shares) {
  std::string text;
  for (const auto& [provider, share] : shares)
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", provider, 100 * share);
  return text.empty() ? "no calls" : text;
}

bool Differ(const Shares& a, const Shares& b) {
  for (const auto* one : {&a, &b})
    for (const auto& [provider, share] : *one) {
      const auto in_a = a.find(provider);
      const auto in_b = b.find(provider);
      const double x = in_a == a.end() ? 0 : in_a->second;
      const double y = in_b == b.end() ? 0 : in_b->second;
      if (std::abs(x - y) > limit::kProviderShare) return true;
    }
  return false;
}

Outcome Decide(const EndpointVerdict& e) {
  const double toward_good = e.better == "higher" ? *e.change : -*e.change;
  if (*e.p_holm < limit::kAlpha && toward_good < -limit::kThreshold) return Outcome::slower;
  if (*e.p_holm < limit::kAlpha && toward_good > limit::kThreshold) return Outcome::faster;
  // All three must be the same for exit 0, so no correction is due here.
  const auto [low, high] = *e.ci95;
  return low >= -limit::kThreshold && high <= limit::kThreshold ? Outcome::same : Outcome::inconclusive;
}

}  // namespace

void JudgeEndpoints(std::vector<EndpointVerdict>& endpoints) {
  std::vector<double> p;
  for (EndpointVerdict& e : endpoints) {
    const auto n = static_cast<int64_t>(std::min(e.base.values.size(), e.candidate.values.size()));
    const auto welch = WelchOfLogs(e.base.values, e.candidate.values);
    if (e.base.geomean && e.candidate.geomean) e.change = *e.candidate.geomean / *e.base.geomean - 1;
    if (welch) {
      const auto [low, high] = welch->Interval(limit::kAlpha);
      e.ci95 = {low - 1, high - 1};
    }
    if (n < limit::kProcesses) {
      e.reasons.push_back(
          MakeReason(Code::insufficient_samples, n, limit::kProcesses,
                     fmt::format("{}: {} and {} processes, {} are needed a side", e.name,
                                 e.base.values.size(), e.candidate.values.size(), limit::kProcesses)));
      continue;
    }
    e.p = welch->p;
    p.push_back(welch->p);
  }
  const std::vector<double> adjusted = HolmAdjusted(p);
  size_t next = 0;
  for (EndpointVerdict& e : endpoints) {
    if (!e.p) continue;
    e.p_holm = adjusted[next++];
    e.outcome = Decide(e);
  }
}

std::vector<EndpointVerdict> CompareEndpoints(const Files& base, const Files& candidate) {
  std::vector<EndpointVerdict> out;
  for (const std::string& name : EndpointNames(base.front()->drafting_arm)) {
    EndpointVerdict e;
    e.name = name;
    for (const auto* side : {&candidate, &base})
      for (const Measured* file : *side)
        if (const auto it = file->endpoints.find(name);
            it != file->endpoints.end() && !it->second.processes.empty())
          e.unit = it->second.unit, e.better = it->second.better;
    e.base = MakeSide(base, name, e);
    e.candidate = MakeSide(candidate, name, e);
    // max_new_tokens 0 or 1 decodes nothing on either side: nothing to judge there.
    if (!e.base.values.empty() || !e.candidate.values.empty()) out.push_back(std::move(e));
  }
  JudgeEndpoints(out);
  return out;
}

std::vector<ExploratoryChange> CompareExploratory(const Files& base, const Files& candidate) {
  std::map<std::string, const Shown*> names;
  for (const auto* side : {&base, &candidate})
    for (const Measured* file : *side)
      for (const auto& [name, shown] : file->exploratory) names.emplace(name, &shown);
  std::vector<ExploratoryChange> out;
  for (const auto& [name, shown] : names) {
    ExploratoryChange e;
    e.name = name, e.unit = shown->unit, e.better = shown->better;
    const Pooled a = Collect(base, name, e);
    const Pooled b = Collect(candidate, name, e);
    const bool per_process = !a.processes.empty() && !b.processes.empty();
    e.base = Pool(per_process ? a.processes : a.values);
    e.candidate = Pool(per_process ? b.processes : b.values);
    if (e.base && e.candidate && *e.base > 0) e.change = *e.candidate / *e.base - 1;
    if (per_process)
      if (const auto welch = WelchOfLogs(a.processes, b.processes)) {
        const auto [low, high] = welch->Interval(limit::kAlpha);
        e.ci95 = {low - 1, high - 1};
      }
    e.direction = Direction(e);
    out.push_back(std::move(e));
  }
  return out;
}

std::vector<ClockPair> CompareClocks(const Files& base, const Files& candidate) {
  std::vector<ClockPair> out;
  for (const std::string& arm : {std::string("plain"), base.front()->drafting_arm})
    for (const auto& [name, clock] :
         {std::pair{"sclk_mhz", &Measured::sclk_mhz}, {"mclk_mhz", &Measured::mclk_mhz}})
      out.push_back({arm, name, MedianClock(base, arm, clock), MedianClock(candidate, arm, clock)});
  return out;
}

bool Shifted(const ClockPair& clocks) {
  return clocks.base && clocks.candidate && *clocks.base > 0 &&
         std::abs(*clocks.candidate / *clocks.base - 1) > limit::kThreshold;
}

std::vector<ProviderDifference> CompareProviders(const Files& base, const Files& candidate) {
  auto a = ProviderShares(base);
  auto b = ProviderShares(candidate);
  std::set<std::pair<std::string, std::string>> keys;
  for (const auto* side : {&a, &b})
    for (const auto& [key, shares] : *side) keys.insert(key);
  std::vector<ProviderDifference> out;
  for (const auto& key : keys)
    if (Differ(a[key], b[key])) out.push_back({key.first, key.second, Text(a[key]), Text(b[key])});
  return out;
}

}  // namespace warmleg::judge
