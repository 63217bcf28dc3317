#include "harness/report/trend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/record/json.h"
#include "harness/report/numbers.h"

namespace warmleg::report {
namespace {

using judge::Trend;
using judge::TrendPhase;
using judge::TrendStep;
using record::Json;

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string Phase(const TrendPhase& p) {
  if (!p.rate) return fmt::format("{}: no rate", p.phase);
  std::string text = fmt::format("{} {} {}", p.phase, Number(*p.rate), p.unit);
  if (!p.against.empty())
    text += fmt::format(" {} {} vs {}", judge::Name(p.outcome), Percent(p.change), p.against);
  return text;
}

}  // namespace

std::string TrendText(const Trend& trend) {
  std::string text = fmt::format("{} on {}\n", trend.name, trend.board);
  for (const TrendStep& step : trend.steps) {
    text += fmt::format("  {:<12} {} file{}", step.release, step.files, step.files == 1 ? "" : "s");
    if (step.incomplete > 0) text += fmt::format(", {} incomplete left out", step.incomplete);
    if (!step.changed.empty()) text += fmt::format("; changed: {}", fmt::join(step.changed, ", "));
    text += "\n";
    for (const TrendPhase& p : step.phases) text += "      " + Phase(p) + "\n";
    for (const record::Reason& r : step.reasons)
      text += fmt::format("      {}: {}\n", record::Name(r.code), r.text);
  }
  for (const judge::FirstBad& bad : trend.first_bad)
    text += fmt::format("  first bad, {}: {} ({:+.1f} % vs {}); changed since: {}\n", bad.phase, bad.release,
                        100 * bad.change, bad.against, fmt::join(bad.changed, ", "));
  if (trend.first_bad.empty()) text += "  no phase became slower\n";
  return text;
}

Json TrendJson(const Trend& trend) {
  Json json;
  json["name"] = trend.name, json["board"] = trend.board;
  json["releases"] = Json::array();
  for (const TrendStep& step : trend.steps) {
    Json phases = Json::array();
    for (const TrendPhase& p : step.phases)
      phases.push_back(
          {{"phase", p.phase},
           {"rate", OrNull(p.rate)},
           {"unit", p.unit},
           {"verdict", p.against.empty() ? Json(nullptr) : Json(std::string(judge::Name(p.outcome)))},
           {"change", OrNull(p.change)},
           {"against", p.against.empty() ? Json(nullptr) : Json(p.against)}});
    Json reasons = Json::array();
    for (const record::Reason& r : step.reasons) reasons.push_back(record::ToJson(r));
    json["releases"].push_back({{"release", step.release},
                                {"files", step.files},
                                {"incomplete", step.incomplete},
                                {"changed", step.changed},
                                {"phases", phases},
                                {"reasons", reasons}});
  }
  json["first_bad"] = Json::array();
  for (const judge::FirstBad& bad : trend.first_bad)
    json["first_bad"].push_back({{"phase", bad.phase},
                                 {"release", bad.release},
                                 {"against", bad.against},
                                 {"change", bad.change},
                                 {"changed", bad.changed}});
  return json;
}

std::string HistoryLine(const store::HistoryEntry& e) {
  std::string text =
      fmt::format("{:<12} {:<20} {:<24} {:<10} {:<8} {:<16} {:>9} {:>9} {:>9}", e.sha256.substr(0, 12),
                  e.created, e.name, e.verdict, e.rocm.empty() ? "-" : e.rocm, e.board, Cell(e.plain_tok_s),
                  Cell(e.drafting_tok_s), Cell(e.prefill_tok_s));
  if (!e.complete) text += "  incomplete";
  if (e.struck) text += fmt::format("  STRUCK: {}", *e.struck);
  return text + "\n";
}

Json HistoryLineJson(const store::HistoryEntry& e) {
  return {{"sha256", e.sha256},
          {"file", e.file},
          {"added", e.added},
          {"created", e.created},
          {"name", e.name},
          {"verdict", e.verdict},
          {"complete", e.complete},
          {"rocm", e.rocm},
          {"board", e.board},
          {"git", e.git},
          {"plain_tok_s", OrNull(e.plain_tok_s)},
          {"drafting_tok_s", OrNull(e.drafting_tok_s)},
          {"prefill_tok_s", OrNull(e.prefill_tok_s)},
          {"struck", OrNull(e.struck)}};
}

}  // namespace warmleg::report
