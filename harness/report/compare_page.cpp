// A comparison of two results: the verdict and why, then both campaigns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/numbers.h"
#include "harness/report/report.h"
#include "harness/report/sections.h"
#include "harness/report/svg.h"

namespace warmleg::report {

using judge::Comparison;
using judge::EndpointVerdict;
using judge::Outcome;
using judge::WorkloadVerdict;

std::string_view Kind(Outcome outcome) {
  switch (outcome) {
    case Outcome::same:
    case Outcome::faster:
      return "good";
    case Outcome::slower:
    case Outcome::refused:
      return "bad";
    default:
      return "warn";
  }
}

namespace {

std::string Interval(const std::optional<std::array<double, 2>>& ci) {
  return ci ? fmt::format("{:+.1f} to {:+.1f} %", 100 * (*ci)[0], 100 * (*ci)[1]) : "-";
}

const char* Means(int exit_code) {
  switch (exit_code) {
    case 0:
      return "Every gate endpoint is the same or faster.";
    case 1:
      return "A gate endpoint became slower by more than the threshold, and not by chance.";
    case 4:
      return "Nothing is slower, but the processes are too few or too noisy to call every endpoint the same.";
    default:
      return "These files may not be compared: the reasons say why and what to do.";
  }
}

// Changes with their intervals against the threshold. Rates: to the right is faster.
Html ChangePlot(const WorkloadVerdict& w) {
  constexpr double kRow = 52, kLeast = 0.04;
  double most = kLeast;
  for (const EndpointVerdict& e : w.endpoints)
    for (const double v : {e.change.value_or(0), e.ci95 ? (*e.ci95)[0] : 0, e.ci95 ? (*e.ci95)[1] : 0})
      most = std::max(most, std::abs(v) * 1.12);
  const double height = kRow * static_cast<double>(w.endpoints.size());
  Svg svg(700, height + 84, "Change of each gate endpoint",
          "Candidate against base with its 95 % interval; the band is the threshold.");
  const Frame frame{124, 34, 450, height};
  const Scale x = svg.XAxis(frame, -100 * most, 100 * most, 7, "% change of the rate, right is faster");
  const double limit = 100 * judge::limit::kThreshold;
  svg.Rect({x(-limit), frame.top, x(limit) - x(-limit), height}, "band");
  svg.Words({x(0), frame.top - 10}, fmt::format("same within {:.0f} %", limit), "label middle");
  svg.Line({x(0), frame.top}, {x(0), frame.bottom()}, "zero");
  for (size_t i = 0; i < w.endpoints.size(); ++i) {
    const EndpointVerdict& e = w.endpoints[i];
    const double y = frame.top + kRow * (static_cast<double>(i) + 0.5);
    svg.Words({frame.left - 12, y + 4}, e.name, "name end");
    const std::string_view kind = Kind(e.outcome);
    const std::string tip =
        fmt::format("{}: {} ({}), {}", e.name, Percent(e.change), Interval(e.ci95), judge::Name(e.outcome));
    if (e.ci95)
      svg.Line({x(100 * (*e.ci95)[0]), y}, {x(100 * (*e.ci95)[1]), y}, fmt::format("interval l{}", kind));
    if (e.change) svg.Circle({x(100 * *e.change), y}, 6, fmt::format("m{}", kind), tip);
    svg.Words({frame.right() + 14, y + 4}, fmt::format("{} {}", Percent(e.change), judge::Name(e.outcome)),
              "name loud");
  }
  return svg.Done();
}

Html GateTable(const WorkloadVerdict& w) {
  Table table("The gate", {{"endpoint"},
                           {"base", true},
                           {"candidate", true},
                           {"change", true},
                           {"95 %", true},
                           {"processes", true},
                           {"verdict"}});
  for (const EndpointVerdict& e : w.endpoints) {
    Html verdict = Badge(judge::Name(e.outcome), std::string(Kind(e.outcome)) + " tag");
    for (const record::Reason& r : e.reasons) verdict += Format(" <code>{}</code>", record::Name(r.code));
    table.Row({Format("{} <span class=\"soft\">{}</span>", e.name, e.unit), Text(Cell(e.base.geomean)),
               Text(Cell(e.candidate.geomean)), Text(Percent(e.change)), Text(Interval(e.ci95)),
               Text(fmt::format("{} and {}", e.base.values.size(), e.candidate.values.size())), verdict});
  }
  return table.Done();
}

// One panel an endpoint: the rate of every process, base beside candidate.
Html ProcessPlot(const WorkloadVerdict& w) {
  const double width = 820.0 / static_cast<double>(std::max<size_t>(w.endpoints.size(), 1));
  Svg svg(820, 270, "Rate of every process",
          "One dot a process; the line is the geometric mean of the side.");
  for (size_t i = 0; i < w.endpoints.size(); ++i) {
    const EndpointVerdict& e = w.endpoints[i];
    double low = INFINITY;
    double high = 0;
    for (const judge::Side* side : {&e.base, &e.candidate})
      for (const double v : side->values) low = std::min(low, v), high = std::max(high, v);
    const Frame frame{width * static_cast<double>(i) + 58, 44, width - 76, 180};
    svg.Words({frame.left - 50, 16}, fmt::format("{}, {}", e.name, e.unit), "name loud");
    if (!(high > 0)) {
      svg.Words({frame.left, 120}, "no process", "label");
      continue;
    }
    const double room = std::max((high - low) * 0.25, high * 0.01);
    const Scale y = svg.YAxis(frame, low - room, high + room, 4, {});
    double column = 0.25;
    for (const auto& [name, side] : {std::pair{"base", &e.base}, {"candidate", &e.candidate}}) {
      const double centre = frame.left + frame.width * column;
      column += 0.5;
      svg.Words({centre, frame.bottom() + 18}, name, "label middle");
      const bool candidate = side == &e.candidate;
      for (size_t k = 0; k < side->values.size(); ++k) {
        const double spread = (static_cast<double>(k) - static_cast<double>(side->values.size() - 1) / 2) *
                              std::min(10.0, frame.width * 0.4 / static_cast<double>(side->values.size()));
        const Point at{centre + spread, y(side->values[k])};
        const std::string tip =
            fmt::format("{} process {}: {} {}", name, k + 1, Number(side->values[k]), e.unit);
        candidate ? svg.Diamond(at, 5.5, "draft", tip) : svg.Circle(at, 4, "plain", tip);
      }
      if (side->geomean)
        svg.Line({centre - frame.width * 0.2, y(*side->geomean)},
                 {centre + frame.width * 0.2, y(*side->geomean)}, "zero");
    }
  }
  return svg.Done();
}

Html ProcessTable(const WorkloadVerdict& w) {
  Table table(
      "Processes of each side",
      {{"endpoint"}, {"side"}, {"n", true}, {"median", true}, {"MAD", true}, {"IQR", true}, {"levels"}});
  for (const EndpointVerdict& e : w.endpoints)
    for (const auto& [name, s] : {std::pair{"base", &e.base}, {"candidate", &e.candidate}})
      table.Row({Text(e.name), Text(name), Text(fmt::format("{}", s->values.size())), Text(Cell(s->median)),
                 Text(Cell(s->mad)), Text(Cell(s->iqr)),
                 Text(s->low_processes ? fmt::format("two levels: {} of {} on the lower", *s->low_processes,
                                                     s->values.size())
                                       : "one")});
  return table.Done();
}

Html Differences(const WorkloadVerdict& w) {
  Html html;
  if (w.cause)
    html += Note("note",
                 Format("<p>One component changed, <strong>{}</strong>: the likely cause.</p>", *w.cause));
  else if (w.components.size() > 1)
    html += Note("note",
                 Format("<p>{} components changed, so none is named as the cause.</p>", w.components.size()));
  else if (w.components.empty())
    html += Format("<p>No recorded component of build or machine differs.</p>\n");
  Table table("What differs", {{"what"}, {"field"}, {"base"}, {"candidate"}});
  const auto code = [](const std::string& text) { return Format("<span class=\"code\">{}</span>", text); };
  for (const auto& d : w.differences)
    table.Row(
        {Text(d.allowed ? "workload, allowed" : "workload"), code(d.field), code(d.base), code(d.candidate)},
        "strong");
  for (const auto& p : w.providers)
    table.Row({Text("provider"), code(p.arm + " " + p.op), code(p.base), code(p.candidate)}, "strong");
  for (const auto& c : w.components)
    for (const auto& f : c.fields)
      table.Row({Text(c.component), code(f.field), code(f.base), code(f.candidate)});
  for (const auto& f : w.circumstances)
    table.Row({Text("beside"), code(f.field), code(f.base), code(f.candidate)}, "out");
  return table.empty() ? html : html + table.Done();
}

Html Clocks(const WorkloadVerdict& w) {
  Table table("Median clocks of each arm, MHz",
              {{"arm"}, {"clock"}, {"base", true}, {"candidate", true}, {"change", true}});
  for (const auto& c : w.clocks) {
    if (!c.base && !c.candidate) continue;
    std::optional<double> change;
    if (c.base && c.candidate && *c.base > 0) change = *c.candidate / *c.base - 1;
    table.Row({Text(c.arm), Text(c.clock == "sclk_mhz" ? "SCLK" : "MCLK"), Text(Cell(c.base)),
               Text(Cell(c.candidate)), Text(Percent(change))});
  }
  return table.empty() ? Note("warn", Text("Clocks were not seen on either side.")) : table.Done();
}

Html Exploratory(const WorkloadVerdict& w) {
  Table table("Shown without a verdict", {{"number"},
                                          {"unit"},
                                          {"base", true},
                                          {"candidate", true},
                                          {"change", true},
                                          {"95 %", true},
                                          {"direction"}});
  for (const auto& e : w.exploratory)
    table.Row({Format("<code>{}</code>", e.name), Text(e.unit), Text(Cell(e.base)), Text(Cell(e.candidate)),
               Text(Percent(e.change)), Text(Interval(e.ci95)), Text(e.direction)});
  return table.Done(true);
}

std::vector<Section> WorkloadSections(const WorkloadVerdict& w) {
  std::vector<Section> sections;
  if (!w.endpoints.empty() && w.outcome != Outcome::refused) {
    const std::string caption = fmt::format(
        "Welch's interval on logarithms of process rates; a verdict needs {:.0f} % after Holm's correction "
        "over "
        "the endpoints.",
        100 * judge::limit::kAlpha);
    sections.push_back(
        {"gate", "The gate",
         Format("<div class=\"wide\">{}</div>", Figure(ChangePlot(w), caption, GateTable(w)))});
  }
  sections.push_back({"differs", "What differs", Differences(w)});
  if (!w.endpoints.empty() && w.outcome != Outcome::refused) {
    const Html key = Key("plain", "base") + Key("draft", "candidate");
    sections.push_back({"process-rates", "Rate of every process",
                        Format("<p>{}</p><div class=\"wide\">{}</div>", key,
                               Figure(ProcessPlot(w), "The axes do not start at 0.", ProcessTable(w)))});
  }
  sections.push_back({"clocks", "Clocks", Clocks(w)});
  if (!w.exploratory.empty()) sections.push_back({"exploratory", "Exploratory numbers", Exploratory(w)});
  return sections;
}

Section Campaign(const Document& d, const std::string& side) {
  const Html body =
      Format("<p>{} {}</p>\n<details><summary>Show the whole campaign</summary>\n{}{}</details>\n",
             Format("<code>{}</code>", d.name),
             Badge(record::Name(d.result.verdict), std::string(Kind(d.result.verdict)) + " tag"),
             CampaignHeader(d), Nested(CampaignSections(d), side + "-"));
  return {side, side == "base" ? "The base campaign" : "The candidate campaign", body};
}

}  // namespace

std::string ComparisonPage(const Document& base, const Document& candidate, const Comparison& comparison) {
  const std::string name = base.measured.name == candidate.measured.name
                               ? base.measured.name
                               : base.measured.name + " and " + candidate.measured.name;
  Html header = Format(
      "<div class=\"over\">warmleg report: comparison</div>\n<h1>{}</h1>\n"
      "<p class=\"lead\">{} {}</p>\n<p class=\"soft small\">base <code>{}</code>, candidate <code>{}</code>; "
      "warmleg compare gives exit code {}</p>\n",
      name, Badge(judge::Name(comparison.outcome), Kind(comparison.outcome)), Means(comparison.exit_code),
      base.name, candidate.name, comparison.exit_code);
  header += ReasonNotes(comparison.reasons, "bad") + ReasonNotes(comparison.warnings, "warn");
  std::vector<Section> sections;
  for (const WorkloadVerdict& w : comparison.workloads) {
    header += ReasonNotes(w.reasons, w.outcome == Outcome::refused ? "bad" : "warn") +
              ReasonNotes(w.warnings, "warn");
    for (Section& section : WorkloadSections(w)) sections.push_back(std::move(section));
  }
  sections.push_back(Campaign(base, "base"));
  sections.push_back(Campaign(candidate, "candidate"));
  return Page(name + " - warmleg comparison", header, sections);
}

}  // namespace warmleg::report
