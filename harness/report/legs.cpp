// Facts about legs that several parts of the page need, and the plot of their rates.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/report/numbers.h"
#include "harness/report/sections.h"
#include "harness/report/svg.h"

namespace warmleg::report {

using record::Code;
using record::Leg;
using record::Reason;
using record::Severity;

bool Counts(const Leg& leg) {
  return leg.valid && leg.state == record::State::warm && !record::Has(leg.reasons, Code::partner_left_out) &&
         !record::Has(leg.reasons, Code::output_counts_differ);
}

std::vector<const Reason*> WhyOut(const Leg& leg) {
  std::vector<const Reason*> why;
  if (Counts(leg)) return why;
  for (const Reason& reason : leg.reasons) {
    const Severity severity = record::Info(reason.code).severity;
    if (severity == Severity::cold || severity == Severity::invalid ||
        reason.code == Code::partner_left_out || reason.code == Code::output_counts_differ)
      why.push_back(&reason);
  }
  return why;
}

std::optional<double> DecodeRate(const Leg& leg) {
  if (leg.rates.decode_tok_s) return leg.rates.decode_tok_s;
  if (!leg.times.decode_s || !(*leg.times.decode_s > 0) || leg.counters.committed <= 0) return std::nullopt;
  return static_cast<double>(leg.counters.committed) / *leg.times.decode_s;
}

std::string LegName(const Leg& leg) {
  return fmt::format("process {}, pair {}, {}", leg.process + 1, leg.pair, leg.arm);
}

namespace {

std::string Codes(const std::vector<const Reason*>& reasons) {
  std::string text;
  for (const Reason* reason : reasons)
    text += (text.empty() ? "" : ", ") + std::string(record::Name(reason->code));
  return text;
}

std::string Tip(const Leg& leg, bool ratio_alone) {
  std::string text = fmt::format("{}, {}: {} tok/s", LegName(leg), leg.prompt, Cell(DecodeRate(leg)));
  if (!Counts(leg)) text += fmt::format("\nleft out: {}", Codes(WhyOut(leg)));
  if (ratio_alone) text += "\nin the ratio alone: slow_process";
  return text;
}

// Where one process's legs stand on the axis.
struct Stretch {
  int64_t process = 0;
  size_t first = 0, last = 0;
};

std::vector<Stretch> Stretches(const std::vector<Leg>& legs) {
  std::vector<Stretch> all;
  for (size_t i = 0; i < legs.size(); ++i) {
    if (all.empty() || all.back().process != legs[i].process) all.push_back({legs[i].process, i, i});
    all.back().last = i;
  }
  return all;
}

Html RatePlot(const record::Result& result, const std::set<int64_t>& slow) {
  constexpr double kRoom = 1.08;  // above the fastest leg
  double most = 0;
  for (const Leg& leg : result.legs) most = std::max(most, DecodeRate(leg).value_or(0));
  Svg svg(820, 330, "Decode rate of every leg",
          "One mark a leg, in the order run; the table has every number.");
  const Frame frame{56, 30, 752, 256};
  const Scale y = svg.YAxis(frame, 0, most > 0 ? most * kRoom : 1, 5, "tok/s");
  const Scale x{-0.5, static_cast<double>(result.legs.size()) - 0.5, frame.left, frame.right()};
  svg.Line({frame.left, frame.bottom()}, {frame.right(), frame.bottom()}, "axis");
  for (const Stretch& s : Stretches(result.legs)) {
    const double begin = x(static_cast<double>(s.first) - 0.5);
    const double end = x(static_cast<double>(s.last) + 0.5);
    if (s.first > 0) svg.Line({begin, frame.top}, {begin, frame.bottom() + 8}, "split");
    svg.Words({(begin + end) / 2, frame.bottom() + 20}, fmt::format("process {}", s.process + 1),
              "label middle");
  }
  for (size_t i = 0; i < result.legs.size(); ++i) {
    const Leg& leg = result.legs[i];
    const std::optional<double> rate = DecodeRate(leg);
    const Point at{x(static_cast<double>(i)), y(rate.value_or(0))};
    const bool counts = Counts(leg);
    const bool ratio_alone = counts && slow.contains(leg.process);
    const std::string tip = Tip(leg, ratio_alone);
    const std::string faint = ratio_alone ? " faint" : "";
    if (!rate || (!counts && !leg.valid))
      svg.Cross(at, 4, "cross", tip);
    else if (leg.arm == "plain")
      svg.Circle(at, 4, counts ? "plain" + faint : "hollow", tip);
    else
      svg.Diamond(at, 5.5, counts ? "draft" + faint : "hollow", tip);
  }
  return svg.Done();
}

std::string Clock(const Leg& leg) {
  return leg.clocks.sclk_mhz.p50 ? fmt::format("{:.0f}", *leg.clocks.sclk_mhz.p50) : "-";
}

Html WhyCell(const Leg& leg, bool slow) {
  std::vector<Html> parts;
  if (slow && Counts(leg))
    parts.push_back(
        Format("<code>{}</code>: out of the rates, in the ratio", record::Name(Code::slow_process)));
  for (const Reason* reason : WhyOut(leg))
    parts.push_back(Format("<code>{}</code>: {}", record::Name(reason->code), reason->text));
  if (parts.empty()) return Text(Counts(leg) ? "" : "cold or invalid, no reason given");
  return Join(parts, "; ");
}

}  // namespace

Html LegRates(const Document& document) {
  const record::Result& result = document.result;
  if (result.legs.empty()) return Note("bad", Text("The file has no legs."));
  const std::set<int64_t> slow = judge::SlowProcesses(result);
  Table table(
      "Every leg in the order run; grey ones are left out of every number, those of a slow process of all "
      "but the ratio. Rates of invalid legs are "
      "computed from their "
      "times for this page alone",
      {{"leg"},
       {"prompt"},
       {"class"},
       {"decode tok/s", true},
       {"prefill tok/s", true},
       {"committed/round", true},
       {"SCLK MHz", true},
       {"left out for"}});
  for (const Leg& leg : result.legs)
    table.Row({Text(LegName(leg)), Text(leg.prompt), Text(leg.prompt_class), Text(Cell(DecodeRate(leg))),
               Text(Cell(leg.rates.prefill_tok_s)), Text(Cell(leg.rates.committed_per_round)),
               Text(Clock(leg)), WhyCell(leg, slow.contains(leg.process))},
              Counts(leg) ? "" : "out");
  const std::string& arm = document.measured.drafting_arm;
  const Html key = Key("plain", "plain") + Key("draft", arm) +
                   (slow.empty() ? Html() : Key("plain faint", "slow process: in the ratio alone")) +
                   Key("hollow", "left out: cold, or its partner is out") + Key("cross", "left out: invalid");
  return Format(
      "<p>{}</p>\n<div class=\"wide\">{}</div>", key,
      Figure(RatePlot(result, slow),
             "Legs of one pair stand side by side. Rest the pointer on a mark for its leg and reason.",
             table.Done(true)));
}

}  // namespace warmleg::report
