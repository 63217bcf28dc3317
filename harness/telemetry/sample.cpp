#include "harness/telemetry/sample.h"

#include <utility>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/telemetry/gpu_metrics.h"

namespace warmleg::telemetry {
namespace {

using record::Json;

Json NumberJson(const Number& field) {
  Json out = Json::object();
  if (field.value) {
    out["value"] = *field.value;
  } else {
    out["value"] = nullptr;
    out["reason"] = record::Name(field.missing);
  }
  out["source"] = field.source ? Json(record::Name(*field.source)) : Json(nullptr);
  return out;
}

Number NumberFrom(const Json& object, const char* name) {
  Number out;
  const auto field = object.find(name);
  if (field == object.end() || !field->is_object()) return out;
  auto text = [&](const char* key) -> std::string {
    const auto it = field->find(key);
    return it != field->end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  out.source = record::SourceFromName(text("source"));
  if (const auto value = field->find("value"); value != field->end() && value->is_number()) {
    out.value = value->get<double>();
  } else {
    out.missing = record::MissingFromName(text("reason")).value_or(Missing::error);
  }
  return out;
}

template <typename Sample, typename Visit>
void VisitMore(Sample& s, Visit visit) {
  visit("average_sclk_mhz", s.average_sclk_mhz);
  visit("average_mclk_mhz", s.average_mclk_mhz);
  visit("average_fclk_mhz", s.average_fclk_mhz);
  visit("average_power_w", s.average_power_w);
  visit("junction_c", s.junction_c);
  visit("memory_c", s.memory_c);
  visit("memory_busy_percent", s.memory_busy_percent);
  visit("stapm_limit_w", s.stapm_limit_w);
  visit("cpu_mhz", s.cpu_mhz);
}

bool IsSampleLine(const Json& line) {
  auto holds = [&](const char* name, auto is) {
    const auto it = line.find(name);
    return it != line.end() && is(*it);
  };
  auto integer = [](const Json& j) { return j.is_number_integer(); };
  auto object = [](const Json& j) { return j.is_object(); };
  return line.is_object() && holds("t_ns", integer) && holds("cpu_ns", integer) && holds("fields", object) &&
         holds("more", object) && holds("pci", [](const Json& j) { return j.is_string(); });
}

}  // namespace

record::Reading<record::Throttle> ClassifyThrottle(const Names& names, uint64_t raw) {
  record::Reading<record::Throttle> out;
  out.missing = names.missing;
  out.source = names.source;
  if (!names.value) return out;
  record::Throttle throttle;
  throttle.raw = raw;
  throttle.active = *names.value;
  for (const std::string& name : throttle.active) {
    const ThrottleClass c = ClassOf(name);
    throttle.thermal |= c == ThrottleClass::thermal;
    throttle.power_cap |= c == ThrottleClass::power;
    throttle.hw_slowdown |= c == ThrottleClass::hw_slowdown;
  }
  out.value = std::move(throttle);
  return out;
}

Json ClocksJson(const BoardSample& sample, const std::string& name) {
  Json fields = record::FieldsToJson(sample.clocks);
  fields.erase("top_sclk_mhz");
  Json out = Json::object();
  out["pci"] = sample.pci;
  out["name"] = name;
  out["fields"] = std::move(fields);
  return out;
}

Json SampleJson(const BoardSample& sample) {
  Json out = Json::object();
  out["t_ns"] = sample.clocks.monotonic_ns;
  out["pci"] = sample.pci;
  out["cpu_ns"] = sample.sampler_cpu_ns;
  if (sample.deep_sleep) out["deep_sleep"] = true;
  if (sample.suspended) out["suspended"] = true;
  out["fields"] = record::FieldsToJson(sample.clocks);
  Json more = Json::object();
  VisitMore(sample, [&](const char* name, const Number& field) { more[name] = NumberJson(field); });
  out["more"] = std::move(more);
  return out;
}

std::optional<BoardSample> ParseSample(const Json& line) {
  if (!IsSampleLine(line)) return std::nullopt;
  BoardSample s;
  try {
    s.clocks = record::SampleFromFields(line["fields"], "sample");
  } catch (const vt::InputError&) {
    return std::nullopt;
  }
  s.pci = line["pci"].get<std::string>();
  s.clocks.monotonic_ns = line["t_ns"].get<int64_t>();
  s.sampler_cpu_ns = line["cpu_ns"].get<int64_t>();
  s.deep_sleep = line.contains("deep_sleep");
  s.suspended = line.contains("suspended");
  VisitMore(s, [&](const char* name, Number& field) { field = NumberFrom(line["more"], name); });
  return s;
}

Json SidecarJson(const BoardSample& sample) {
  Json out = Json::object();
  Json missing = Json::object();
  out["t_ns"] = sample.clocks.monotonic_ns;
  const Json fields = record::FieldsToJson(sample.clocks);
  for (const auto& [name, field] : fields.items()) {
    out[name] = field["value"];
    if (field["value"].is_null()) missing[name] = field["reason"];
  }
  VisitMore(sample, [&](const char* name, const Number& field) {
    out[name] = field.value ? Json(*field.value) : Json(nullptr);
    if (!field.value) missing[name] = record::Name(field.missing);
  });
  if (sample.deep_sleep) out["deep_sleep"] = true;
  if (sample.suspended) out["suspended"] = true;
  out["missing"] = std::move(missing);
  return out;
}

}  // namespace warmleg::telemetry
