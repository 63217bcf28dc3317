#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/clock_rules.h"

namespace warmleg::judge {
namespace {

using record::ClockWindow;
using record::Code;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

ClockWindow Steady() {
  ClockWindow w;
  w.samples = w.samples_all = 40;
  w.sclk_mhz.p50 = 2890, w.sclk_mhz.first_third = 2890, w.sclk_mhz.last_third = 2890;
  w.top_sclk_mhz = 2900, w.busy_percent.p50 = 99;
  w.perf_levels = {"auto"}, w.power_caps_w = {120};
  w.thermal_throttle = false, w.hw_slowdown = false, w.power_capped = true, w.other_clients = 0;
  return w;
}

ClockContext Context() {
  ClockContext c;
  c.first_perf_level = "auto", c.first_power_cap_w = 120;
  return c;
}

std::vector<Code> Codes(const ClockWindow& w, const ClockContext& context = Context()) {
  std::vector<Code> codes;
  for (const auto& reason : ClockReasons(w, context)) codes.push_back(reason.code);
  return codes;
}

TEST(ClockRules, SteadyBoardAndPowerCapPass) { EXPECT_THAT(Codes(Steady()), IsEmpty()); }

TEST(ClockRules, LowUnderLoadOfL01) {
  ClockWindow w = Steady();
  w.sclk_mhz.p50 = w.sclk_mhz.first_third = w.sclk_mhz.last_third = 41;
  w.top_sclk_mhz = 2400, w.busy_percent.p50 = 100;
  EXPECT_THAT(Codes(w), ElementsAre(Code::clock_low_under_load));
  EXPECT_EQ(ClockReasons(w, Context())[0].value, 41.0);
  EXPECT_EQ(ClockReasons(w, Context())[0].limit, 1200.0);
}

TEST(ClockRules, LowClockBounds) {
  ClockWindow w = Steady();
  w.sclk_mhz.p50 = 1450;
  EXPECT_THAT(Codes(w), ElementsAre(Code::clock_low_under_load));  // exactly half
  w.sclk_mhz.p50 = 1451;
  EXPECT_THAT(Codes(w), IsEmpty());
  w.sclk_mhz.p50 = 600, w.busy_percent.p50 = 90;
  EXPECT_THAT(Codes(w), ElementsAre(Code::clock_low_under_load));
  w.busy_percent.p50 = 89.9;
  EXPECT_THAT(Codes(w), IsEmpty());
  w.busy_percent.p50.reset();  // unreadable: computing
  EXPECT_THAT(Codes(w), ElementsAre(Code::clock_low_under_load));
  w.top_sclk_mhz.reset();
  EXPECT_THAT(Codes(w), IsEmpty());
}

TEST(ClockRules, FastSentinelMakesTheReadingSuspect) {
  ClockWindow w = Steady();
  w.sclk_mhz.p50 = 600;
  ClockContext c = Context();
  c.sentinel_gb_s = 153.6, c.peak_gb_s = 256;
  EXPECT_THAT(Codes(w, c), ElementsAre(Code::telemetry_suspect));
  c.sentinel_gb_s = 153.5;
  EXPECT_THAT(Codes(w, c), ElementsAre(Code::clock_low_under_load));
  c.sentinel_gb_s = 250, c.peak_gb_s.reset();  // unknown peak: no exemption
  EXPECT_THAT(Codes(w, c), ElementsAre(Code::clock_low_under_load));
}

TEST(ClockRules, RampAndDrift) {
  ClockWindow w = Steady();
  w.sclk_mhz.first_third = 2000, w.sclk_mhz.last_third = 2060;
  EXPECT_THAT(Codes(w), IsEmpty());
  w.sclk_mhz.last_third = 2061;
  EXPECT_THAT(Codes(w), ElementsAre(Code::ramping));
  w.sclk_mhz.last_third = 1940;
  EXPECT_THAT(Codes(w), IsEmpty());
  w.sclk_mhz.last_third = 1939;
  EXPECT_THAT(Codes(w), ElementsAre(Code::thermal_drift));
  w.sclk_mhz.first_third = 2900, w.sclk_mhz.last_third = 2100;
  EXPECT_THAT(Codes(w), ElementsAre(Code::thermal_drift));
}

TEST(ClockRules, ChangesThrottleAndClients) {
  ClockWindow w = Steady();
  w.perf_levels = {"auto", "low"};
  EXPECT_THAT(Codes(w), ElementsAre(Code::perf_level_changed));
  EXPECT_EQ(ClockReasons(w, Context())[0].value, "low");
  w = Steady(), w.power_caps_w = {100};
  EXPECT_THAT(Codes(w), ElementsAre(Code::power_cap_changed));
  w = Steady(), w.thermal_throttle = true;
  EXPECT_THAT(Codes(w), ElementsAre(Code::thermal_throttle));
  w = Steady(), w.hw_slowdown = true;
  EXPECT_THAT(Codes(w), ElementsAre(Code::hw_slowdown));
  w = Steady(), w.other_clients = 1;
  EXPECT_THAT(Codes(w), ElementsAre(Code::not_alone));
}

TEST(ClockRules, UnverifiedBelowTwentySamples) {
  ClockWindow w = Steady();
  w.samples = 20;
  EXPECT_TRUE(ClocksSeen(w));
  w.samples = 19;
  EXPECT_THAT(Codes(w), ElementsAre(Code::clock_unverified));
  EXPECT_THAT(Codes(ClockWindow{}),
              ElementsAre(Code::clock_unverified));  // nothing readable fails nothing else
}

TEST(ClockRules, AcrossTheLegs) {
  record::Result r;
  r.environment.ram_bytes = 1000;
  for (const char* arm : {"plain", "dflash2"}) {
    record::Leg leg;
    leg.arm = arm, leg.counted = true, leg.clocks = Steady(), leg.clocks.cached_bytes = 100;
    r.legs.push_back(leg);
  }
  EXPECT_THAT(CampaignClockWarnings(r), IsEmpty());
  r.legs[1].clocks.sclk_mhz.p50 = 2890 * 0.989;
  r.legs[1].clocks.cached_bytes = 201;
  ASSERT_EQ(CampaignClockWarnings(r).size(), 2U);
  EXPECT_EQ(CampaignClockWarnings(r)[0].code, Code::arms_ran_at_different_clocks);
  EXPECT_EQ(CampaignClockWarnings(r)[1].code, Code::page_cache_differs);
  r.legs[1].clocks.sclk_mhz.p50 = 2890 * 0.991;
  r.legs[1].clocks.cached_bytes = 200;
  EXPECT_THAT(CampaignClockWarnings(r), IsEmpty());
  r.legs[1].clocks.sclk_mhz.p50 = 600;
  r.legs[1].counted = false;
  EXPECT_THAT(CampaignClockWarnings(r), IsEmpty());
}

TEST(ClockRules, FirstOfTheCampaign) {
  record::Result r;
  r.legs.resize(3);
  r.legs[1].clocks.perf_levels = {"high", "low"};
  r.legs[2].clocks.power_caps_w = {90};
  const ClockContext c = FirstOfCampaign(r);
  EXPECT_EQ(c.first_perf_level, "high");
  EXPECT_EQ(c.first_power_cap_w, 90);
}

}  // namespace
}  // namespace warmleg::judge
