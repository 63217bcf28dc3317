// `warmleg ab`: two builds, or one build with two ROCm trees, in turn, process by process, into two result
// files.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace warmleg::run {

// One side of an A/B campaign.
struct AbSide {
  std::string name;     // "base" | "candidate"
  std::string program;  // the warmleg that measures
  std::map<std::string, std::string> environment;
  std::string tree;  // the ROCm tree, empty for a build
};

// `what`: a warmleg program, a build folder that holds one, or a ROCm tree (lib/libamdhip64.so*), which this
// program is then started with. `variables`: "NAME=VALUE". vt::InputError when it is none of them.
AbSide ResolveAbSide(const std::string& name, const std::string& what,
                     const std::vector<std::string>& variables);

struct AbOptions {
  AbSide base, candidate;
  std::string scenario;
  std::vector<std::string> sets;
  std::string out;  // a folder; empty: results/ab-NAME-UTC
  std::string telemetry_device;
  bool force = false;
};

struct AbRun {
  std::string base_file, candidate_file;
  int exit_code = 0;  // 0 both are complete, else the exit code of the run that ended it
};

// Base and candidate take turns, one process at a time and the other one first in every second turn, so both
// see the same boot and the same heat.
AbRun MeasureAb(const AbOptions& options);

}  // namespace warmleg::run
