// Trends and history entries as text and JSON.
#pragma once

#include <string>

#include "harness/judge/trend.h"
#include "harness/store/history.h"

namespace warmleg::report {

std::string TrendText(const judge::Trend& trend);
record::Json TrendJson(const judge::Trend& trend);

std::string HistoryLine(const store::HistoryEntry& entry);
record::Json HistoryLineJson(const store::HistoryEntry& entry);

}  // namespace warmleg::report
