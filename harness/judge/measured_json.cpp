// What the history keeps of a file. Names are those of the structs; raw leg rates stay in the result file.
#include "harness/judge/measured.h"
#include "harness/record/json.h"

namespace warmleg::judge {
namespace {

using record::Json;

Json ProcessesToJson(const Endpoint& endpoint) {
  Json list = Json::array();
  for (const ProcessRate& p : endpoint.processes)
    list.push_back({{"process", p.process}, {"value", p.value}});
  return list;
}

Endpoint EndpointFromJson(const Json& json) {
  Endpoint e;
  e.unit = json.at("unit"), e.better = json.at("better");
  for (const Json& p : json.at("processes")) e.processes.push_back({p.at("process"), p.at("value"), {}});
  return e;
}

Json ShownToJson(const Shown& s) {
  return {{"unit", s.unit},
          {"better", s.better},
          {"value", s.value ? Json(*s.value) : Json(nullptr)},
          {"processes", s.processes}};
}

Shown ShownFromJson(const Json& json) {
  Shown s;
  s.unit = json.at("unit"), s.better = json.at("better");
  if (!json.at("value").is_null()) s.value = json.at("value").get<double>();
  s.processes = json.at("processes").get<std::vector<double>>();
  return s;
}

record::Verdict VerdictFromName(const std::string& name) {
  using enum record::Verdict;
  for (const record::Verdict v : {verified, unverified, simulated})
    if (record::Name(v) == name) return v;
  return invalid;
}

}  // namespace

Json ToJson(const Measured& m) {
  Json json;
  json["file"] = m.file, json["sha256"] = m.sha256, json["name"] = m.name, json["created"] = m.created;
  json["complete"] = m.complete, json["verdict"] = std::string(record::Name(m.verdict));
  json["drafting_arm"] = m.drafting_arm, json["workload"] = m.workload;
  json["components"] = Json::object();
  for (const Component& c : m.components) json["components"][c.name] = c.fields;
  json["circumstances"] = m.circumstances, json["slow_processes"] = m.slow_processes;
  json["endpoints"] = Json::object();
  for (const auto& [name, e] : m.endpoints)
    json["endpoints"][name] = {{"unit", e.unit}, {"better", e.better}, {"processes", ProcessesToJson(e)}};
  json["exploratory"] = Json::object();
  for (const auto& [name, s] : m.exploratory) json["exploratory"][name] = ShownToJson(s);
  json["sclk_mhz"] = m.sclk_mhz, json["mclk_mhz"] = m.mclk_mhz;
  json["providers"] = Json::array();
  for (const ProviderShare& p : m.providers)
    json["providers"].push_back({{"arm", p.arm},
                                 {"op", p.op},
                                 {"provider", p.provider},
                                 {"calls", p.calls},
                                 {"fallbacks", p.fallbacks}});
  json["level_shifts"] = Json::array();
  for (const LevelShift& s : m.level_shifts)
    json["level_shifts"].push_back(
        {{"process", s.process}, {"arm", s.arm}, {"after_leg", s.after_leg}, {"ratio", s.ratio}});
  json["mixed_rocm"] = m.mixed_rocm, json["legs"] = m.legs, json["left_out_for"] = m.left_out_for;
  return json;
}

Measured MeasuredFromJson(const Json& json) {
  Measured m;
  m.file = json.at("file"), m.sha256 = json.at("sha256"), m.name = json.at("name"),
  m.created = json.at("created");
  m.complete = json.at("complete"), m.verdict = VerdictFromName(json.at("verdict"));
  m.drafting_arm = json.at("drafting_arm"), m.workload = json.at("workload");
  for (const auto& [name, fields] : json.at("components").items())
    m.components.push_back({name, fields.get<std::map<std::string, std::string>>()});
  m.circumstances = json.at("circumstances").get<std::map<std::string, std::string>>();
  m.slow_processes = json.at("slow_processes").get<std::vector<std::string>>();
  for (const auto& [name, e] : json.at("endpoints").items()) m.endpoints[name] = EndpointFromJson(e);
  for (const auto& [name, s] : json.at("exploratory").items()) m.exploratory[name] = ShownFromJson(s);
  m.sclk_mhz = json.at("sclk_mhz").get<std::map<std::string, double>>();
  m.mclk_mhz = json.at("mclk_mhz").get<std::map<std::string, double>>();
  for (const Json& p : json.at("providers"))
    m.providers.push_back({p.at("arm"), p.at("op"), p.at("provider"), p.at("calls"), p.at("fallbacks")});
  for (const Json& s : json.at("level_shifts"))
    m.level_shifts.push_back({s.at("process"), s.at("arm"), s.at("after_leg"), s.at("ratio")});
  m.mixed_rocm = json.at("mixed_rocm"), m.legs = json.at("legs").get<std::map<std::string, int64_t>>();
  m.left_out_for = json.at("left_out_for").get<std::vector<std::string>>();
  return m;
}

}  // namespace warmleg::judge
