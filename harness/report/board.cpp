// The board while legs ran: four series over one time axis, with the legs marked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/judge/stats.h"
#include "harness/report/numbers.h"
#include "harness/report/sections.h"
#include "harness/report/svg.h"

namespace warmleg::report {
namespace {

using record::Leg;

constexpr double kWidth = 820, kLeft = 62, kPlotWidth = 746, kPanel = 84, kGap = 34, kTop = 66;

struct Span {
  int64_t begin_ns = 0, end_ns = 0;
};

Span Extent(const Document& document) {
  Span span{INT64_MAX, INT64_MIN};
  const auto widen = [&](int64_t begin, int64_t end) {
    span.begin_ns = std::min(span.begin_ns, begin), span.end_ns = std::max(span.end_ns, end);
  };
  for (const Leg& leg : document.result.legs)
    if (leg.clocks.begin_ns && leg.clocks.end_ns) widen(*leg.clocks.begin_ns, *leg.clocks.end_ns);
  if (!document.samples.ticks.empty())
    widen(document.samples.ticks.front().ns, document.samples.ticks.back().ns);
  return span;
}

// Points of one series, at most two a column of the plot (its lowest and highest), cut where samples are
// missing.
std::vector<std::vector<Point>> Curves(const std::vector<Tick>& ticks, size_t field, const Scale& x,
                                       const Scale& y, int64_t zero_ns, double gap_s) {
  std::vector<std::vector<Point>> curves;
  double last_s = 0;
  double column = -1;
  size_t in_column = 0;  // points of this column
  for (const Tick& tick : ticks) {
    const double value = tick.value[field];
    const double seconds = static_cast<double>(tick.ns - zero_ns) / 1e9;
    if (std::isnan(value)) continue;
    if (curves.empty() || seconds - last_s > gap_s) curves.emplace_back(), in_column = 0;
    last_s = seconds;
    std::vector<Point>& points = curves.back();
    const Point at{x(seconds), y(value)};
    if (std::floor(at.x) != column) column = std::floor(at.x), in_column = 0;
    if (in_column < 2) {
      points.push_back(at), ++in_column;
      continue;
    }
    Point& a = points[points.size() - 2];
    Point& b = points.back();
    if (at.y < std::min(a.y, b.y)) (a.y < b.y ? a : b).y = at.y;
    if (at.y > std::max(a.y, b.y)) (a.y > b.y ? a : b).y = at.y;
  }
  return curves;
}

struct Range {
  double low = 0, high = 0;
  bool any = false;
};

Range RangeOf(const std::vector<Tick>& ticks, size_t field) {
  Range range;
  for (const Tick& tick : ticks) {
    const double value = tick.value[field];
    if (std::isnan(value)) continue;
    range.low = range.any ? std::min(range.low, value) : value;
    range.high = range.any ? std::max(range.high, value) : value;
    range.any = true;
  }
  return range;
}

std::string_view Kind(const Leg& leg, bool tint) {
  if (!Counts(leg)) return tint ? "tint-out" : "outbar";
  if (leg.arm == "plain") return tint ? "tint-plain" : "plain";
  return tint ? "tint-draft" : "draft";
}

std::string Tip(const Leg& leg) {
  std::string text = LegName(leg);
  for (const record::Reason* reason : WhyOut(leg))
    text += fmt::format("\nleft out: {}", record::Name(reason->code));
  return text;
}

// The strip of legs on top, and their tint behind the series.
void DrawLegs(const record::Result& result, const Scale& x, int64_t zero_ns, double bottom, Svg& svg) {
  int64_t process = -1;
  for (const Leg& leg : result.legs) {
    if (!leg.clocks.begin_ns || !leg.clocks.end_ns) continue;
    const double begin = x(static_cast<double>(*leg.clocks.begin_ns - zero_ns) / 1e9);
    const double end = x(static_cast<double>(*leg.clocks.end_ns - zero_ns) / 1e9);
    svg.Rect({begin, kTop - 36, end - begin, 10}, Kind(leg, false), Tip(leg));
    svg.Rect({begin, kTop - 20, end - begin, bottom - kTop + 20}, Kind(leg, true));
    if (leg.process == process) continue;
    process = leg.process;
    svg.Words({begin, kTop - 44}, fmt::format("process {}", process + 1), "label");
  }
}

Html Plot(const Document& document) {
  const Span span = Extent(document);
  const double seconds = static_cast<double>(span.end_ns - span.begin_ns) / 1e9;
  const bool minutes = seconds > 600;
  const std::vector<Tick>& ticks = document.samples.ticks;
  const double bottom = kTop + 4 * kPanel + 3 * kGap;
  Svg svg(kWidth, bottom + 44, "The board while legs ran",
          "SCLK, MCLK, power and temperature over time; the strip on top marks the legs.");
  const Scale x{0, seconds, kLeft, kLeft + kPlotWidth};
  DrawLegs(document.result, x, span.begin_ns, bottom, svg);
  const double interval_s = static_cast<double>(document.result.telemetry.interval_ms.value_or(100)) / 1e3;
  for (size_t i = 0; i < kSeries.size(); ++i) {
    const Frame frame{kLeft, kTop + static_cast<double>(i) * (kPanel + kGap), kPlotWidth, kPanel};
    const Range range = RangeOf(ticks, i);
    svg.Words({frame.left, frame.top - 8}, fmt::format("{} {}", kSeries[i].title, kSeries[i].unit),
              "name loud");
    if (!range.any) {
      svg.Words({frame.left + 8, frame.top + kPanel / 2}, "not seen", "label");
      continue;
    }
    // Clocks start at 0: half of the top level must look like half.
    const bool from_zero = i < 3;
    const double room = std::max(0.08 * (range.high - (from_zero ? 0 : range.low)), 1.0);
    const Scale y = svg.YAxis(frame, from_zero ? 0 : std::floor(range.low - room), range.high + room, 3, {});
    for (const std::vector<Point>& points : Curves(ticks, i, x, y, span.begin_ns, 5 * interval_s))
      svg.Path(points, "line");
  }
  const Frame all{kLeft, kTop, kPlotWidth, bottom - kTop};
  svg.XAxis(all, 0, minutes ? seconds / 60 : seconds, 8, minutes ? "minutes" : "seconds");
  return svg.Done();
}

// Medians over the windows of one arm's counted legs.
struct Row {
  std::vector<double> p5, p50, p95;
  void Add(const record::ClockStat& s) {
    if (!s.p50) return;
    p5.push_back(s.p5.value_or(*s.p50)), p50.push_back(*s.p50), p95.push_back(s.p95.value_or(*s.p50));
  }
};

std::string Shown(const std::vector<double>& values) { return Cell(judge::Median(values)); }

Html StatTable(const record::Result& result) {
  std::map<std::string, std::map<std::string, Row>> rows;  // field -> arm
  for (const Leg& leg : result.legs) {
    if (!Counts(leg)) continue;
    rows["1 SCLK MHz"][leg.arm].Add(leg.clocks.sclk_mhz);
    rows["2 MCLK MHz"][leg.arm].Add(leg.clocks.mclk_mhz);
    rows["3 Power W"][leg.arm].Add(leg.clocks.power_w);
    rows["4 Temperature \u00b0C"][leg.arm].Add(leg.clocks.temp_c);
  }
  Table table("Medians over the windows of the legs that count",
              {{"field"}, {"arm"}, {"p5", true}, {"p50", true}, {"p95", true}});
  for (const auto& [field, arms] : rows)
    for (const auto& [arm, row] : arms)
      if (!row.p50.empty())
        table.Row({Text(field.substr(2)), Text(arm), Text(Shown(row.p5)), Text(Shown(row.p50)),
                   Text(Shown(row.p95))});
  return table.empty() ? Html() : table.Done();
}

Html SourceTable(const record::Telemetry& telemetry) {
  if (telemetry.sources.empty()) return {};
  Table table(fmt::format("Sources, one sample in {} ms", telemetry.interval_ms.value_or(0)),
              {{"field"}, {"read from"}});
  for (const auto& [field, source] : telemetry.sources)
    table.Row({Text(field), Format("<code>{}</code>", source)});
  return table.Done();
}

}  // namespace

Html BoardOverTime(const Document& document) {
  const record::Result& result = document.result;
  Html notes;
  for (const std::string& problem : document.samples.problems)
    notes += Note("warn", Format("<p>The series is not complete: {}</p>", problem));
  if (result.telemetry.lost)
    notes += Note("warn", Format("<p>Samples ended early: {}</p>", *result.telemetry.lost));
  if (!result.telemetry.device && document.samples.ticks.empty())
    return notes +
           Note("note", Text("No board was watched, so no clock vouches for these rates. Watch one with "
                             "--telemetry-device auto."));
  const Html tables = StatTable(result) + SourceTable(result.telemetry);
  if (document.samples.ticks.empty())
    return notes +
           Note("warn",
                Text(result.telemetry.samples_file
                         ? "No series could be read; only the windows of the legs are shown."
                         : "The result names no samples file; only the windows of the legs are shown.")) +
           tables;
  const auto timed = [](const Leg& leg) { return leg.clocks.begin_ns && leg.clocks.end_ns; };
  if (std::none_of(result.legs.begin(), result.legs.end(), timed))
    notes += Note("note",
                  Text("This file does not say when each leg ran (clocks.begin_ns), so no leg is marked."));
  const Html key =
      Key("plain", "plain") + Key("draft", document.measured.drafting_arm) + Key("outbar", "left out");
  return notes + Format("<p>{}</p>", key) +
         Figure(Plot(document),
                "The strip on top marks when a leg ran; between legs run the sentinel and, between "
                "processes, loading.",
                tables);
}

}  // namespace warmleg::report
