#include "harness/judge/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "backend/vt/error.h"
#include "harness/judge/compare_numbers.h"

namespace warmleg::judge {
namespace {

using record::Code;
using record::Json;
using record::MakeReason;

// Files of one scenario and workload.
struct Group {
  std::string name;
  Json workload;
  Files files;
};

// The device is no workload field, but two boards under one name are two things to compare.
std::vector<Group> Groups(const std::vector<Measured>& side) {
  std::vector<Group> groups;
  for (const Measured& file : side) {
    auto it = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.name == file.name && g.workload == file.workload;
    });
    if (it == groups.end()) it = groups.insert(groups.end(), {file.name, file.workload, {}});
    it->files.push_back(&file);
  }
  return groups;
}

std::string Text(const Json& object, const std::string& field) {
  const auto it = object.find(field);
  if (it == object.end()) return "-";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

std::vector<WorkloadDifference> Differences(const Json& base, const Json& candidate,
                                            const std::set<std::string>& across) {
  std::vector<WorkloadDifference> out;
  std::set<std::string> seen;
  for (const Json* side : {&base, &candidate})
    for (const auto& [field, value] : side->items()) {
      if (!seen.insert(field).second) continue;
      const auto a = base.find(field);
      const auto b = candidate.find(field);
      if (a != base.end() && b != candidate.end() && *a == *b) continue;
      out.push_back({field, Text(base, field), Text(candidate, field), across.contains(field)});
    }
  return out;
}

int64_t Refused(const std::vector<WorkloadDifference>& differences) {
  return std::count_if(differences.begin(), differences.end(), [](const auto& d) { return !d.allowed; });
}

struct Match {
  const Group* base;
  const Group* candidate;
  std::vector<WorkloadDifference> differences;
};

// Takes pairs that `fits` accepts, the fewest differences first.
template <class Fits>
void Take(std::vector<const Group*>& base, std::vector<const Group*>& candidate,
          const std::set<std::string>& across, std::vector<Match>& matches, Fits fits) {
  for (auto a = base.begin(); a != base.end();) {
    auto best = candidate.end();
    std::vector<WorkloadDifference> least;
    for (auto b = candidate.begin(); b != candidate.end(); ++b) {
      auto differences = Differences((*a)->workload, (*b)->workload, across);
      if (!fits(**a, **b, differences)) continue;
      if (best != candidate.end() && differences.size() >= least.size()) continue;
      best = b, least = std::move(differences);
    }
    if (best == candidate.end()) {
      ++a;
      continue;
    }
    matches.push_back({*a, *best, std::move(least)});
    candidate.erase(best);
    a = base.erase(a);
  }
}

using Unmatched = std::vector<const Group*>;

// Equal workloads first, then those that differ only where allowed; then those of one name, which will be
// refused by field; a single pair that the user named is compared whatever its scenarios are called.
std::vector<Match> MatchGroups(Unmatched& base, Unmatched& candidate, const std::set<std::string>& across) {
  using Ds = std::vector<WorkloadDifference>;
  std::vector<Match> matches;
  const auto named = [](const Group& a, const Group& b) { return a.name == b.name; };
  const bool one_each = base.size() == 1 && candidate.size() == 1;
  const auto take = [&](auto fits) { Take(base, candidate, across, matches, fits); };
  take([&](const Group& a, const Group& b, const Ds& d) { return named(a, b) && d.empty(); });
  take([&](const Group& a, const Group& b, const Ds& d) { return named(a, b) && Refused(d) == 0; });
  take([&](const Group&, const Group&, const Ds& d) { return Refused(d) == 0 && (one_each || d.empty()); });
  take([&](const Group& a, const Group& b, const Ds&) { return named(a, b); });
  return matches;
}

std::string Where(const Measured& file) { return file.file.empty() ? file.name : file.file; }

void CheckSide(const Files& files, const char* side, const CompareOptions& options, WorkloadVerdict& out) {
  bool any = false;
  for (const Measured* file : files) {
    for (const auto& [name, endpoint] : file->endpoints) any = any || !endpoint.processes.empty();
    if (!file->complete) {
      auto& to = options.allow_incomplete ? out.warnings : out.reasons;
      to.push_back(MakeReason(Code::incomplete, false, true, Where(*file)));
    }
    if (file->mixed_rocm) {
      std::string detail = Where(*file);
      for (const Component& c : file->components)
        if (c.name == "rocm")
          for (const auto& [field, value] : c.fields) detail += fmt::format(", {} {}", field, value);
      out.warnings.push_back(MakeReason(Code::mixed_rocm, nullptr, nullptr, detail));
    }
    for (const std::string& slow : file->slow_processes)
      out.warnings.push_back(MakeReason(Code::slow_process, nullptr, nullptr,
                                        fmt::format("{}: process {}", Where(*file), slow)));
  }
  if (any) return;
  std::set<std::string> why;
  for (const Measured* file : files) why.insert(file->left_out_for.begin(), file->left_out_for.end());
  out.reasons.push_back(
      MakeReason(Code::no_valid_legs, 0, nullptr, fmt::format("{}: {}", side, fmt::join(why, ", "))));
}

// Made-up numbers are never compared with measured ones, whatever --across names.
void CheckSimulated(WorkloadVerdict& out) {
  const auto simulated = [](const Measured* file) { return file->verdict == record::Verdict::simulated; };
  const auto first = [&](const Files& files, bool wanted) {
    return *std::find_if(files.begin(), files.end(),
                         [&](const Measured* f) { return simulated(f) == wanted; });
  };
  const auto count = [&](const Files& files) { return std::count_if(files.begin(), files.end(), simulated); };
  const auto all = static_cast<std::ptrdiff_t>(out.base.size() + out.candidate.size());
  const auto made_up = count(out.base) + count(out.candidate);
  if (made_up == 0 || made_up == all) return;
  Files files = out.base;
  files.insert(files.end(), out.candidate.begin(), out.candidate.end());
  out.reasons.push_back(MakeReason(
      Code::workload_differs, "simulated", "measured",
      fmt::format("weights or accepted counts of {} are made up, those of {} are not; no option allows that",
                  Where(*first(files, true)), Where(*first(files, false)))));
}

void CheckClocks(const CompareOptions& options, WorkloadVerdict& out) {
  out.clocks = CompareClocks(out.base, out.candidate);
  bool seen = true;
  for (const ClockPair& c : out.clocks) {
    if (c.clock == "sclk_mhz") seen = seen && c.base && c.candidate;
    if (!Shifted(c)) continue;
    auto& to = options.allow_clock_shift ? out.warnings : out.reasons;
    to.push_back(MakeReason(Code::clock_shifted, *c.candidate / *c.base - 1, limit::kThreshold,
                            fmt::format("{} {}: {:.0f} -> {:.0f} MHz ({:+.1f} %)", c.arm, c.clock, *c.base,
                                        *c.candidate, 100 * (*c.candidate / *c.base - 1))));
  }
  if (!seen)
    out.warnings.push_back(MakeReason(Code::clock_unverified, nullptr, nullptr, "a side has no SCLK"));
}

void CheckFingerprint(WorkloadVerdict& out) {
  out.components = ComponentChanges(out.base, out.candidate);
  if (!out.components.empty()) {
    std::vector<std::string> names;
    for (const ComponentChange& c : out.components) names.push_back(c.component);
    out.warnings.push_back(MakeReason(Code::fingerprint_differs, names.size(), nullptr,
                                      fmt::format("{} component{} changed: {}", names.size(),
                                                  names.size() == 1 ? "" : "s", fmt::join(names, ", "))));
  }
  std::set<std::string> fields;
  const auto values = [](const Files& files, const std::string& field) {
    std::set<std::string> all;
    for (const Measured* file : files)
      if (const auto it = file->circumstances.find(field); it != file->circumstances.end())
        all.insert(it->second);
    return all;
  };
  for (const auto* side : {&out.base, &out.candidate})
    for (const Measured* file : *side)
      for (const auto& [field, value] : file->circumstances) fields.insert(field);
  for (const std::string& field : fields) {
    const auto a = values(out.base, field);
    const auto b = values(out.candidate, field);
    if (a != b)
      out.circumstances.push_back(
          {field, fmt::format("{}", fmt::join(a, " | ")), fmt::format("{}", fmt::join(b, " | "))});
  }
  out.providers = CompareProviders(out.base, out.candidate);
  for (const ProviderDifference& p : out.providers)
    out.warnings.push_back(MakeReason(Code::provider_mix_differs, nullptr, nullptr,
                                      fmt::format("{} {}: {} -> {}", p.arm, p.op, p.base, p.candidate)));
}

Outcome Worst(const std::vector<EndpointVerdict>& endpoints) {
  const auto any = [&](Outcome o) {
    return std::any_of(endpoints.begin(), endpoints.end(), [&](const auto& e) { return e.outcome == o; });
  };
  for (const Outcome o : {Outcome::slower, Outcome::inconclusive, Outcome::faster})
    if (any(o)) return o;
  return Outcome::same;
}

// Only an endpoint that moved has a cause to name, and only a change that stands alone can be it.
void NameCause(WorkloadVerdict& out) {
  const bool moved = std::any_of(out.endpoints.begin(), out.endpoints.end(), [](const EndpointVerdict& e) {
    return e.outcome == Outcome::slower || e.outcome == Outcome::faster;
  });
  const bool across = !out.differences.empty();
  const bool clocks = record::Has(out.warnings, Code::clock_shifted);
  if (moved && !across && !clocks && out.components.size() == 1 && !out.components[0].mixed)
    out.cause = out.components[0].component;
}

WorkloadVerdict CompareWorkload(Match match, const CompareOptions& options) {
  WorkloadVerdict out;
  out.name = match.base->name, out.workload = match.base->workload;
  out.base = match.base->files, out.candidate = match.candidate->files;
  out.differences = std::move(match.differences);
  for (const WorkloadDifference& d : out.differences) {
    auto& to = d.allowed ? out.warnings : out.reasons;
    to.push_back(MakeReason(Code::workload_differs, d.candidate, d.base,
                            fmt::format("{}: {} -> {}{}", d.field, d.base, d.candidate,
                                        d.allowed ? " (allowed by --across)" : "")));
  }
  CheckSimulated(out);
  CheckSide(out.base, "base", options, out);
  CheckSide(out.candidate, "candidate", options, out);
  CheckFingerprint(out);
  CheckClocks(options, out);
  if (!out.reasons.empty()) {
    out.outcome = Outcome::refused;
    return out;
  }
  out.endpoints = CompareEndpoints(out.base, out.candidate);
  out.exploratory = CompareExploratory(out.base, out.candidate);
  for (const EndpointVerdict& e : out.endpoints)
    out.reasons.insert(out.reasons.end(), e.reasons.begin(), e.reasons.end());
  out.outcome = Worst(out.endpoints);
  NameCause(out);
  return out;
}

void CheckAcross(const std::vector<Measured>& base, const std::vector<Measured>& candidate,
                 const CompareOptions& options) {
  std::set<std::string> fields;
  for (const auto* side : {&base, &candidate})
    for (const Measured& file : *side)
      for (const auto& [field, value] : file.workload.items())
        if (field != "arms") fields.insert(field);
  std::vector<std::string> unknown;
  for (const std::string& name : options.across)
    if (!fields.contains(name)) unknown.push_back(name);
  if (!unknown.empty())
    throw vt::InputError(fmt::format("--across: {} is no workload field; the fields are {}",
                                     fmt::join(unknown, ", "), fmt::join(fields, ", ")));
}

}  // namespace

std::string_view Name(Outcome outcome) {
  constexpr std::array<std::string_view, 5> names = {"same", "faster", "slower", "inconclusive", "refused"};
  return names[static_cast<size_t>(outcome)];
}

int ExitCode(const std::vector<WorkloadVerdict>& workloads, bool refused) {
  const auto any = [&](Outcome o) {
    return std::any_of(workloads.begin(), workloads.end(), [&](const auto& w) { return w.outcome == o; });
  };
  if (refused || any(Outcome::refused)) return 2;
  if (any(Outcome::slower)) return 1;
  return any(Outcome::inconclusive) ? 4 : 0;
}

Comparison Compare(const std::vector<Measured>& base, const std::vector<Measured>& candidate,
                   const CompareOptions& options) {
  CheckAcross(base, candidate, options);
  const std::vector<Group> base_groups = Groups(base);
  const std::vector<Group> candidate_groups = Groups(candidate);
  Unmatched only_base;
  Unmatched only_candidate;
  for (const Group& g : base_groups) only_base.push_back(&g);
  for (const Group& g : candidate_groups) only_candidate.push_back(&g);

  Comparison out;
  for (Match& match : MatchGroups(only_base, only_candidate, options.across))
    out.workloads.push_back(CompareWorkload(std::move(match), options));
  for (const Group* g : only_base) {
    out.missing.push_back(g->name);
    auto& to = options.allow_missing.contains(g->name) ? out.warnings : out.reasons;
    to.push_back(MakeReason(Code::missing_workload, nullptr, nullptr, g->name));
  }
  for (const Group* g : only_candidate) {
    out.added.push_back(g->name);
    out.warnings.push_back(MakeReason(Code::new_workload, nullptr, nullptr, g->name));
  }
  if (out.workloads.empty()) out.reasons.push_back(MakeReason(Code::nothing_compared));

  out.exit_code = ExitCode(out.workloads, !out.reasons.empty());
  constexpr std::array outcomes = {Outcome::same, Outcome::slower, Outcome::refused, Outcome::refused,
                                   Outcome::inconclusive};
  out.outcome = outcomes[static_cast<size_t>(out.exit_code)];
  const auto faster = [](const WorkloadVerdict& w) { return w.outcome == Outcome::faster; };
  if (out.exit_code == 0 && std::any_of(out.workloads.begin(), out.workloads.end(), faster))
    out.outcome = Outcome::faster;
  return out;
}

}  // namespace warmleg::judge
