// Numbers of a result's summary by arm and name.
#pragma once

#include <optional>
#include <string>

#include "harness/record/result.h"

namespace warmleg::record {

// Null when it is not there.
inline const Metric* FindMetric(const Result& result, const std::string& arm, const std::string& name) {
  const auto metrics = result.summary.find(arm);
  if (metrics == result.summary.end()) return nullptr;
  const auto metric = metrics->second.find(name);
  return metric == metrics->second.end() ? nullptr : &metric->second;
}

inline std::optional<double> MetricValue(const Result& result, const std::string& arm,
                                         const std::string& name) {
  const Metric* metric = FindMetric(result, arm, name);
  return metric != nullptr ? metric->value : std::nullopt;
}

}  // namespace warmleg::record
