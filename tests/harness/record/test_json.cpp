#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "tests/harness/record/full_result.h"

namespace warmleg::record {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const vt::InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RecordJson, FullResultSurvivesARoundTrip) {
  const Json json = ToJson(FullResult());
  const Json parsed = ParseStrict(Dump(json), "r.json");
  EXPECT_EQ(parsed, json);
  EXPECT_EQ(ToJson(FromJson<Result>(parsed, "r.json")), json);
}

TEST(RecordJson, NamesOfTheAgreement) {
  const Json json = ToJson(FullResult());
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  EXPECT_THAT(names, ::testing::ElementsAre("schema", "created", "complete", "verdict", "reasons", "warnings",
                                            "scenario", "workload", "environment", "telemetry", "roof",
                                            "reference", "processes", "legs", "summary", "speedup"));
  EXPECT_EQ(json["legs"][2]["class"], "code");
  EXPECT_EQ(json["legs"][2]["state"], "warm");
  EXPECT_EQ(json["legs"][0]["reasons"][0]["code"], "warmup");
  EXPECT_EQ(json["summary"]["plain"]["decode_tok_s"]["better"], "higher");
  EXPECT_EQ(json["speedup"]["decode"]["ci95"], Json({2.09, 2.15}));
}

TEST(RecordJson, UnknownFieldsAreKeptAtEveryDepth) {
  Json json = ToJson(FullResult());
  json["later"] = {{"a", 1}};
  json["legs"][1]["clocks"]["sclk_mhz"]["p99"] = 2899;
  json["summary"]["plain"]["decode_tok_s"]["sd"] = 0.5;
  const Json again = ToJson(FromJson<Result>(json, "r.json"));
  EXPECT_EQ(again, json);
}

TEST(RecordJson, NumbersThatAreNotFiniteBecomeNullWithAReason) {
  Result r = FullResult();
  r.legs[1].times.decode_s = std::numeric_limits<double>::infinity();
  r.scenario["x"] = std::nan("");
  const Json json = ToJson(r);
  EXPECT_TRUE(json["legs"][1]["times"]["decode_s"].is_null());
  EXPECT_TRUE(json["scenario"]["x"].is_null());
  ASSERT_EQ(json["warnings"].size(), 3U);
  EXPECT_EQ(json["warnings"][1]["code"], "not_finite");
  EXPECT_THAT(Dump(json["warnings"]), HasSubstr("legs[1].times.decode_s"));
  EXPECT_NO_THROW(FromJson<Result>(ParseStrict(Dump(json), "r"), "r"));
}

TEST(RecordJson, IntegersBeyondADoubleAreStrings) {
  Counters c;
  c.rounds = int64_t{1} << 53;
  c.drafted = (int64_t{1} << 53) + 1;
  c.accepted = std::numeric_limits<int64_t>::min();
  const Json json = ToJson(c);
  EXPECT_EQ(json["rounds"], 9007199254740992);
  EXPECT_EQ(json["drafted"], "9007199254740993");
  const auto back = FromJson<Counters>(ParseStrict(Dump(json), "c"), "c");
  EXPECT_EQ(back.rounds, c.rounds);
  EXPECT_EQ(back.drafted, c.drafted);
  EXPECT_EQ(back.accepted, c.accepted);
}

TEST(RecordJson, EveryDefectIsNamedAtOnce) {
  Json json = ToJson(FullResult());
  json.erase("created");
  json["legs"][0]["state"] = "tepid";
  json["legs"][1]["reasons"] = Json::array({{{"code", "no_such"}}});
  json["workload"]["prompts"] = 1.5;
  json["complete"] = "yes";
  const std::string error = ErrorOf([&] { FromJson<Result>(json, "r.json"); });
  EXPECT_THAT(error, HasSubstr("r.json: created is missing"));
  EXPECT_THAT(error, HasSubstr("legs[0].state is \"tepid\", expected cold or warm"));
  EXPECT_THAT(error, HasSubstr("legs[1].reasons[0].code is \"no_such\", expected a known reason code"));
  EXPECT_THAT(error, HasSubstr("workload.prompts is 1.5, expected an integer"));
  EXPECT_THAT(error, HasSubstr("complete is \"yes\", expected true or false"));
}

TEST(RecordJson, SampleFields) {
  ClockSample s;
  s.sclk_mhz = {.value = 2899, .source = Source::rocm_smi};
  s.mclk_mhz = {.missing = Missing::no_current_level, .source = Source::sysfs};
  s.perf_level = {.value = "auto", .source = Source::sysfs};
  s.throttle = {.value = Throttle{.thermal = true, .raw = 0x10, .active = {"temp_hotspot"}},
                .source = Source::gpu_metrics};
  const Json fields = FieldsToJson(s);
  EXPECT_EQ(fields["sclk_mhz"], Json({{"value", 2899.0}, {"source", "rocm_smi"}}));
  EXPECT_EQ(fields["mclk_mhz"],
            Json({{"value", nullptr}, {"reason", "no_current_level"}, {"source", "sysfs"}}));
  for (const char* name : {"sclk_mhz", "mclk_mhz", "fclk_mhz", "perf_level", "power_w", "power_cap_w",
                           "temp_c", "busy_percent", "throttle"})
    EXPECT_TRUE(fields.contains(name)) << name;
  EXPECT_EQ(FieldsToJson(SampleFromFields(fields, "line 1")), fields);
  Json bad = fields;
  bad["sclk_mhz"]["value"] = "fast";
  EXPECT_THAT(ErrorOf([&] { SampleFromFields(bad, "line 1"); }), HasSubstr("line 1: field sclk_mhz"));
}

TEST(Reasons, EveryCodeHasANameATextAndARemedy) {
  std::set<std::string_view> names;
  for (const CodeInfo& info : AllCodes()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.text.empty()) << info.name;
    EXPECT_FALSE(info.remedy.empty()) << info.name;
    EXPECT_EQ(CodeFromName(info.name), info.code);
  }
  EXPECT_EQ(CodeFromName("fine"), std::nullopt);
}

TEST(ParseStrict, RefusesWithTheLine) {
  const auto parse = [](std::string_view text) { return ErrorOf([&] { ParseStrict(text, "f.json"); }); };
  EXPECT_THAT(parse("{\n\"a\": 1,\n\"a\": 2}"), HasSubstr("f.json: line 3: key \"a\" stands twice"));
  EXPECT_THAT(parse("{\"a\": [\n\n1e999]}"), HasSubstr("f.json: line 3: number 1e999 is out of range"));
  EXPECT_THAT(parse("{\"a\":\nNaN}"), HasSubstr("f.json: line 2: "));
  EXPECT_THAT(parse("{\"a\":\n-Infinity}"), HasSubstr("f.json: line 2: "));
  EXPECT_THAT(parse("{\"a\": 1\n}\n{}"), HasSubstr("f.json: line 3: "));
  EXPECT_THAT(parse("{\"a\": [1,\n 2"), HasSubstr("line 2: the text ends in the middle"));
  EXPECT_THAT(parse("{\"a\": \"x"), HasSubstr("f.json: line 1: "));
  EXPECT_THAT(parse(""), HasSubstr("the text ends"));
  EXPECT_THAT(parse("{\"a\": 1} // c"), HasSubstr("f.json: line 1: "));
  EXPECT_THAT(parse(std::string(300, '[')), HasSubstr("nested too deep"));
}

TEST(ParseStrict, AcceptsWhatIsFine) {
  EXPECT_EQ(ParseStrict("\xEF\xBB\xBF{\"a\": 1.5}", "f")["a"], 1.5);
  EXPECT_EQ(ParseStrict("{ // why\n \"a\": /* x */ 1}", "f", true)["a"], 1);
  EXPECT_EQ(ParseStrict("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 2}]}", "f")["b"][1]["a"], 2);
  for (const double v : {0.1, 1e-300, 9007199254740991.0, 5e-324, 1.7976931348623157e308})
    EXPECT_EQ(ParseStrict(Dump(Json(v)), "f").get<double>(), v);
}

}  // namespace
}  // namespace warmleg::record
