#include <fmt/format.h>

#include "harness/record/json.h"
#include "harness/report/compare.h"

namespace warmleg::report {
namespace {

using judge::EndpointVerdict;
using judge::Files;
using judge::Side;
using judge::WorkloadVerdict;
using record::Json;

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json Reasons(const std::vector<record::Reason>& reasons) {
  Json list = Json::array();
  for (const record::Reason& r : reasons) list.push_back(record::ToJson(r));
  return list;
}

Json FilesToJson(const Files& files) {
  Json list = Json::array();
  for (const judge::Measured* f : files) {
    Json shifts = Json::array();
    for (const auto& s : f->level_shifts)
      shifts.push_back(
          {{"process", s.process}, {"arm", s.arm}, {"after_leg", s.after_leg}, {"ratio", s.ratio}});
    list.push_back({{"file", f->file},
                    {"sha256", f->sha256},
                    {"created", f->created},
                    {"verdict", std::string(record::Name(f->verdict))},
                    {"complete", f->complete},
                    {"legs", f->legs},
                    {"level_shifts", shifts},
                    {"mixed_rocm", f->mixed_rocm}});
  }
  return list;
}

Json SideToJson(const Side& s) {
  return {{"n", s.values.size()},       {"geomean", OrNull(s.geomean)},
          {"median", OrNull(s.median)}, {"mad", OrNull(s.mad)},
          {"iqr", OrNull(s.iqr)},       {"process_values", s.values},
          {"process_ratios", s.ratios}, {"low_processes", OrNull(s.low_processes)},
          {"leg_values", s.legs}};
}

Json EndpointToJson(const EndpointVerdict& e) {
  return {{"name", e.name},
          {"unit", e.unit},
          {"better", e.better},
          {"verdict", std::string(judge::Name(e.outcome))},
          {"change", OrNull(e.change)},
          {"ci95", OrNull(e.ci95)},
          {"p", OrNull(e.p)},
          {"p_holm", OrNull(e.p_holm)},
          {"threshold", judge::limit::kThreshold},
          {"reasons", Reasons(e.reasons)},
          {"base", SideToJson(e.base)},
          {"candidate", SideToJson(e.candidate)}};
}

Json Changes(const std::vector<judge::Change>& changes) {
  Json list = Json::array();
  for (const auto& c : changes)
    list.push_back({{"field", c.field}, {"base", c.base}, {"candidate", c.candidate}});
  return list;
}

Json Fingerprint(const WorkloadVerdict& w) {
  Json components = Json::array();
  for (const auto& c : w.components)
    components.push_back({{"component", c.component}, {"fields", Changes(c.fields)}});
  return {{"components_changed", w.components.size()},
          {"components", components},
          {"beside", Changes(w.circumstances)},
          {"cause", OrNull(w.cause)}};
}

Json WorkloadToJson(const WorkloadVerdict& w) {
  Json json;
  json["name"] = w.name, json["verdict"] = std::string(judge::Name(w.outcome));
  json["reasons"] = Reasons(w.reasons), json["warnings"] = Reasons(w.warnings);
  json["workload"] = w.workload;
  json["differences"] = Json::array();
  for (const auto& d : w.differences)
    json["differences"].push_back(
        {{"field", d.field}, {"base", d.base}, {"candidate", d.candidate}, {"allowed", d.allowed}});
  json["base"] = FilesToJson(w.base), json["candidate"] = FilesToJson(w.candidate);
  json["providers"] = Json::array();
  for (const auto& p : w.providers)
    json["providers"].push_back({{"arm", p.arm}, {"op", p.op}, {"base", p.base}, {"candidate", p.candidate}});
  json["fingerprint"] = Fingerprint(w);
  json["clocks"] = Json::array();
  for (const auto& c : w.clocks)
    json["clocks"].push_back(
        {{"arm", c.arm}, {"clock", c.clock}, {"base", OrNull(c.base)}, {"candidate", OrNull(c.candidate)}});
  json["endpoints"] = Json::array();
  for (const auto& e : w.endpoints) json["endpoints"].push_back(EndpointToJson(e));
  json["exploratory"] = Json::array();
  for (const auto& e : w.exploratory)
    json["exploratory"].push_back({{"name", e.name},
                                   {"unit", e.unit},
                                   {"better", e.better},
                                   {"base", OrNull(e.base)},
                                   {"candidate", OrNull(e.candidate)},
                                   {"change", OrNull(e.change)},
                                   {"ci95", OrNull(e.ci95)},
                                   {"direction", e.direction}});
  return json;
}

// "plain decode" -> "plain/decode"
std::string BenchmarkName(const char* side, const std::string& scenario, std::string endpoint) {
  for (char& c : endpoint) c = c == ' ' ? '/' : c;
  return fmt::format("{}/{}/{}", side, scenario, endpoint);
}

}  // namespace

Json CompareJson(const judge::Comparison& c) {
  Json json;
  json["schema"] = "warmleg.compare/1";
  json["verdict"] = std::string(judge::Name(c.outcome)), json["exit_code"] = c.exit_code;
  json["reasons"] = Reasons(c.reasons), json["warnings"] = Reasons(c.warnings);
  json["threshold"] = judge::limit::kThreshold, json["alpha"] = judge::limit::kAlpha;
  json["missing"] = c.missing, json["new"] = c.added;
  json["workloads"] = Json::array();
  for (const WorkloadVerdict& w : c.workloads) json["workloads"].push_back(WorkloadToJson(w));
  return json;
}

Json GoogleBenchmarkJson(const judge::Comparison& c) {
  Json benchmarks = Json::array();
  int64_t family = 0;
  for (const WorkloadVerdict& w : c.workloads)
    for (const EndpointVerdict& e : w.endpoints)
      for (const auto& [side, values] :
           {std::pair{"base", &e.base.values}, {"candidate", &e.candidate.values}}) {
        const std::string name = BenchmarkName(side, w.name, e.name);
        for (size_t i = 0; i < values->size(); ++i) {
          const double ns = 1e9 / (*values)[i];
          benchmarks.push_back({{"name", name},
                                {"family_index", family},
                                {"per_family_instance_index", 0},
                                {"run_name", name},
                                {"run_type", "iteration"},
                                {"repetitions", values->size()},
                                {"repetition_index", i},
                                {"threads", 1},
                                {"iterations", 1},
                                {"real_time", ns},
                                {"cpu_time", ns},
                                {"time_unit", "ns"},
                                {"items_per_second", (*values)[i]}});
        }
        ++family;
      }
  const std::string date =
      c.workloads.empty() || c.workloads[0].candidate.empty() ? "" : c.workloads[0].candidate[0]->created;
  return {{"context", {{"date", date}, {"executable", "warmleg"}, {"library_build_type", "release"}}},
          {"benchmarks", benchmarks}};
}

}  // namespace warmleg::report
