#include "harness/judge/trend.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "harness/judge/stats.h"

namespace warmleg::judge {
namespace {

struct Release {
  std::string name, created;
  std::vector<Measured> files;
  size_t incomplete = 0;
};

std::string Field(const Measured& m, const std::string& field) {
  for (const Component& c : m.components)
    if (const auto it = c.fields.find(field); it != c.fields.end()) return it->second;
  return "unknown";
}

std::vector<Release> Releases(std::vector<Measured>&& files, const std::string& by) {
  const std::string field = by == "rocm" ? "rocm.loaded" : by;
  std::vector<Release> releases;
  for (Measured& file : files) {
    const std::string name = Field(file, field);
    auto it =
        std::find_if(releases.begin(), releases.end(), [&](const Release& r) { return r.name == name; });
    if (it == releases.end()) it = releases.insert(releases.end(), Release{name, file.created, {}, 0});
    it->created = std::min(it->created, file.created);
    if (file.complete)
      it->files.push_back(std::move(file));
    else
      ++it->incomplete;
  }
  std::stable_sort(releases.begin(), releases.end(), [&](const Release& a, const Release& b) {
    return by == "git" ? a.created < b.created : ReleaseLess(a.name, b.name);
  });
  return releases;
}

std::vector<std::string> Changed(const Release& before, const Release& after) {
  Files a;
  Files b;
  for (const Measured& m : before.files) a.push_back(&m);
  for (const Measured& m : after.files) b.push_back(&m);
  std::vector<std::string> names;
  for (const ComponentChange& c : ComponentChanges(a, b)) names.push_back(c.component);
  return names;
}

// Rates of one phase, one a process.
std::vector<double> RatesOf(const Release& release, const std::string& phase, std::string& unit) {
  std::vector<double> values;
  for (const Measured& file : release.files)
    if (const auto it = file.endpoints.find(phase); it != file.endpoints.end()) {
      unit = it->second.unit;
      for (const ProcessRate& p : it->second.processes) values.push_back(p.value);
    }
  return values;
}

// The verdict of one phase of `release` against `reference`; reasons go to `step`.
void Judge(const Release& reference, const Release& release, const CompareOptions& options, TrendPhase& phase,
           TrendStep& step) {
  phase.against = reference.name;
  const Comparison c = Compare(reference.files, release.files, options);
  if (c.workloads.size() != 1) return;
  const WorkloadVerdict& w = c.workloads[0];
  for (const EndpointVerdict& e : w.endpoints)
    if (e.name == phase.phase) phase.outcome = e.outcome, phase.change = e.change;
  if (w.outcome == Outcome::refused) phase.outcome = Outcome::refused;
  for (const record::Reason& reason : w.reasons) {
    const auto same = [&](const record::Reason& r) { return r.code == reason.code && r.text == reason.text; };
    if (std::none_of(step.reasons.begin(), step.reasons.end(), same)) step.reasons.push_back(reason);
  }
}

}  // namespace

std::vector<std::string> TrendKeys() { return {"rocm", "kernel", "git"}; }

std::vector<std::vector<Measured>> GroupForTrends(std::vector<Measured> files) {
  std::vector<std::vector<Measured>> groups;
  const auto key = [](const Measured& m) {
    return std::tuple(m.name, m.workload.dump(), Field(m, "gpu.name"), Field(m, "gpu.gfx"), Field(m, "cpu"));
  };
  for (Measured& file : files) {
    const auto same = [&](const std::vector<Measured>& group) { return key(group.front()) == key(file); };
    const auto it = std::find_if(groups.begin(), groups.end(), same);
    if (it != groups.end())
      it->push_back(std::move(file));
    else
      groups.emplace_back().push_back(std::move(file));
  }
  return groups;
}

Trend MakeTrend(std::vector<Measured> files, const std::string& by, bool allow_clock_shift) {
  Trend trend;
  if (files.empty()) return trend;
  trend.name = files.front().name;
  trend.board = Field(files.front(), "gpu.name");
  if (trend.board == "unknown") trend.board = Field(files.front(), "cpu");
  CompareOptions options;
  options.allow_clock_shift = allow_clock_shift;
  const std::string arm = files.front().drafting_arm;
  const std::vector<Release> releases = Releases(std::move(files), by);
  std::map<std::string, const Release*> fastest;  // phase -> reference
  std::map<std::string, bool> bad;
  const Release* before = nullptr;
  for (const Release& release : releases) {
    TrendStep step;
    step.release = release.name, step.files = release.files.size(), step.incomplete = release.incomplete;
    if (before && !release.files.empty()) step.changed = Changed(*before, release);
    for (const std::string& name : EndpointNames(arm)) {
      TrendPhase phase;
      phase.phase = name;
      phase.processes = RatesOf(release, name, phase.unit);
      phase.rate = GeometricMean(phase.processes).value;
      const Release*& reference = fastest[name];
      if (phase.rate && reference) {
        Judge(*reference, release, options, phase, step);
        if (phase.outcome == Outcome::slower && !bad[name]) {
          bad[name] = true;
          trend.first_bad.push_back(
              {name, release.name, reference->name, phase.change.value_or(0), Changed(*reference, release)});
        }
      }
      // A release with too few processes can be no reference: nothing would ever be decided against it.
      const bool enough = std::ssize(phase.processes) >= limit::kProcesses;
      if (enough && (!reference || phase.outcome == Outcome::faster)) reference = &release;
      step.phases.push_back(std::move(phase));
    }
    if (!release.files.empty()) before = &release;
    trend.steps.push_back(std::move(step));
  }
  return trend;
}

}  // namespace warmleg::judge
