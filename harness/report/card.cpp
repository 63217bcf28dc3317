#include "harness/report/card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "harness/judge/measured.h"
#include "harness/judge/stats.h"
#include "harness/record/computed_on.h"
#include "harness/record/find_metric.h"
#include "harness/report/numbers.h"

namespace warmleg::report {
namespace {

using record::Result;

std::string Codes(const std::vector<record::Reason>& reasons) {
  std::set<std::string> names;
  for (const record::Reason& reason : reasons) names.insert(fmt::format("`{}`", record::Name(reason.code)));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Verdict(const Result& r) {
  std::string text = fmt::format("**{}**", record::Name(r.verdict));
  if (!r.complete) text += ", incomplete";
  if (!r.reasons.empty()) text += fmt::format(" ({})", Codes(r.reasons));
  if (!r.warnings.empty()) text += fmt::format("; warnings {}", Codes(r.warnings));
  return text;
}

std::string Row(const Result& r, const std::string& arm, const char* phase, const std::string& metric,
                const std::optional<record::Speedup>& speedup) {
  std::string ratio = "-";
  if (speedup && speedup->value) {
    ratio = fmt::format("{:.2f}x", *speedup->value);
    if (speedup->ci95) ratio += fmt::format(" ({:.2f} .. {:.2f})", (*speedup->ci95)[0], (*speedup->ci95)[1]);
  }
  const record::Metric* m = record::FindMetric(r, "plain", metric);
  return fmt::format("| {} ({}) | {} | {} | {} |\n", phase, m && !m->unit.empty() ? m->unit : "tok/s",
                     Cell(record::MetricValue(r, "plain", metric)), Cell(record::MetricValue(r, arm, metric)),
                     ratio);
}

std::string Board(const Result& r) {
  const record::Environment& e = r.environment;
  std::string text = "cpu";
  if (e.gpu) {
    const std::string gpu = fmt::format("{} {} {}", e.gpu->name.value_or("GPU"), e.gpu->gfx.value_or(""),
                                        e.gpu->pci.value_or(""));
    text = record::ComputedOnCpu(r) ? "cpu, clocks of " + gpu : gpu;
  }
  if (e.rocm && e.rocm->loaded) text += fmt::format(", ROCm {}", *e.rocm->loaded);
  if (judge::Measure(r).mixed_rocm) text += fmt::format(" (built with {})", *e.rocm->build);
  return text + fmt::format(", kernel {}, {}", e.kernel.value_or("unknown"), e.cpu.value_or("unknown cpu"));
}

std::string Clocks(const judge::Measured& m) {
  if (m.sclk_mhz.empty()) return "not seen";
  std::vector<std::string> arms;
  for (const auto& [arm, sclk] : m.sclk_mhz) {
    const auto mclk = m.mclk_mhz.find(arm);
    arms.push_back(fmt::format("{} SCLK {:.0f}{} MHz", arm, sclk,
                               mclk == m.mclk_mhz.end() ? "" : fmt::format(", MCLK {:.0f}", mclk->second)));
  }
  return fmt::format("median {}", fmt::join(arms, "; "));
}

// Counted legs are named against all: what was left out is part of the number.
std::string Legs(const judge::Measured& m) {
  int64_t all = 0;
  for (const auto& [kind, n] : m.legs) all += n;
  const auto counted = m.legs.find("counted");
  std::string text = fmt::format("{} of {} legs counted", counted == m.legs.end() ? 0 : counted->second, all);
  for (const auto& [kind, n] : m.legs)
    if (kind != "counted") text += fmt::format(", {} {}", n, kind);
  if (!m.left_out_for.empty()) text += fmt::format(" ({})", fmt::join(m.left_out_for, ", "));
  return text;
}

// What a user most often sets beside the scenario's own file; the scenario's hash says whether the rest
// agrees.
std::string Command(const Result& r) {
  std::string text = fmt::format("warmleg run {}", record::ScenarioText(r, "name", "SCENARIO"));
  if (const std::string device = record::ScenarioText(r, "device", "auto"); device != "auto")
    text += " --set device=" + device;
  const auto plan = r.scenario.find("plan");
  if (plan != r.scenario.end() && plan->is_object())
    for (const char* key : {"processes", "pairs"})
      if (plan->contains(key)) text += fmt::format(" --set plan.{}={}", key, plan->at(key).dump());
  return text + fmt::format(" --set generation.max_new_tokens={}", r.workload.max_new_tokens);
}

}  // namespace

std::string Card(const Result& r, const std::string& file, const std::string& sha256) {
  const judge::Measured m = judge::Measure(r);
  const std::string& arm = m.drafting_arm;
  const record::Speedups none;
  const record::Speedups& s = r.speedup ? *r.speedup : none;
  std::string text = fmt::format("### {}: {}\n\n", record::ScenarioText(r, "name", "unnamed"), Verdict(r));
  text += fmt::format("| | plain | {} | ratio (95 %) |\n|---|---|---|---|\n", arm);
  text += Row(r, arm, "decode", "decode_tok_s", s.decode);
  text += Row(r, arm, "prefill", "prefill_tok_s", s.prefill);
  const std::string ids =
      r.workload.temperature > 0
          ? fmt::format("ids not compared (sampled, seed {})", r.workload.seed)
          : fmt::format("ids equal on {} of {} prompts", r.reference.identical.value_or(0),
                        r.reference.prompts.value_or(0));
  text += fmt::format("\n- committed/round {}, break-even {}; {} processes, {}; {}\n",
                      Cell(record::MetricValue(r, arm, "committed_per_round")),
                      Cell(s.break_even_committed_per_round), r.processes.size(), Legs(m), ids);
  text += fmt::format("- board: {}; clocks: {}\n", Board(r), Clocks(m));
  text += fmt::format("- workload: {} prompts, {} new tokens, block {}, {} {}, {}, temperature {}\n",
                      r.workload.prompts, r.workload.max_new_tokens, r.workload.block_size, r.workload.dtype,
                      r.workload.precision, r.workload.graph_mode, r.workload.temperature);
  text += fmt::format("- reproduce (warmleg {}): `{}`, scenario sha256 `{}`\n",
                      r.environment.git.value_or("unknown"), Command(r),
                      record::ScenarioText(r, "sha256", "unknown"));
  return text + fmt::format("- result {} of {}, sha256 `{}`\n", file, r.created, sha256);
}

}  // namespace warmleg::report
