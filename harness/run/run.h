// `warmleg run`: plan, check, warm, measure, judge, write.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace warmleg::run {

struct RunOptions {
  std::string scenario;           // a path, or the name of a shipped one
  std::vector<std::string> sets;  // "a.b=V"
  std::string out;                // empty: results/NAME-UTC.json
  bool force = false;             // an existing result may be replaced
  bool plan_only = false;
  std::optional<double> budget_s;
  std::string resume;  // a result with complete: false
  // At most this many processes now; the rest is left to --resume, so that two campaigns can take turns.
  std::optional<int64_t> processes_now;
  std::string telemetry_device;  // empty: the compute device's own; "auto" or a PCI address
};

// Progress on stderr, the table on stdout. Returns the exit code; throws vt::InputError and
// vt::EnvironmentError.
int RunScenario(const RunOptions& options);

}  // namespace warmleg::run
