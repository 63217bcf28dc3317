// Trends of many results over releases, one section a workload and board.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "harness/report/numbers.h"
#include "harness/report/report.h"
#include "harness/report/sections.h"
#include "harness/report/svg.h"

namespace warmleg::report {
namespace {

using judge::FirstBad;
using judge::Outcome;
using judge::Trend;
using judge::TrendPhase;
using judge::TrendStep;

const FirstBad* FirstBadOf(const Trend& trend, const std::string& phase) {
  for (const FirstBad& bad : trend.first_bad)
    if (bad.phase == phase) return &bad;
  return nullptr;
}

// Texts on the axis must not run into each other: every k-th release is named.
size_t NameEvery(size_t releases, double width) {
  constexpr double kRoom = 64;
  return std::max<size_t>(1, static_cast<size_t>(std::ceil(static_cast<double>(releases) * kRoom / width)));
}

void Panel(const Trend& trend, size_t phase, const Frame& frame, bool names, Svg& svg) {
  double low = INFINITY;
  double high = 0;
  std::string title;
  for (const TrendStep& step : trend.steps) {
    const TrendPhase& p = step.phases[phase];
    title = fmt::format("{}, {}", p.phase, p.unit.empty() ? "tok/s" : p.unit);
    for (const double v : p.processes) low = std::min(low, v), high = std::max(high, v);
  }
  svg.Words({frame.left, frame.top - 10}, title, "name loud");
  if (!(high > 0)) return svg.Words({frame.left + 8, frame.top + 40}, "no rate", "label");
  const double room = std::max((high - low) * 0.2, high * 0.02);
  const Scale y = svg.YAxis(frame, low - room, high + room, 4, {});
  const Scale x{-0.5, static_cast<double>(trend.steps.size()) - 0.5, frame.left, frame.right()};
  const FirstBad* bad = FirstBadOf(trend, trend.steps.front().phases[phase].phase);
  std::vector<Point> line;
  for (size_t i = 0; i < trend.steps.size(); ++i)
    if (const auto& rate = trend.steps[i].phases[phase].rate)
      line.push_back({x(static_cast<double>(i)), y(*rate)});
  svg.Path(line, "line");
  const size_t every = NameEvery(trend.steps.size(), frame.width);
  for (size_t i = 0; i < trend.steps.size(); ++i) {
    const TrendStep& step = trend.steps[i];
    const TrendPhase& p = step.phases[phase];
    const double centre = x(static_cast<double>(i));
    for (const double v : p.processes) svg.Circle({centre, y(v)}, 2.5, "process");
    if (names && i % every == 0) svg.Words({centre, frame.bottom() + 20}, step.release, "label middle");
    if (!p.rate) continue;
    const std::string_view kind = p.against.empty() ? "soft" : Kind(p.outcome);
    const std::string tip = fmt::format(
        "{}: {} {}{}", step.release, Number(*p.rate), p.unit,
        p.against.empty()
            ? ""
            : fmt::format(", {} {} against {}", judge::Name(p.outcome), Percent(p.change), p.against));
    const Point at{centre, y(*p.rate)};
    if (p.outcome == Outcome::slower && !p.against.empty())
      svg.Diamond(at, 7, "mbad", tip);
    else
      svg.Circle(at, 5, fmt::format("m{}", kind), tip);
    if (bad != nullptr && bad->release == step.release) {
      // Below the mark: the line comes down to it from above. Never past the frame's sides.
      const bool last = centre > frame.left + 0.8 * frame.width;
      svg.Words({last ? frame.right() : centre, at.y + 24},
                fmt::format("first slower: {} ({:+.1f} %)", step.release, 100 * bad->change),
                last ? "name loud end" : "name loud middle");
    }
  }
}

Html Plot(const Trend& trend) {
  constexpr double kPanel = 130, kGap = 40;
  const size_t phases = trend.steps.front().phases.size();
  const double n = static_cast<double>(phases);
  Svg svg(820, 40 + n * kPanel + (n - 1) * kGap + 40, "Rates by release",
          "One panel a gate endpoint; small dots are processes, red diamonds are releases that are slower "
          "than the fastest before.");
  for (size_t i = 0; i < phases; ++i)
    Panel(trend, i, {60, 30 + static_cast<double>(i) * (kPanel + kGap), 744, kPanel}, i + 1 == phases, svg);
  return svg.Done();
}

Html Cell(const TrendPhase& p) {
  if (!p.rate) return Text("-");
  Html html = Text(Number(*p.rate));
  if (p.against.empty()) return html;
  return html + Format(" {} <span class=\"soft\">{}</span>",
                       Badge(judge::Name(p.outcome), std::string(Kind(p.outcome)) + " tag"),
                       Percent(p.change));
}

Html StepTable(const Trend& trend, const std::string& by) {
  std::vector<Column> columns = {{by}};
  for (const TrendPhase& p : trend.steps.front().phases) columns.push_back({p.phase});
  columns.push_back({"files", true});
  columns.push_back({"changed since the release before"});
  Table table("Each phase against the fastest release before it", columns);
  for (const TrendStep& step : trend.steps) {
    std::vector<Html> cells = {Text(step.release)};
    for (const TrendPhase& p : step.phases) cells.push_back(Cell(p));
    cells.push_back(Text(step.incomplete > 0
                             ? fmt::format("{}, {} incomplete left out", step.files, step.incomplete)
                             : fmt::format("{}", step.files)));
    Html changed = Text(fmt::format("{}", fmt::join(step.changed, ", ")));
    for (const record::Reason& r : step.reasons)
      changed += Format("<br><code>{}</code>: {}", record::Name(r.code), r.text);
    cells.push_back(changed);
    table.Row(cells, step.files == 0 ? "out" : "");
  }
  return table.Done();
}

Html Findings(const Trend& trend) {
  if (trend.first_bad.empty()) return Note("good", Text("No phase became slower."));
  Html html;
  for (const FirstBad& bad : trend.first_bad)
    html += Note("bad", Format("<p><strong>{}</strong> is first slower in <strong>{}</strong>: {:+.1f} % "
                               "against {}. Changed since: {}.</p>",
                               bad.phase, bad.release, 100 * bad.change, bad.against,
                               bad.changed.empty() ? "nothing recorded"
                                                   : fmt::format("{}", fmt::join(bad.changed, ", "))));
  return html;
}

Html FileTable(const std::vector<judge::Measured>& files) {
  Table table("Every file, in the order given",
              {{"file"}, {"created"}, {"scenario"}, {"verdict"}, {"legs that count", true}, {"invalid for"}});
  for (const judge::Measured& m : files) {
    int64_t all = 0;
    for (const auto& [kind, n] : m.legs) all += n;
    const auto counted = m.legs.find("counted");
    table.Row({Format("<code>{}</code>", m.file), Text(m.created), Text(m.name),
               Badge(record::Name(m.verdict), std::string(Kind(m.verdict)) + " tag"),
               Text(fmt::format("{} of {}", counted == m.legs.end() ? 0 : counted->second, all)),
               Text(fmt::format("{}{}", fmt::join(m.left_out_for, ", "),
                                m.complete ? "" : " (incomplete: not in the trend)"))},
              m.complete ? "" : "out");
  }
  return table.Done(true);
}

}  // namespace

std::string TrendPage(const std::vector<Trend>& trends, const std::vector<judge::Measured>& files,
                      const std::string& by) {
  size_t slower = 0;
  std::vector<Section> sections;
  for (size_t i = 0; i < trends.size(); ++i) {
    const Trend& trend = trends[i];
    slower += trend.first_bad.empty() ? 0 : 1;
    Html body = Findings(trend);
    if (!trend.steps.empty())
      body += Format(
          "<div class=\"wide\">{}</div>",
          Figure(Plot(trend),
                 "Small dots are processes, the line joins their geometric means; "
                 "red diamonds are slower than the fastest release before. The axes do not start at 0.",
                 StepTable(trend, by)));
    sections.push_back(
        {fmt::format("trend-{}", i + 1), fmt::format("{} on {}", trend.name, trend.board), body});
  }
  sections.push_back({"files", "Files", FileTable(files)});
  const std::string title =
      trends.size() == 1 ? trends.front().name : fmt::format("{} workloads", trends.size());
  const Html header = Format(
      "<div class=\"over\">warmleg report: trend by {}</div>\n<h1>{}</h1>\n<p class=\"lead\">{} {}</p>\n"
      "<p class=\"soft small\">{} files; warmleg report FILE shows one of them with all its legs</p>\n",
      by, title, slower > 0 ? Badge("slower", "bad") : Badge("good", "good"),
      slower > 0 ? "A phase became slower in some release." : "No phase became slower in any release.",
      files.size());
  return Page(title + " - warmleg trend", header, sections);
}

}  // namespace warmleg::report
