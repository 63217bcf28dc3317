#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "harness/report/compare.h"
#include "harness/report/numbers.h"

namespace warmleg::report {
namespace {

using judge::Comparison;
using judge::EndpointVerdict;
using judge::ExploratoryChange;
using judge::Files;
using judge::Outcome;
using judge::WorkloadVerdict;

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string Interval(const std::optional<std::array<double, 2>>& ci) {
  return ci ? fmt::format("{:+.1f} .. {:+.1f} %", 100 * (*ci)[0], 100 * (*ci)[1]) : "-";
}

std::string Verdict(const EndpointVerdict& e) {
  std::string text(judge::Name(e.outcome));
  if (record::Has(e.reasons, record::Code::insufficient_samples)) text += ": too few processes";
  return text;
}

// "slower: dflash2 decode -5.7 %"
std::string Headline(const WorkloadVerdict& w) {
  std::vector<std::string> moved;
  for (const EndpointVerdict& e : w.endpoints)
    if (e.outcome != Outcome::same && e.change)
      moved.push_back(fmt::format("{} {} ({})", e.name, Percent(e.change), judge::Name(e.outcome)));
  std::string text = fmt::format("{}  {}", Upper(judge::Name(w.outcome)), w.name);
  if (!moved.empty()) text += fmt::format("  {}", fmt::join(moved, ", "));
  std::vector<std::string> across;
  for (const auto& d : w.differences)
    if (d.allowed) across.push_back(fmt::format("{} {} -> {}", d.field, d.base, d.candidate));
  if (!across.empty()) text += fmt::format("  across {}", fmt::join(across, ", "));
  return text;
}

std::string SideLine(const char* side, const Files& files) {
  std::vector<std::string> names;
  std::set<std::string> verdicts;
  std::map<std::string, int64_t> legs;
  size_t processes = 0;
  for (const judge::Measured* file : files) {
    names.push_back(file->file);
    verdicts.insert(std::string(record::Name(file->verdict)));
    size_t most = 0;
    for (const auto& [name, e] : file->endpoints) most = std::max(most, e.processes.size());
    processes += most;
    for (const auto& [kind, n] : file->legs) legs[kind] += n;
  }
  std::string text = fmt::format("{:<10} {} file{}, {} processes, {}", side, files.size(),
                                 files.size() == 1 ? "" : "s", processes, fmt::join(verdicts, " and "));
  for (const auto& [kind, n] : legs) text += fmt::format(", {} legs {}", n, kind);
  if (names.size() > 4) names = {names[0], names[1], "...", names.back()};
  return text + fmt::format(": {}\n", fmt::join(names, " "));
}

std::string Reasons(const std::vector<record::Reason>& reasons, const char* indent) {
  std::string text;
  for (const record::Reason& r : reasons)
    text += fmt::format("{}{}: {}; {}\n", indent, record::Name(r.code), r.text, r.remedy);
  return text;
}

std::string Fingerprint(const WorkloadVerdict& w) {
  std::string text;
  for (const auto& p : w.providers)
    text += fmt::format("  provider   {} {}: {} -> {}\n", p.arm, p.op, p.base, p.candidate);
  for (const auto& c : w.components)
    for (const auto& f : c.fields)
      text += fmt::format("  {:<10} {}: {} -> {}\n", c.component, f.field, f.base, f.candidate);
  for (const auto& f : w.circumstances)
    text += fmt::format("  beside     {}: {} -> {}\n", f.field, f.base, f.candidate);
  if (w.cause)
    text += fmt::format("  One component changed, {}: the likely cause.\n", *w.cause);
  else if (w.components.size() > 1)
    text += fmt::format("  {} components changed, so none is named as the cause.\n", w.components.size());
  else if (w.components.empty())
    text += "  no recorded component of build or machine differs\n";
  return text;
}

std::string Processes(const WorkloadVerdict& w) {
  std::string text;
  for (const EndpointVerdict& e : w.endpoints)
    for (const auto& [name, side] : {std::pair{"base", &e.base}, {"candidate", &e.candidate}}) {
      if (side->ratios.empty()) continue;
      std::vector<double> shown(
          side->ratios.begin(),
          side->ratios.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(12, side->ratios.size())));
      text += fmt::format("  {:<16} {:<9} n {}  median {}  MAD {}  IQR {}  processes {:.3f}{}", e.name, name,
                          side->values.size(), Number(*side->median), Number(*side->mad), Number(*side->iqr),
                          fmt::join(shown, " "), side->ratios.size() > shown.size() ? " ..." : "");
      if (side->low_processes)
        text += fmt::format("  LEVEL SHIFT: {} of {} processes on a lower level", *side->low_processes,
                            side->values.size());
      text += "\n";
    }
  for (const auto* files : {&w.base, &w.candidate})
    for (const judge::Measured* file : *files)
      for (const auto& s : file->level_shifts)
        text +=
            fmt::format("  level shift inside {} process {}, {}: time per round x {:.3f} from leg {} on\n",
                        file->file, s.process, s.arm, s.ratio, s.after_leg + 1);
  return text;
}

std::string Clocks(const WorkloadVerdict& w) {
  std::string text;
  for (const auto& c : w.clocks)
    if (c.base || c.candidate)
      text += fmt::format("  {:<8} {}  {} -> {} MHz\n", c.arm, c.clock == "sclk_mhz" ? "SCLK" : "MCLK",
                          Cell(c.base), Cell(c.candidate));
  return text.empty() ? "  clocks were not seen\n" : text;
}

std::string Workload(const WorkloadVerdict& w) {
  std::string text = Headline(w) + "\n";
  text += "  " + SideLine("base", w.base) + "  " + SideLine("candidate", w.candidate);
  text += Reasons(w.reasons, "  ");
  text += "what differs\n" + Fingerprint(w);
  if (w.outcome == Outcome::refused) return text;
  text += fmt::format("{:<24} {:>10} {:>10} {:>9}  {:<20} {}\n", "gate", "base", "candidate", "change",
                      "95 % interval", "verdict");
  for (const EndpointVerdict& e : w.endpoints)
    text +=
        fmt::format("  {:<16} {:<5} {:>10} {:>10} {:>9}  {:<20} {}\n", e.name, e.unit, Cell(e.base.geomean),
                    Cell(e.candidate.geomean), Percent(e.change), Interval(e.ci95), Verdict(e));
  text +=
      fmt::format("  threshold {:.0f} %; Welch on log process rates, Holm over the endpoints, at {:.0f} %\n",
                  100 * judge::limit::kThreshold, 100 * judge::limit::kAlpha);
  text += "clocks, medians of each arm\n" + Clocks(w);
  text += "processes, over their side's median\n" + Processes(w);
  text += "exploratory, no verdict\n";
  for (const ExploratoryChange& e : w.exploratory)
    text += fmt::format("  {:<32} {:<12} {:>10} {:>10} {:>9}  {:<20} {}\n", e.name, e.unit, Cell(e.base),
                        Cell(e.candidate), Percent(e.change), Interval(e.ci95), e.direction);
  return text;
}

std::string Ends(const Comparison& c) {
  std::string text = Reasons(c.reasons, "");
  if (!c.missing.empty()) text += fmt::format("missing in the candidate: {}\n", fmt::join(c.missing, ", "));
  if (!c.added.empty()) text += fmt::format("new in the candidate: {}\n", fmt::join(c.added, ", "));
  return text;
}

}  // namespace

std::string CompareText(const Comparison& c) {
  std::string text = fmt::format("{}: exit {}\n", Upper(judge::Name(c.outcome)), c.exit_code);
  for (const WorkloadVerdict& w : c.workloads) text += "\n" + Workload(w) + Reasons(w.warnings, "  warning ");
  const std::string ends = Ends(c);
  return ends.empty() ? text : text + "\n" + ends;
}

std::string CompareMarkdown(const Comparison& c) {
  std::string text = fmt::format("### warmleg compare: {}\n", judge::Name(c.outcome));
  for (const WorkloadVerdict& w : c.workloads) {
    text += fmt::format("\n**{}**\n\n", Headline(w));
    for (const record::Reason& r : w.reasons)
      text += fmt::format("- `{}`: {}\n", record::Name(r.code), r.text);
    for (const auto& component : w.components)
      for (const auto& f : component.fields)
        text += fmt::format("- {}: `{}` -> `{}`\n", f.field, f.base, f.candidate);
    if (w.cause) text += fmt::format("- one component changed, {}: the likely cause\n", *w.cause);
    if (w.components.size() > 1) text += fmt::format("- {} components changed\n", w.components.size());
    for (const record::Reason& r : w.warnings)
      text += fmt::format("- warning `{}`: {}\n", record::Name(r.code), r.text);
    if (w.endpoints.empty()) continue;
    text +=
        "\n| gate | base | candidate | change | 95 % interval | processes | verdict "
        "|\n|---|---|---|---|---|---|---|\n";
    for (const EndpointVerdict& e : w.endpoints)
      text += fmt::format("| {} ({}) | {} | {} | {} | {} | {} and {} | **{}** |\n", e.name, e.unit,
                          Cell(e.base.geomean), Cell(e.candidate.geomean), Percent(e.change),
                          Interval(e.ci95), e.base.values.size(), e.candidate.values.size(), Verdict(e));
  }
  const std::string ends = Ends(c);
  return ends.empty() ? text : text + "\n" + ends;
}

}  // namespace warmleg::report
