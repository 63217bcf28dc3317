// What does not count and why: the part of the page that a stranger must understand without help.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/report/sections.h"

namespace warmleg::report {
namespace {

using record::Code;
using record::Leg;
using record::Reason;
using record::Severity;

constexpr size_t kNamed = 10;  // places named in a row before "and N more"

Html SeverityTag(Code code) {
  switch (record::Info(code).severity) {
    case Severity::cold:
      return Badge("cold", "plain tag");
    case Severity::invalid:
      return Badge("invalid", "bad tag");
    case Severity::warning:
      return Badge("warning", "warn tag");
    default:
      return Badge("campaign", "note tag");
  }
}

std::string Shown(const record::Json& value) {
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, record::Json::error_handler_t::replace);
}

// What a reason says of this leg alone: its text beyond the code's general text, or what was seen and
// allowed.
std::string Detail(const Reason& reason) {
  const std::string_view general = record::Info(reason.code).text;
  std::string_view text = reason.text;
  if (text.substr(0, general.size()) == general) text.remove_prefix(general.size());
  while (!text.empty() && (text.front() == ':' || text.front() == ' ')) text.remove_prefix(1);
  std::string out(text);
  if (reason.value.is_null()) return out;
  if (out.empty()) out = Shown(reason.value);
  return reason.limit.is_null() ? out : fmt::format("{}; limit {}", out, Shown(reason.limit));
}

// Where a code was found. Both arms of a pair for one cause are one place.
struct Place {
  int64_t process = -1, pair = -1;  // -1: not about one
  std::string detail;
  std::vector<std::string> arms;
  std::string prompt;
};
using Places = std::map<Code, std::vector<Place>>;

void AddLeg(const Leg& leg, const Reason& reason, Places& places) {
  std::vector<Place>& all = places[reason.code];
  const std::string detail = Detail(reason);
  for (Place& place : all)
    if (place.process == leg.process && place.pair == leg.pair && place.detail == detail)
      return place.arms.push_back(leg.arm);
  all.push_back({leg.process, leg.pair, detail, {leg.arm}, leg.prompt});
}

std::string Name(const Place& place) {
  if (place.process < 0) return "campaign";
  if (place.pair < 0) return fmt::format("process {}", place.process + 1);
  return fmt::format("process {}, pair {}, {}", place.process + 1, place.pair,
                     place.arms.size() > 1 ? "both arms" : place.arms.front());
}

Html PlaceCell(const std::vector<Place>& places) {
  std::vector<Html> lines;
  const std::string& detail = places.front().detail;
  const bool same =
      places.size() > 1 && !detail.empty() &&
      std::all_of(places.begin(), places.end(), [&](const Place& p) { return p.detail == detail; });
  if (same) lines.push_back(Format("<span class=\"soft\">each: {}</span>", detail));
  for (size_t i = 0; i < std::min(places.size(), kNamed); ++i)
    lines.push_back(same || places[i].detail.empty()
                        ? Text(Name(places[i]))
                        : Format("{} <span class=\"soft\">({})</span>", Name(places[i]), places[i].detail));
  if (places.size() > kNamed)
    lines.push_back(Text(fmt::format("and {} more rows like these", places.size() - kNamed)));
  Html out;
  for (size_t i = 0; i < lines.size(); ++i) out += i == 0 ? lines[i] : Format("<br>") + lines[i];
  return out;
}

size_t LegsOf(const std::vector<Place>& places) {
  size_t legs = 0;
  for (const Place& place : places) legs += std::max<size_t>(place.arms.size(), 1);
  return legs;
}

// `remark`: the legs count all the same, whatever the code does elsewhere.
Html ReasonTable(const char* caption, const char* counted, const Places& places, bool remark) {
  Table table(caption, {{"reason"}, {counted, true}, {"which"}, {"what it means"}, {"what to do"}});
  for (const auto& [code, where] : places) {
    const record::CodeInfo& info = record::Info(code);
    table.Row(
        {Format("<code>{}</code> {}", info.name, remark ? Badge("warning", "warn tag") : SeverityTag(code)),
         Text(fmt::format("{}", LegsOf(where))), PlaceCell(where), Text(info.text), Text(info.remedy)});
  }
  return table.Done();
}

void AddWarning(const record::Result& result, const Reason& reason, Places& places) {
  for (const Leg& leg : result.legs)
    if (reason.process && reason.leg && leg.process == *reason.process && leg.index == *reason.leg)
      return AddLeg(leg, reason, places);
  places[reason.code].push_back({reason.process.value_or(-1), -1, Detail(reason), {}, {}});
}

}  // namespace

Html ReasonNotes(const std::vector<Reason>& reasons, std::string_view kind) {
  Html html;
  for (const Reason& r : reasons)
    html += Note(kind, Format("<p><code>{}</code>: {}</p><p class=\"soft\">What to do: {}</p>",
                              record::Name(r.code), r.text, r.remedy));
  return html;
}

Html LeftOut(const record::Result& result) {
  Places out;
  Places warnings;
  size_t left_out = 0;
  size_t ratio_alone = 0;
  const std::set<int64_t> slow = judge::SlowProcesses(result);
  for (const Leg& leg : result.legs) {
    const std::vector<const Reason*> why = WhyOut(leg);
    left_out += Counts(leg) ? 0 : 1;
    ratio_alone += Counts(leg) && slow.contains(leg.process) ? 1 : 0;
    for (const Reason* reason : why) AddLeg(leg, *reason, out);
    for (const Reason& reason : leg.reasons)
      if (std::find(why.begin(), why.end(), &reason) == why.end()) AddLeg(leg, reason, warnings);
  }
  for (const Reason& reason : result.warnings) AddWarning(result, reason, warnings);
  const bool bad = result.verdict == record::Verdict::invalid || !result.complete;
  Html html = ReasonNotes(result.reasons, bad ? "bad" : "note");
  html += Format(
      "<p>{} of {} legs enter the numbers; {} are left out. They stay in the file with their data, and no "
      "rule looks at how fast a leg was: clocks, counts and the sentinel decide (a fixed plain decode before "
      "and after "
      "each pair). A leg with several reasons stands in several rows. Pair 0 is the warm-up.</p>\n",
      result.legs.size() - left_out, result.legs.size(), left_out);
  if (ratio_alone > 0)
    html += Format(
        "<p>{} of those that enter do so in the ratio alone: the sentinel found their process slow. Both "
        "arms were slowed, "
        "so the ratio stands, and a rate would not.</p>\n",
        ratio_alone);
  if (!out.empty()) html += ReasonTable("Legs left out, by reason", "legs", out, false);
  if (!warnings.empty())
    html += Format("<div class=\"space\"></div>\n") +
            ReasonTable("Warnings: the numbers stand, with these remarks", "times", warnings, true);
  return html;
}

}  // namespace warmleg::report
