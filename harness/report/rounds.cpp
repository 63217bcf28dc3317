// What a round yields and what it costs: acceptance by position and class, parts against the roof, providers.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/judge/stats.h"
#include "harness/record/find_metric.h"
#include "harness/report/numbers.h"
#include "harness/report/sections.h"
#include "harness/report/svg.h"

namespace warmleg::report {
namespace {

using record::Leg;

constexpr size_t kMostClasses = 6;  // that get a colour and a shape of their own

struct Sums {
  int64_t rounds = 0, drafted = 0, accepted = 0, committed = 0, legs = 0;
  std::vector<int64_t> accepted_at;
  void Add(const record::Counters& c) {
    ++legs, rounds += c.rounds, drafted += c.drafted, accepted += c.accepted, committed += c.committed;
    accepted_at.resize(std::max(accepted_at.size(), c.accepted_at.size()));
    for (size_t i = 0; i < c.accepted_at.size(); ++i) accepted_at[i] += c.accepted_at[i];
  }
};

std::optional<double> Over(int64_t a, int64_t b) {
  return b > 0 ? std::optional(static_cast<double>(a) / static_cast<double>(b)) : std::nullopt;
}

void Marker(Svg& svg, size_t kind, Point at, const std::string& tip) {
  const std::string fill = fmt::format("f{}", kind + 1);
  switch (kind) {
    case 0:
      return svg.Circle(at, 4, fill, tip);
    case 1:
      return svg.Diamond(at, 5.5, fill, tip);
    case 2:
      return svg.Square(at, 4, fill, tip);
    case 3:
      return svg.Triangle(at, 4.5, fill, tip);
    default:
      return svg.Cross(at, 4, fmt::format("s{} curve", kind + 1), tip);
  }
}

// Names at the ends of the curves, pushed apart so that they can be read.
void EndLabels(Svg& svg, std::vector<std::pair<double, std::string>> labels, double x) {
  constexpr double kApart = 14;
  std::sort(labels.begin(), labels.end());
  for (size_t i = 1; i < labels.size(); ++i)
    labels[i].first = std::max(labels[i].first, labels[i - 1].first + kApart);
  for (const auto& [y, name] : labels) svg.Words({x, y + 4}, name, "name");
}

Html AcceptancePlot(const std::map<std::string, Sums>& classes, size_t positions) {
  Svg svg(620, 300, "Acceptance by position in the block",
          "Share of rounds in which the draft at each position was accepted, one curve a class of prompts.");
  const Frame frame{56, 30, 430, 220};
  const Scale y = svg.YAxis(frame, 0, 100, 5, "% of rounds");
  const Scale x{0.6, static_cast<double>(positions) + 0.4, frame.left, frame.right()};
  svg.Line({frame.left, frame.bottom()}, {frame.right(), frame.bottom()}, "axis");
  for (size_t i = 1; i <= positions; ++i)
    svg.Words({x(static_cast<double>(i)), frame.bottom() + 18}, fmt::format("{}", i), "label middle");
  svg.Words({frame.right(), frame.bottom() + 36}, "position in the block", "unit end");
  size_t kind = 0;
  std::vector<std::pair<double, std::string>> labels;
  for (const auto& [name, sums] : classes) {
    if (kind == kMostClasses || sums.rounds == 0) continue;
    std::vector<Point> points;
    for (size_t i = 0; i < sums.accepted_at.size(); ++i)
      points.push_back({x(static_cast<double>(i + 1)), y(100 * *Over(sums.accepted_at[i], sums.rounds))});
    svg.Path(points, fmt::format("curve s{}", kind + 1));
    for (size_t i = 0; i < points.size(); ++i)
      Marker(svg, kind, points[i],
             fmt::format("{}, position {}: {:.1f} % of {} rounds", name, i + 1,
                         100 * *Over(sums.accepted_at[i], sums.rounds), sums.rounds));
    if (!points.empty()) labels.emplace_back(points.back().y, name);
    ++kind;
  }
  EndLabels(svg, labels, frame.right() + 12);
  return svg.Done();
}

struct Part {
  const char* name;
  double ms = 0;
};

std::optional<double> RoofMs(const record::Result& result, const std::string& arm) {
  std::vector<double> bytes;
  for (const Leg& leg : result.legs)
    if (Counts(leg) && leg.arm == arm && leg.read_bytes_per_round) bytes.push_back(*leg.read_bytes_per_round);
  const std::optional<double> median = judge::Median(bytes);
  if (!median || !result.roof.read_gb_s || !(*result.roof.read_gb_s > 0)) return std::nullopt;
  return *median / *result.roof.read_gb_s / 1e6;
}

// One bar with its parts in the order of the round; returns where it ends.
void Bar(Svg& svg, const Scale& x, double top, const std::vector<Part>& parts, bool plain) {
  constexpr double kHeight = 34, kWorthName = 44;
  double at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double begin = x(at);
    const double width = x(at + parts[i].ms) - begin;
    const size_t colour = plain ? 0 : (i + 1) % 6;
    svg.Rect({begin, top, std::max(width - 1, 0.5), kHeight}, fmt::format("f{}", colour + 1),
             fmt::format("{}: {} ms", parts[i].name, Number(parts[i].ms)));
    if (width > kWorthName) svg.Words({begin + width / 2, top + kHeight / 2 + 4}, parts[i].name, "onbar");
    at += parts[i].ms;
  }
}

void Roof(Svg& svg, const Scale& x, double top, double ms) {
  svg.Line({x(ms), top - 6}, {x(ms), top + 40}, "roof");
  svg.Words({x(ms), top - 10}, fmt::format("read roof {} ms", Number(ms)), "label middle");
}

Html RoundPlot(double step_ms, const std::vector<Part>& parts, std::optional<double> roof_plain,
               std::optional<double> roof_draft, const std::string& arm) {
  double total = step_ms;
  double sum = 0;
  for (const Part& part : parts) sum += part.ms;
  total = std::max({total, sum, roof_plain.value_or(0), roof_draft.value_or(0)});
  Svg svg(620, 220, "A plain step and a drafting round",
          "Milliseconds by part; the red line is the time to read the weights.");
  const Frame frame{76, 30, 530, 146};
  const Scale x = svg.XAxis(frame, 0, total * 1.05, 6, "ms");
  svg.Words({frame.left - 10, 62}, "plain step", "name end");
  svg.Words({frame.left - 10, 138}, fmt::format("{} round", arm.size() > 8 ? "draft" : arm), "name end");
  Bar(svg, x, 40, {{"step", step_ms}}, true);
  Bar(svg, x, 116, parts, false);
  if (roof_plain) Roof(svg, x, 40, *roof_plain);
  if (roof_draft) Roof(svg, x, 116, *roof_draft);
  return svg.Done();
}

}  // namespace

Html Acceptance(const record::Result& result, const std::string& arm) {
  std::map<std::string, Sums> classes;
  Sums all;
  for (const Leg& leg : result.legs)
    if (Counts(leg) && leg.arm == arm) classes[leg.prompt_class].Add(leg.counters), all.Add(leg.counters);
  if (all.rounds == 0)
    return Note("note", Text("No drafting leg counts, so there is no acceptance to show."));
  if (classes.size() > 1) classes["all"] = all;
  std::vector<Column> columns = {{"class"},
                                 {"rounds", true},
                                 {"accepted/drafted", true},
                                 {"accepted/round", true},
                                 {"committed/round", true}};
  Table table("Sums over the legs that count", columns);
  Table positions("Share of rounds that accepted the draft at each position, %", [&] {
    std::vector<Column> titles = {{"class"}};
    for (size_t i = 1; i <= all.accepted_at.size(); ++i) titles.push_back({fmt::format("{}", i), true});
    return titles;
  }());
  for (const auto& [name, sums] : classes) {
    table.Row({Text(name), Text(fmt::format("{}", sums.rounds)),
               Text(Cell(Over(sums.accepted, sums.drafted))), Text(Cell(Over(sums.accepted, sums.rounds))),
               Text(Cell(Over(sums.committed, sums.rounds)))});
    std::vector<Html> cells = {Text(name)};
    for (const int64_t n : sums.accepted_at)
      cells.push_back(Text(sums.rounds > 0 ? fmt::format("{:.1f}", 100 * *Over(n, sums.rounds)) : "-"));
    positions.Row(cells);
  }
  return Figure(
      AcceptancePlot(classes, all.accepted_at.size()),
      "A draft counts at a position only when all before it were accepted, so a curve can only fall.",
      table.Done() + positions.Done());
}

Html RoundParts(const record::Result& result, const std::string& arm) {
  const std::optional<double> step = record::MetricValue(result, "plain", "round_s");
  const std::optional<double> round = record::MetricValue(result, arm, "round_s");
  if (!step || !round) return Note("note", Text("No counted leg of both arms, so a round has no time."));
  std::vector<Part> parts;
  for (const char* name : {"draft", "select", "verify", "commit", "host", "unaccounted"})
    if (const auto s = record::MetricValue(result, arm, fmt::format("{}_s_per_round", name)))
      parts.push_back({name, std::max(*s, 0.0) * 1e3});
  if (parts.empty()) parts.push_back({"round", *round * 1e3});
  const auto roof_plain = RoofMs(result, "plain");
  const auto roof_draft = RoofMs(result, arm);
  Table table("Times of one round", {{"part"}, {"ms", true}, {"share", true}, {"plain steps", true}});
  const auto row = [&](const std::string& name, double ms, const char* kind) {
    table.Row({Text(name), Text(Number(ms)), Text(fmt::format("{:.1f} %", ms / *round / 10)),
               Text(fmt::format("{:.2f}", ms / (*step * 1e3)))},
              kind);
  };
  for (const Part& part : parts) row(part.name, part.ms, "");
  row(arm + " round", *round * 1e3, "strong");
  table.Row({Text("plain step"), Text(Number(*step * 1e3)), Text(""), Text("1.00")}, "strong");
  if (const auto n = record::MetricValue(result, arm, "committed_per_round"))
    table.Row({Text("per token, " + arm), Text(Number(*round * 1e3 / *n)), Text(""),
               Text(fmt::format("{:.2f}", *round / *n / *step))});
  if (roof_plain)
    table.Row({Text("read roof, plain"), Text(Number(*roof_plain)), Text(""),
               Text(fmt::format("{:.2f}", *roof_plain / *step / 1e3))});
  if (roof_draft)
    table.Row({Text("read roof, " + arm), Text(Number(*roof_draft)), Text(""),
               Text(fmt::format("{:.2f}", *roof_draft / *step / 1e3))});
  const std::string caption = result.roof.read_gb_s
                                  ? fmt::format(
                                        "The read roof is the time this machine takes to read the bytes of a "
                                        "step or a round at {} GB/s, measured by "
                                        "the probe in the same processes.",
                                        Number(*result.roof.read_gb_s))
                                  : "No probe ran on this device, so there is no read roof.";
  return Figure(RoundPlot(*step * 1e3, parts, roof_plain, roof_draft, arm), caption, table.Done());
}

Html Providers(const record::Result& result) {
  const bool any = std::any_of(result.legs.begin(), result.legs.end(), Counts);
  struct Row {
    int64_t calls = 0, fallbacks = 0, bytes = 0;
    std::string why;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Row>
      rows;                                                      // op, arm, device, provider
  std::map<std::pair<std::string, std::string>, int64_t> calls;  // op, arm
  for (const Leg& leg : result.legs) {
    if (any && !Counts(leg)) continue;
    for (const record::Provider& p : leg.providers) {
      Row& row = rows[{p.op, leg.arm, p.device, p.provider}];
      row.calls += p.calls, row.fallbacks += p.fallbacks, row.bytes += p.bytes;
      if (p.fallback_reason) row.why = *p.fallback_reason;
      calls[{p.op, leg.arm}] += p.calls;
    }
  }
  if (rows.empty()) return Note("note", Text("The legs name no provider."));
  Table table(any ? "Sums over the legs that count" : "Sums over all legs, for none counts",
              {{"op"},
               {"arm"},
               {"device"},
               {"provider"},
               {"calls", true},
               {"share", true},
               {"GB", true},
               {"fell back", true},
               {"why"}});
  int64_t reference = 0;
  for (const auto& [key, row] : rows) {
    const auto& [op, arm, device, provider] = key;
    const bool fell = provider == "vt-cpu-ref" || row.fallbacks > 0;
    reference += provider == "vt-cpu-ref" && device != "cpu" ? row.calls : 0;
    table.Row({Text(op), Text(arm), Text(device), Format("<code>{}</code>", provider),
               Text(fmt::format("{}", row.calls)),
               Text(fmt::format("{:.0f} %", 100.0 * Over(row.calls, calls[{op, arm}]).value_or(0))),
               Text(Number(static_cast<double>(row.bytes) / 1e9)), Text(fmt::format("{}", row.fallbacks)),
               Text(row.why)},
              fell ? "strong" : "");
  }
  const Html head =
      reference > 0
          ? Note("bad", Format("<p>{} calls ran on the reference tier of the CPU instead of the device.</p>",
                               reference))
          : Format("<p>No call fell to the reference tier of the CPU.</p>\n");
  return head + table.Done(true);
}

}  // namespace warmleg::report
