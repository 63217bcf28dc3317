// One campaign: headline, what was left out, and the parts behind the numbers.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/judge/stats.h"
#include "harness/record/computed_on.h"
#include "harness/record/find_metric.h"
#include "harness/record/json.h"
#include "harness/report/numbers.h"
#include "harness/report/report.h"
#include "harness/report/sections.h"

namespace warmleg::report {

using record::Result;
using record::Verdict;

std::string_view Meaning(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified:
      return "Every leg behind a number passed every rule, with its clocks seen.";
    case Verdict::unverified:
      return "The numbers passed every rule that could be checked, but clocks could not be read or their "
             "rules did not bind: good for "
             "ratios on one machine, weak across machines.";
    case Verdict::simulated:
      return "Weights or accepted counts are made up, or the device is simulated: no number here is a "
             "measurement of a real model.";
    default:
      return "There is no number: the reasons below say why.";
  }
}

std::string_view Kind(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified:
      return "good";
    case Verdict::unverified:
      return "warn";
    case Verdict::simulated:
      return "note";
    default:
      return "bad";
  }
}

namespace {

std::string Interval(const std::optional<std::array<double, 2>>& ci, const char* unit) {
  return ci ? fmt::format("95 %: {} to {}{}", Number((*ci)[0]), Number((*ci)[1]), unit) : "no interval";
}

std::string Board(const Result& r) {
  const record::Environment& e = r.environment;
  if (!e.gpu) return "cpu " + e.cpu.value_or("");
  const std::string gpu =
      fmt::format("{} {} {}", e.gpu->name.value_or("GPU"), e.gpu->gfx.value_or(""), e.gpu->pci.value_or(""));
  return record::ComputedOnCpu(r) ? fmt::format("cpu {}, clocks of {}", e.cpu.value_or(""), gpu) : gpu;
}

Card RatioCard(const char* title, const std::optional<record::Speedup>& s) {
  if (!s || !s->value) return {title, "-", "may not be given"};
  std::string note = Interval(s->ci95, "");
  if (s->pairs_all > 0) note += fmt::format("; {} of {} pairs, n = {}", s->pairs, s->pairs_all, s->n);
  return {title, Number(*s->value) + "\u00d7", note};
}

Card RateCard(const std::string& title, const record::Metric* m) {
  if (!m || !m->value) return {title, "-", "no leg counts"};
  return {title, fmt::format("{} {}", Number(*m->value), m->unit),
          fmt::format("{}; n = {}", Interval(m->ci95, ""), m->n)};
}

Html Headline(const Document& d) {
  const Result& r = d.result;
  const std::string& arm = d.measured.drafting_arm;
  const record::Speedups none;
  const record::Speedups& s = r.speedup ? *r.speedup : none;
  std::vector<Card> cards = {RatioCard("decode, drafting over plain", s.decode),
                             RateCard("plain decode", record::FindMetric(r, "plain", "decode_tok_s")),
                             RateCard(arm + " decode", record::FindMetric(r, arm, "decode_tok_s")),
                             RatioCard("prefill, drafting over plain", s.prefill)};
  if (const auto committed = record::MetricValue(r, arm, "committed_per_round"))
    cards.push_back({"committed tokens a round", Number(*committed),
                     s.break_even_committed_per_round ? fmt::format("break-even on this board: {}",
                                                                    Number(*s.break_even_committed_per_round))
                                                      : "break-even unknown"});
  return Cards(cards);
}

Html ByClass(const Result& r) {
  if (!r.speedup || r.speedup->by_class.empty()) return {};
  Table table("Decode ratio by class of prompts",
              {{"class"}, {"ratio", true}, {"95 %", true}, {"processes", true}});
  for (const auto& [name, s] : r.speedup->by_class)
    table.Row({Text(name), Text(s.value ? fmt::format("{:.2f}\u00d7", *s.value) : "-"),
               Text(s.ci95 ? fmt::format("{:.2f} to {:.2f}", (*s.ci95)[0], (*s.ci95)[1]) : "-"),
               Text(fmt::format("{}", s.n))});
  return table.Done();
}

Html ProcessTable(const Document& d) {
  Table table(
      "Statistics are over processes (n counts them): one may land in a slow mode and stay there. The "
      "sentinel, a fixed "
      "plain decode before and after each pair, shows it",
      {{"process"},
       {"decode plain", true},
       {"decode drafting", true},
       {"sentinel s", true},
       {"of the best", true},
       {"loaded in s", true},
       {"peak memory GiB", true}});
  const std::set<int64_t> slow_processes = judge::SlowProcesses(d.result);
  for (const record::Process& p : d.result.processes) {
    const auto rate = [&](const std::string& endpoint) -> std::string {
      const auto it = d.measured.endpoints.find(endpoint);
      if (it == d.measured.endpoints.end()) return "-";
      for (const judge::ProcessRate& value : it->second.processes)
        if (value.process == p.index) return Number(value.value);
      return "-";
    };
    const bool slow = slow_processes.contains(p.index);
    constexpr double kGib = 1024.0 * 1024 * 1024;
    table.Row({Format("{}{}", p.index + 1, slow ? Format(" <code>slow_process</code>") : Html()),
               Text(rate("plain decode")), Text(rate(d.measured.drafting_arm + " decode")),
               Text(Cell(p.sentinel_s.median)),
               Text(p.ratio_to_best ? fmt::format("{:.3f}", *p.ratio_to_best) : "-"), Text(Cell(p.load_s)),
               Text(p.peak_rss_bytes ? Number(static_cast<double>(*p.peak_rss_bytes) / kGib) : "-")},
              slow ? "out" : "");
  }
  return table.Done();
}

// Every leaf of the object, by its path.
void Leaves(const record::Json& json, const std::string& path, Table& table) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items())
      Leaves(value, path.empty() ? key : fmt::format("{}.{}", path, key), table);
    return;
  }
  const std::string text = json.is_string()
                               ? json.get<std::string>()
                               : json.dump(-1, ' ', false, record::Json::error_handler_t::replace);
  table.Row({Format("<code>{}</code>", path), Format("<span class=\"code\">{}</span>", text)});
}

Html Details(std::string_view title, const record::Json& json) {
  Table table(std::string(title), {{"field"}, {"value"}});
  Leaves(json, "", table);
  return Format("<details><summary>{}</summary>{}</details>\n", title, table.Done());
}

Html Origin(const Document& d) {
  return Format("<p class=\"small\">Result <code>{}</code> of {}, sha256 <code>{}</code>.</p>\n", d.name,
                d.result.created, d.sha256);
}

}  // namespace

Html CampaignHeader(const Document& d) {
  const Result& r = d.result;
  std::string line = Board(r);
  if (r.environment.rocm && r.environment.rocm->loaded) line += ", ROCm " + *r.environment.rocm->loaded;
  if (r.environment.kernel) line += ", kernel " + *r.environment.kernel;
  return Format("<p class=\"lead\">{} {}{}</p>\n<p class=\"soft small\">{}; {}; warmleg {}</p>\n{}",
                Badge(record::Name(r.verdict), Kind(r.verdict)), Meaning(r.verdict),
                r.complete ? Html() : Format(" <strong>The campaign was not finished.</strong>"), line,
                r.created, r.environment.git.value_or("of an unknown revision"), Headline(d));
}

std::vector<Section> CampaignSections(const Document& d) {
  const Result& r = d.result;
  const std::string& arm = d.measured.drafting_arm;
  std::vector<Section> sections = {
      {"left-out", "What was left out, and why", LeftOut(r)},
      {"legs", "Rate of every leg", LegRates(d)},
      {"board", "The board over time", BoardOverTime(d)},
      {"acceptance", "Acceptance by position and class", Acceptance(r, arm) + ByClass(r)},
      {"round", "Where a round's time goes", RoundParts(r, arm)},
      {"processes", "Processes", ProcessTable(d)},
      {"providers", "Which kernel ran", Providers(r)},
  };
  Html origin = Origin(d);
  origin +=
      Details("Workload: two results are comparable when all of this agrees", record::ToJson(r.workload));
  origin += Details("Machine and build", record::ToJson(r.environment));
  origin += Details("Scenario", r.scenario);
  sections.push_back({"origin", "Where it comes from", origin});
  return sections;
}

std::string CampaignPage(const Document& d) {
  const std::string name = record::ScenarioText(d.result, "name", "unnamed");
  const Html header =
      Format("<div class=\"over\">warmleg report</div>\n<h1>{}</h1>\n{}", name, CampaignHeader(d));
  return Page(name + " - warmleg report", header, CampaignSections(d));
}

}  // namespace warmleg::report
