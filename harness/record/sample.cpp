// A sample's fields as `warmleg clocks --json` and the samples file spell them.
#include <fmt/format.h>

#include "backend/vt/error.h"
#include "harness/record/json.h"

namespace warmleg::record {
namespace {

// Calls visit(name, reading) for each field of the agreement, in its order.
template <class Sample, class Visit>
void EachField(Sample& s, Visit visit) {
  visit("sclk_mhz", s.sclk_mhz), visit("mclk_mhz", s.mclk_mhz), visit("fclk_mhz", s.fclk_mhz);
  visit("perf_level", s.perf_level), visit("power_w", s.power_w), visit("power_cap_w", s.power_cap_w);
  visit("temp_c", s.temp_c), visit("busy_percent", s.busy_percent), visit("throttle", s.throttle);
  visit("top_sclk_mhz", s.top_sclk_mhz);
}

Json ValueToJson(double v) { return v; }
Json ValueToJson(const std::string& v) { return v; }
Json ValueToJson(const Throttle& v) {
  return {{"thermal", v.thermal},
          {"power_cap", v.power_cap},
          {"hw_slowdown", v.hw_slowdown},
          {"raw", fmt::format("{:#x}", v.raw)},
          {"active", v.active}};
}

void ValueFromJson(const Json& j, double& v) { v = j.get<double>(); }
void ValueFromJson(const Json& j, std::string& v) { v = j.get<std::string>(); }
void ValueFromJson(const Json& j, Throttle& v) {
  v.thermal = j.at("thermal").get<bool>();
  v.power_cap = j.at("power_cap").get<bool>();
  v.hw_slowdown = j.at("hw_slowdown").get<bool>();
  v.raw = std::stoull(j.at("raw").get<std::string>(), nullptr, 16);
  v.active = j.at("active").get<std::vector<std::string>>();
}

}  // namespace

Json FieldsToJson(const ClockSample& sample) {
  Json fields = Json::object();
  EachField(sample, [&](const char* name, const auto& reading) {
    Json source = nullptr;
    if (reading.source) source = std::string(Name(*reading.source));
    if (reading.value)
      fields[name] = {{"value", ValueToJson(*reading.value)}, {"source", source}};
    else
      fields[name] = {{"value", nullptr}, {"reason", std::string(Name(reading.missing))}, {"source", source}};
  });
  return fields;
}

ClockSample SampleFromFields(const Json& fields, std::string_view what) {
  ClockSample sample;
  EachField(sample, [&](const char* name, auto& reading) {
    auto it = fields.find(name);
    if (it == fields.end()) return;
    try {
      const Json& value = it->at("value");
      if (value.is_null()) {
        auto missing = MissingFromName(it->at("reason").template get_ref<const std::string&>());
        if (!missing) throw std::invalid_argument("unknown reason");
        reading.missing = *missing;
      } else {
        ValueFromJson(value, reading.value.emplace());
      }
      if (it->contains("source") && it->at("source").is_string())
        reading.source = SourceFromName(it->at("source").template get_ref<const std::string&>());
    } catch (const std::exception& error) {
      throw vt::InputError(fmt::format("{}: field {} is {}: {}", what, name, it->dump(), error.what()));
    }
  });
  return sample;
}

}  // namespace warmleg::record
