// One workload on one board over many releases: where did each phase first become slower?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/judge/compare.h"

namespace warmleg::judge {

struct TrendPhase {
  std::string phase;           // endpoint name
  std::optional<double> rate;  // geometric mean over processes
  std::vector<double> processes;
  std::string unit;
  std::optional<double> change;  // against `against`
  std::string against;           // the fastest release before, by verdict; empty for the first
  Outcome outcome = Outcome::inconclusive;
};

struct TrendStep {
  std::string release;
  size_t files = 0, incomplete = 0;
  std::vector<std::string> changed;  // components that changed since the release before
  std::vector<TrendPhase> phases;
  std::vector<record::Reason> reasons;  // why a phase has no verdict
};

struct FirstBad {
  std::string phase, release, against;
  double change = 0;
  std::vector<std::string> changed;  // components that differ from `against`
};

struct Trend {
  std::string name, board;
  std::vector<TrendStep> steps;  // in the order of releases
  std::vector<FirstBad> first_bad;
};

// What a trend can go by: "rocm" (rocm.loaded), "kernel", "git" (in the order of creation).
std::vector<std::string> TrendKeys();

// Those of one scenario, workload and board together, in the order of their first files.
std::vector<std::vector<Measured>> GroupForTrends(std::vector<Measured> files);

// `files`: one workload and board. Incomplete files are counted and left out. Each phase of a release is
// compared with the fastest release before it, so that small steps add up and a gain that is lost again is
// seen.
Trend MakeTrend(std::vector<Measured> files, const std::string& by, bool allow_clock_shift);

}  // namespace warmleg::judge
