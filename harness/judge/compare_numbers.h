// The numbers of one workload's comparison: endpoints, exploratory changes, clocks, providers.
#pragma once

#include <vector>

#include "harness/judge/compare.h"

namespace warmleg::judge {

// Throws vt::InputError when the sides give a metric in units that do not convert, or in opposite directions.
std::vector<EndpointVerdict> CompareEndpoints(const Files& base, const Files& candidate);
std::vector<ExploratoryChange> CompareExploratory(const Files& base, const Files& candidate);

std::vector<ClockPair> CompareClocks(const Files& base, const Files& candidate);
// Apart by more than the threshold.
bool Shifted(const ClockPair& clocks);

// Ops whose calls are shared between providers otherwise.
std::vector<ProviderDifference> CompareProviders(const Files& base, const Files& candidate);

}  // namespace warmleg::judge
