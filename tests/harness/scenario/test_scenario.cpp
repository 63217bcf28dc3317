#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/vt/error.h"
#include "harness/scenario/scenario.h"

namespace warmleg::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kGood = R"({
  // a comment
  "schema": "warmleg.scenario/1", "name": "tiny", "device": "cpu",
  "target": "ck/target", "draft": "/abs/draft",
  "prompts": {"file": "prompts/code.jsonl"},
  "generation": {"max_new_tokens": 96},
  "arms": [{"name": "plain"}, {"name": "dflash2", "block_size": 8}]
})";

Scenario With(const std::vector<std::string>& sets) {
  std::vector<Override> overrides;
  for (const auto& set : sets) overrides.push_back(ParseOverride(set));
  return FromText(kGood, "/s", "s.json", overrides);
}

std::string ErrorWith(const std::vector<std::string>& sets) {
  try {
    With(sets);
  } catch (const vt::InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Scenario, DefaultsAndPaths) {
  const Scenario s = With({});
  EXPECT_EQ(s.name, "tiny");
  EXPECT_EQ(s.target, "/s/ck/target");
  EXPECT_EQ(s.draft, "/abs/draft");
  EXPECT_EQ(s.prompts_file, "/s/prompts/code.jsonl");
  EXPECT_EQ(s.chat, Chat::raw);
  EXPECT_EQ(s.block_size, 8);
  EXPECT_EQ(s.plan.processes, 4);
  EXPECT_EQ(s.plan.warmup_pairs, 1);
  EXPECT_EQ(s.clocks.interval_ms, 100);
  EXPECT_FALSE(s.demo);
  EXPECT_EQ(s.generation.top_p, 1);
}

TEST(Scenario, NormalisedIsIndependentOfSpellingAndHashed) {
  const Scenario a = With({});
  const Scenario b = With({"plan.pairs=8", "demo=false"});
  EXPECT_EQ(a.normalised, b.normalised);
  EXPECT_EQ(a.normalised["target"], "ck/target");
  EXPECT_EQ(a.normalised["sha256"].get<std::string>().size(), 64U);
  EXPECT_NE(a.normalised["sha256"], With({"plan.pairs=9"}).normalised["sha256"]);
  // What is echoed reads back as the same scenario.
  Json echo = a.normalised;
  echo.erase("sha256");
  EXPECT_EQ(FromText(echo.dump(), "/s", "echo").normalised, a.normalised);
}

TEST(Scenario, SetParsesJsonElseText) {
  const Scenario s = With({"arms.1.block_size=4", "demo=true", "name=other", "prompts.chat=qwen-thinking",
                           "generation.temperature=0.7", "plan.min_leg_s=3.5", "clocks.perf_level=high"});
  EXPECT_EQ(s.block_size, 4);
  EXPECT_TRUE(s.demo);
  EXPECT_EQ(s.name, "other");
  EXPECT_EQ(s.chat, Chat::qwen_thinking);
  EXPECT_EQ(s.generation.temperature, 0.7);
  EXPECT_EQ(s.plan.min_leg_s, 3.5);
  EXPECT_EQ(s.clocks.perf_level, "high");
  EXPECT_EQ(With({"target=a=b"}).target, "/s/a=b");
}

TEST(Scenario, SetRefusesWhatItCannotPlace) {
  EXPECT_THAT(ErrorWith({"arms.2.block_size=4"}), HasSubstr("\"2\" is no index of a list of 2 (0 to 1)"));
  EXPECT_THAT(ErrorWith({"arms.x=4"}), HasSubstr("no index"));
  EXPECT_THAT(ErrorWith({"name.x=4"}), HasSubstr("neither object nor list"));
  EXPECT_THAT(ErrorWith({"novalue"}), HasSubstr("expected key=value"));
  EXPECT_THAT(ErrorWith({"plan..pairs=1"}), HasSubstr("empty key"));
}

TEST(Scenario, UnknownKeysNameTheNearest) {
  EXPECT_THAT(ErrorWith({"generaton.seed=1"}),
              HasSubstr("unknown key \"generaton\", nearest known key \"generation\""));
  EXPECT_THAT(ErrorWith({"plan.pair=1"}),
              HasSubstr("unknown key \"pair\" in plan, nearest known key \"pairs\""));
  EXPECT_THAT(ErrorWith({"arms.1.blocksize=1"}), HasSubstr("in arms.1, nearest known key \"block_size\""));
  EXPECT_THAT(ErrorWith({"arms.0.block_size=1"}), HasSubstr("unknown key \"block_size\" in arms.0"));
  EXPECT_THAT(ErrorWith({"weight=random"}),
              HasSubstr("unknown key \"weight\", nearest known key \"weights\""));
}

TEST(Scenario, MadeUpWeightsAndAcceptance) {
  EXPECT_FALSE(With({}).random_weights);
  EXPECT_FALSE(With({}).committed_per_round);
  const Scenario made_up = With({"weights=random", "simulate.committed_per_round=5.34"});
  EXPECT_TRUE(made_up.random_weights);
  EXPECT_EQ(made_up.committed_per_round, 5.34);
  EXPECT_EQ(made_up.normalised["simulate"]["committed_per_round"], 5.34);
  EXPECT_NE(made_up.normalised["sha256"], With({"weights=random"}).normalised["sha256"]);
  EXPECT_THAT(ErrorWith({"weights=zeros"}),
              HasSubstr("weights is \"zeros\", expected one of checkpoint, random"));
  EXPECT_THAT(ErrorWith({"simulate={}"}), HasSubstr("simulate.committed_per_round is missing"));
  EXPECT_THAT(ErrorWith({"simulate=3"}), HasSubstr("simulate is 3, expected an object"));
  EXPECT_THAT(ErrorWith({"simulate.committed_per_round=0.9"}),
              HasSubstr("simulate.committed_per_round is 0.9"));
  EXPECT_THAT(ErrorWith({"simulate.committed_per_round=8.5"}), HasSubstr("at most the block_size 8"));
  EXPECT_THAT(ErrorWith({"simulate.committed_per_round=2", "generation.temperature=0.5"}),
              HasSubstr("simulate needs generation.temperature 0"));
}

TEST(Scenario, EveryDefectAtOnce) {
  const std::string error =
      ErrorWith({"plan.pairs=0", "generation.top_p=1.5", "generation.precision=fp8", "device=gpu0", "demo=1",
                 "name=a/b", "clocks.interval_ms=1.5", "prompts.chat=llama", "target="});
  for (const char* part :
       {"plan.pairs is 0, expected an integer of 1 to 10000", "generation.top_p is 1.5",
        "generation.precision is \"fp8\"", "device is \"gpu0\", expected auto, cpu, rocm:N",
        "demo is 1, expected true or false", "name is \"a/b\"", "clocks.interval_ms is 1.5",
        "prompts.chat is \"llama\", expected one of raw, qwen, qwen-thinking",
        "target is \"\", expected text that is not empty"})
    EXPECT_THAT(error, HasSubstr(part));
  EXPECT_THAT(error, Not(HasSubstr("\n")));
}

TEST(Scenario, MissingAndMistypedParts) {
  EXPECT_THAT(ErrorWith({"generation={}"}), HasSubstr("generation.max_new_tokens is missing"));
  EXPECT_THAT(ErrorWith({"generation=3"}), HasSubstr("generation is 3, expected an object"));
  EXPECT_THAT(ErrorWith({"schema=warmleg.scenario/2"}), HasSubstr("schema is \"warmleg.scenario/2\""));
  EXPECT_THAT(ErrorWith({"arms=[{\"name\":\"plain\"}]"}),
              HasSubstr("arms has [plain], expected exactly two"));
  EXPECT_THAT(ErrorWith({"arms.0.name=dflash2"}), HasSubstr("expected exactly two"));
  EXPECT_THAT(ErrorWith({"arms.1.name=eagle"}),
              HasSubstr("arms.1.name is \"eagle\", expected one of plain, dflash2"));
  EXPECT_THAT(ErrorWith({"generation.seed=18446744073709551615"}), HasSubstr("generation.seed is"));
  try {
    FromText("{\n\"schema\": \"x\",\n\"schema\": \"y\"}", "", "s.json");
    FAIL();
  } catch (const vt::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("s.json: line 3: key \"schema\" stands twice"));
  }
}

TEST(Scenario, TheShippedOnesLoad) {
  for (const char* name : {"tiny-code", "clock-test", "qwen3.8-27b-dflash2"})
    EXPECT_EQ(Load(std::string("scenarios/") + name + ".json").name, name);
  EXPECT_THROW(Load("scenarios/no-such.json"), vt::InputError);
  EXPECT_THROW(Load("scenarios"), vt::InputError);
}

}  // namespace
}  // namespace warmleg::scenario
