#include <gtest/gtest.h>

#include <string>

#include "harness/telemetry/dpm.h"

namespace warmleg::telemetry {
namespace {

TEST(Dpm, MarkedLevelIsCurrent) {
  const DpmTable t = ParseDpm("0: 400Mhz \n1: 800Mhz \n2: 1000Mhz *\n");
  EXPECT_EQ(t.current_mhz, 1000);
  EXPECT_EQ(t.current_level, 2);
  EXPECT_EQ(t.TopMhz(), 1000);
  EXPECT_FALSE(t.deep_sleep);
  EXPECT_FALSE(t.problem);
}

TEST(Dpm, OrderAndNumberAreNoRank) {
  const DpmTable down = ParseDpm("0: 1000Mhz *\n1: 800Mhz\n2: 400Mhz\n");
  EXPECT_EQ(down.current_mhz, 1000);
  EXPECT_EQ(down.TopMhz(), 1000);
  const DpmTable below = ParseDpm("0: 600Mhz \n1: 49Mhz *\n2: 2900Mhz \n");
  EXPECT_EQ(below.current_mhz, 49);
  EXPECT_EQ(below.current_level, 1);
  EXPECT_EQ(below.TopMhz(), 2900);
}

TEST(Dpm, DeepSleepLineIsNoLevel) {
  const DpmTable t = ParseDpm("S: 19Mhz *\n0: 615Mhz\n1: 800Mhz\n");
  EXPECT_EQ(t.current_mhz, 19);
  EXPECT_FALSE(t.current_level);
  EXPECT_TRUE(t.deep_sleep);
  ASSERT_EQ(t.levels.size(), 2U);
  EXPECT_EQ(t.levels[0].number, 0);
  EXPECT_EQ(t.levels[0].mhz, 615);
}

TEST(Dpm, EachProblemHasItsReason) {
  EXPECT_EQ(ParseDpm("").problem, Missing::empty);
  EXPECT_EQ(ParseDpm("\n \n").problem, Missing::empty);
  EXPECT_EQ(ParseDpm("0: 400Mhz\n1: 800Mhz\n").problem, Missing::no_current_level);
  EXPECT_EQ(ParseDpm("0: 400Mhz *\n1: 800Mhz *\n").problem, Missing::ambiguous);
  EXPECT_EQ(ParseDpm("0: 65535Mhz *\n").problem, Missing::sentinel_value);
  EXPECT_EQ(ParseDpm("0: 4294967295Mhz *\n").problem, Missing::sentinel_value);
  EXPECT_EQ(ParseDpm("nothing known\n").problem, Missing::error);
  for (const char* text : {"0: 400Mhz *\n1: 800Mhz *\n", "0: 65535Mhz *\n", "garbage\n"}) {
    EXPECT_FALSE(ParseDpm(text).current_mhz) << text;
    EXPECT_FALSE(ParseDpm(text).current_level) << text;
  }
}

TEST(Dpm, AFillerIsNoTopLevel) {
  const DpmTable t = ParseDpm("0: 500Mhz *\n1: 65535Mhz\n");
  EXPECT_EQ(t.current_mhz, 500);
  EXPECT_EQ(t.TopMhz(), 500);
}

TEST(Dpm, OtherSpellings) {
  EXPECT_EQ(ParseDpm("0: 500MHz *").current_mhz, 500);
  EXPECT_EQ(ParseDpm("0:500Mhz*\r\n").current_mhz, 500);
  EXPECT_EQ(ParseDpm("0: 500Mhz * extra\n").problem, Missing::error);
  EXPECT_EQ(ParseDpm("0: -5Mhz *\n").problem, Missing::error);
  EXPECT_EQ(ParseDpm("0: 99999999999999999999999Mhz *\n").problem, Missing::error);
  EXPECT_EQ(ParseDpm("0: 2.5GT/s, x1 *\n").problem, Missing::error);
  EXPECT_EQ(ParseDpm(std::string("\0\0\0", 3)).problem, Missing::error);
}

}  // namespace
}  // namespace warmleg::telemetry
