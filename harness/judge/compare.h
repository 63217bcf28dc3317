// Compares a base with a candidate: one verdict per workload and gate endpoint, and an exit code. Pure: files
// come in measured, text goes out elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/judge/fingerprint.h"
#include "harness/judge/measured.h"
#include "harness/record/reason.h"

namespace warmleg::judge {

namespace limit {
inline constexpr double kThreshold = 0.02;      // of change, and of clock offset
inline constexpr int64_t kProcesses = 4;        // a side
inline constexpr double kAlpha = 0.05;          // over the three endpoints together
inline constexpr double kProviderShare = 0.01;  // of an op's calls, before its mix is said to differ
}  // namespace limit

struct CompareOptions {
  std::set<std::string> across;  // workload fields that may differ
  bool allow_clock_shift = false;
  bool allow_incomplete = false;
  std::set<std::string> allow_missing;  // scenario names
};

// Ordered from good to bad for display only; see ExitCode for what counts.
enum class Outcome : uint8_t { same, faster, slower, inconclusive, refused };
std::string_view Name(Outcome outcome);

// One side of one endpoint, in the endpoint's unit.
struct Side {
  std::vector<double> values;  // one a process, in the order of the files
  std::vector<double> legs;    // raw, in the order run
  std::optional<double> geomean, median, mad, iqr;
  std::vector<double> ratios;           // each process over the side's median
  std::optional<size_t> low_processes;  // two levels: how many stand on the lower one
};

struct EndpointVerdict {
  std::string name;  // "plain decode", "dflash2 decode", "prefill"
  std::string unit, better;
  Outcome outcome = Outcome::inconclusive;
  std::optional<double> change;               // candidate over base minus 1
  std::optional<std::array<double, 2>> ci95;  // of the change, this endpoint alone
  std::optional<double> p, p_holm;
  Side base, candidate;
  std::vector<record::Reason> reasons;  // why it is undecided
};

// A number without a verdict.
struct ExploratoryChange {
  std::string name, unit, better;
  std::optional<double> base, candidate;
  std::optional<double> change;               // null when the base is 0 or null
  std::optional<std::array<double, 2>> ci95;  // where both sides have values a process
  std::string direction;                      // "better" | "worse" | "equal" | "unknown"
};

struct WorkloadDifference {
  std::string field, base, candidate;
  bool allowed = false;
};

struct ClockPair {
  std::string arm, clock;  // "sclk_mhz" | "mclk_mhz"
  std::optional<double> base, candidate;
};

// Share of an op's calls by provider, "vt-native 100.0 %".
struct ProviderDifference {
  std::string arm, op, base, candidate;
};

struct WorkloadVerdict {
  std::string name;
  Outcome outcome = Outcome::inconclusive;
  std::vector<record::Reason> reasons, warnings;
  record::Json workload;  // of the base
  Files base, candidate;
  std::vector<WorkloadDifference> differences;
  std::vector<EndpointVerdict> endpoints;
  std::vector<ExploratoryChange> exploratory;
  std::vector<ClockPair> clocks;
  std::vector<ProviderDifference> providers;
  std::vector<ComponentChange> components;
  std::vector<Change> circumstances;
  std::optional<std::string> cause;  // the one component that changed, where an endpoint moved
};

struct Comparison {
  Outcome outcome = Outcome::refused;
  int exit_code = 2;
  std::vector<record::Reason> reasons, warnings;
  std::vector<WorkloadVerdict> workloads;
  std::vector<std::string> missing, added;  // scenario names only one side has
};

// Every field name that --across may name. vt::InputError when one in options.across is not among them. The
// verdicts point into `base` and `candidate`, which must outlive them.
Comparison Compare(const std::vector<Measured>& base, const std::vector<Measured>& candidate,
                   const CompareOptions& options);

// 2 anything refused; else 1 an endpoint slower; else 4 an endpoint undecided; else 0.
int ExitCode(const std::vector<WorkloadVerdict>& workloads, bool refused);

// The gate's verdict for samples of three endpoints; p values are corrected over those that have one. Exposed
// for its own tests.
void JudgeEndpoints(std::vector<EndpointVerdict>& endpoints);

}  // namespace warmleg::judge
