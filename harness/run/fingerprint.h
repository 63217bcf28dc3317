// Where a campaign runs: what the result's environment block says. Every null has its reason in `unreadable`.
#pragma once

#include <string>

#include "harness/record/fingerprint.h"
#include "harness/run/protocol.h"

namespace warmleg::run {

// The host alone: kernel, cpu, memory, build, power policy, variables. `root` is "" except in tests, which
// put /proc and /sys elsewhere.
record::Environment HostFingerprint(const std::string& root = "");

// Adds what only a worker knows: the device it drives and the libraries it has loaded.
void AddWorkerFingerprint(const LoadedReply& loaded, record::Environment& environment,
                          const std::string& root = "");

// Whether a variable of this name can change a measurement (HIP_*, ROCR_*, VT_*, OMP_*, LC_*, ...).
bool VariableMatters(const std::string& name);

}  // namespace warmleg::run
