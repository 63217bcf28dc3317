// Numbers of a plan: repeats, pairs within a budget, durations, which device `auto` is.
#include <gtest/gtest.h>

#include "backend/vt/error.h"
#include "harness/run/devices.h"
#include "harness/run/plan.h"

namespace warmleg::run {
namespace {

TEST(Plan, EveryPromptGetsBothOrdersOverTwoProcesses) {
  for (int64_t pair = 0; pair < 4; ++pair) EXPECT_NE(PlainFirst(0, pair), PlainFirst(1, pair));
  EXPECT_NE(PlainFirst(0, 0), PlainFirst(0, 1));
}

TEST(Plan, OnePromptOfEachLengthIsWarmed) {
  const std::vector<Prompt> prompts = {{"a", "c", {1, 2}}, {"b", "c", {3, 4}}, {"c", "c", {5}}};
  EXPECT_EQ(OneOfEachLength(prompts), (std::vector<std::vector<int32_t>>{{1, 2}, {5}}));
}

TEST(Plan, RepeatsMakeALegLongEnough) {
  EXPECT_EQ(RepeatsFor(0, 0.1), 1);
  EXPECT_EQ(RepeatsFor(3.5, 3.5), 1);
  EXPECT_EQ(RepeatsFor(3.5, 4), 1);
  EXPECT_GE(static_cast<double>(RepeatsFor(3.5, 0.4)) * 0.4, 3.5);
  EXPECT_GE(RepeatsFor(3.5, 0), 1000);
}

TEST(Plan, ABudgetGivesPairsAndAtLeastOne) {
  EXPECT_EQ(PairsWithin(100, 4, 5, 2, 8), 8);  // 20 s each fit 10
  EXPECT_EQ(PairsWithin(100, 4, 5, 5, 8), 4);  // 20 s each fit 4
  EXPECT_EQ(PairsWithin(10, 4, 5, 5, 8), 1);   // nothing fits
  EXPECT_EQ(PairsWithin(-10, 4, 5, 0, 8), 1);
}

TEST(Plan, Durations) {
  EXPECT_EQ(ParseDuration("90"), 90);
  EXPECT_EQ(ParseDuration("90s"), 90);
  EXPECT_EQ(ParseDuration("15m"), 900);
  EXPECT_EQ(ParseDuration("1.5h"), 5400);
  for (const char* bad : {"", "m", "0", "-1m", "15x", "15 m", "1e400", "nan", "inf"}) {
    EXPECT_THROW(ParseDuration(bad), vt::InputError) << bad;
  }
  EXPECT_EQ(DurationText(48.4), "48 s");
  EXPECT_EQ(DurationText(200), "3 min 20 s");
  EXPECT_EQ(DurationText(7500), "2 h 5 min");
}

vt::DeviceInfo Device(vt::DeviceType type, int index) {
  vt::DeviceInfo info;
  info.device = {type, index};
  info.name = "board";
  return info;
}

TEST(Devices, AutoIsTheOnlyGpuElseCpu) {
  using enum vt::DeviceType;
  EXPECT_EQ(ResolveDevice("auto", {Device(cpu, 0)}, {}), (vt::Device{cpu, 0}));
  EXPECT_EQ(ResolveDevice("auto", {Device(cpu, 0), Device(rocm, 1)}, {}), (vt::Device{rocm, 1}));
  EXPECT_EQ(ResolveDevice("auto", {Device(cpu, 0), Device(sim, 0)}, {}), (vt::Device{cpu, 0}));
  EXPECT_THROW(ResolveDevice("auto", {Device(cpu, 0), Device(rocm, 0), Device(rocm, 1)}, {}), vt::InputError);
}

TEST(Devices, AMissingOneIsNamedWithWhatIsThere) {
  try {
    ResolveDevice("rocm:3", {Device(vt::DeviceType::cpu, 0)}, {"no HIP runtime"});
    FAIL();
  } catch (const vt::EnvironmentError& e) {
    EXPECT_STREQ(e.what(), "no device rocm:3 here; there is cpu; no HIP runtime");
  }
  EXPECT_THROW(ResolveDevice("gpu", {}, {}), vt::InputError);
}

}  // namespace
}  // namespace warmleg::run
