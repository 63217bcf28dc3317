// What a comparison needs of one result file: one rate per process and endpoint, clocks, workload and
// fingerprint. Taken from the legs, so every number can be followed to raw data; small, so that a history can
// keep thousands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/record/result.h"

namespace warmleg::judge {

// One rate of one process, with the rates of its counted legs in the order run.
struct ProcessRate {
  int64_t process = 0;
  double value = 0;          // sum of tokens over sum of time
  std::vector<double> legs;  // one a leg; tok/s
};

struct Endpoint {
  std::string unit = "tok/s";
  std::string better = "higher";  // "higher" | "lower"
  std::vector<ProcessRate> processes;
};

// A number shown beside the gate: pooled over the file, or one value a process.
struct Shown {
  std::string unit;
  std::string better;  // "higher" | "lower"
  std::optional<double> value;
  std::vector<double> processes;  // empty: no value a process
};

// A part of the machine or the build that can change by itself.
struct Component {
  std::string name;                           // "rocm", "kernel", "board", ...
  std::map<std::string, std::string> fields;  // "rocm.loaded" -> "7.2"; a null field is absent
};

// Calls of one op by one provider in the counted legs of one arm.
struct ProviderShare {
  std::string arm, op, provider;
  int64_t calls = 0, fallbacks = 0;
};

// The level of one arm moved inside one process and stayed there.
struct LevelShift {
  int64_t process = 0;
  std::string arm;
  int64_t after_leg = 0;  // counted legs of the arm before the move
  double ratio = 1;       // seconds per round after over before
};

struct Measured {
  std::string file, sha256;  // set by the caller
  std::string name;          // of the scenario
  std::string created;
  bool complete = false;
  record::Verdict verdict = record::Verdict::invalid;
  std::string drafting_arm;
  record::Json workload = record::Json::object();  // by field name, "arms" added
  std::vector<Component> components;
  std::map<std::string, std::string> circumstances;  // boot, page cache: shown, never a cause
  std::vector<std::string> slow_processes;           // "3 at 0.91 of the best": absolute rates left out
  std::map<std::string, Endpoint> endpoints;         // "plain decode", "dflash2 decode", "prefill"
  std::map<std::string, Shown> exploratory;          // "dflash2.e2e_tok_s"
  std::map<std::string, double> sclk_mhz, mclk_mhz;  // arm -> median over its counted legs
  std::vector<ProviderShare> providers;
  std::vector<LevelShift> level_shifts;
  bool mixed_rocm = false;                // built with one release, loaded with another
  std::map<std::string, int64_t> legs;    // "counted", "cold", "invalid", "left out"
  std::vector<std::string> left_out_for;  // reason codes of invalid legs, each once
};

// One side of a comparison.
using Files = std::vector<const Measured*>;

// The three gate endpoints, in the order shown.
std::vector<std::string> EndpointNames(const std::string& drafting_arm);

Measured Measure(const record::Result& result);

// Indices of processes whose absolute rates and times are left out and whose paired ratios are kept.
std::set<int64_t> SlowProcesses(const record::Result& result);

// For the history: everything above except raw leg rates.
record::Json ToJson(const Measured& measured);
Measured MeasuredFromJson(const record::Json& json);

}  // namespace warmleg::judge
