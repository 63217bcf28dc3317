#include <gtest/gtest.h>

#include <vector>

#include "harness/telemetry/reading.h"
#include "harness/telemetry/window.h"

namespace warmleg::telemetry {
namespace {

using record::ClockSample;

constexpr int64_t kMs = 1'000'000;

ClockSample At(int64_t ms, double sclk, double power = 100) {
  ClockSample s;
  s.monotonic_ns = ms * kMs;
  s.sclk_mhz = Value(sclk, Source::rocm_smi);
  s.top_sclk_mhz = Value(2900.0, Source::rocm_smi);
  s.power_w = Value(power, Source::hwmon);
  s.perf_level = Value(std::string("auto"), Source::rocm_smi);
  return s;
}

TEST(Window, PercentilesByNearestRankAndThirdsInTime) {
  std::vector<ClockSample> samples;
  for (int i = 1; i <= 100; ++i) samples.push_back(At(i * 10, i));
  const record::ClockWindow w = MakeWindow(samples, 10 * kMs, 1000 * kMs, {}, 10 * kMs);
  EXPECT_EQ(w.samples, 100);
  EXPECT_EQ(w.sclk_mhz.p5, 5);
  EXPECT_EQ(w.sclk_mhz.p50, 50);
  EXPECT_EQ(w.sclk_mhz.p95, 95);
  EXPECT_EQ(w.sclk_mhz.mean, 50.5);
  EXPECT_EQ(w.sclk_mhz.first_third, 17);  // median of 1..34
  EXPECT_EQ(w.sclk_mhz.last_third, 83);   // median of 67..100
  EXPECT_EQ(w.top_sclk_mhz, 2900);
  EXPECT_FALSE(w.verified);
}

TEST(Window, SamplesOutsideAndNullsDoNotCount) {
  std::vector<ClockSample> samples = {At(0, 1), At(100, 600), At(200, 700), At(300, 800), At(400, 1)};
  samples[2].sclk_mhz = Null(Missing::no_current_level, Source::rocm_smi);
  const record::ClockWindow w = MakeWindow(samples, 100 * kMs, 300 * kMs, {}, 100 * kMs);
  EXPECT_EQ(w.samples, 2);
  EXPECT_EQ(w.samples_all, 3);
  EXPECT_EQ(w.sclk_mhz.mean, 700);
  EXPECT_EQ(MakeWindow({}, 0, kMs, {}, kMs).samples_all, 0);
  EXPECT_FALSE(MakeWindow({}, 0, kMs, {}, kMs).sclk_mhz.p50);
  EXPECT_EQ(MakeWindow(samples, 300 * kMs, 100 * kMs, {}, kMs).samples_all, 0);
}

TEST(Window, PhasesWithRepeats) {
  std::vector<ClockSample> samples;
  for (int i = 0; i < 40; ++i) samples.push_back(At(i * 100, i % 20 < 5 ? 1000 : 2000));
  const std::vector<PhaseSpan> phases = {{"prefill", 0, 499 * kMs},
                                         {"decode", 500 * kMs, 1999 * kMs},
                                         {"prefill", 2000 * kMs, 2499 * kMs},
                                         {"decode", 2500 * kMs, 3999 * kMs}};
  const record::ClockWindow w = MakeWindow(samples, 0, 3999 * kMs, phases, 100 * kMs);
  ASSERT_EQ(w.phases.size(), 2U);
  EXPECT_EQ(w.phases.at("prefill").samples, 10);
  EXPECT_EQ(w.phases.at("prefill").sclk_mhz.p95, 1000);
  EXPECT_EQ(w.phases.at("decode").samples, 30);
  EXPECT_EQ(w.phases.at("decode").sclk_mhz.p5, 2000);
}

TEST(Window, EnergyIsPowerOverTime) {
  std::vector<ClockSample> samples;
  for (int i = 0; i <= 10; ++i) samples.push_back(At(i * 100, 2000, 50 + 10 * i));
  EXPECT_NEAR(*MakeWindow(samples, 0, 1000 * kMs, {}, 100 * kMs).energy_j, 100.0, 1e-9);
  // The ends are held.
  EXPECT_NEAR(*MakeWindow(samples, 950 * kMs, 1050 * kMs, {}, 100 * kMs).energy_j, 15.0, 1e-9);
  samples.erase(samples.begin() + 2, samples.begin() + 9);  // a hole of most of the leg
  EXPECT_FALSE(MakeWindow(samples, 0, 1000 * kMs, {}, 100 * kMs).energy_j);
  for (ClockSample& s : samples) s.power_w = Null(Missing::unsupported, Source::hwmon);
  EXPECT_FALSE(MakeWindow(samples, 0, 1000 * kMs, {}, 100 * kMs).energy_j);
}

TEST(Window, ThrottleLevelsAndCaps) {
  std::vector<ClockSample> samples = {At(0, 1), At(100, 2), At(200, 3)};
  EXPECT_FALSE(MakeWindow(samples, 0, 200 * kMs, {}, kMs).thermal_throttle.has_value());
  for (ClockSample& s : samples) s.throttle = Value(record::Throttle{}, Source::gpu_metrics);
  samples[1].throttle.value->power_cap = true;
  record::ClockWindow w = MakeWindow(samples, 0, 200 * kMs, {}, kMs);
  EXPECT_EQ(w.thermal_throttle, false);
  EXPECT_EQ(w.power_capped, true);
  samples[1].throttle.value->thermal = true;
  samples[2].perf_level = Value(std::string("high"), Source::sysfs);
  samples[2].power_cap_w = Value(120.0, Source::hwmon);
  w = MakeWindow(samples, 0, 200 * kMs, {}, kMs);
  EXPECT_EQ(w.thermal_throttle, true);
  EXPECT_EQ(w.hw_slowdown, false);
  EXPECT_EQ(w.perf_level, "auto");
  EXPECT_EQ(w.perf_levels, (std::vector<std::string>{"auto", "high"}));
  EXPECT_EQ(w.power_caps_w, std::vector<double>{120});
  EXPECT_EQ(MakeWindow(samples, 200 * kMs, 200 * kMs, {}, kMs).thermal_throttle, false);
}

TEST(Window, TheDeviceClockTakesThePlaceOfASensorThatIsMute) {
  std::vector<record::ClockSample> samples;
  for (int i = 0; i < 10; ++i) {
    record::ClockSample& s = samples.emplace_back();
    s.monotonic_ns = i * 100;
    s.sclk_mhz = Null(Missing::unsupported, Source::nvml);
    s.power_w = Value(300.0, Source::nvml);
  }
  const std::vector<PhaseSpan> phases = {{"prefill", 0, 450}, {"decode", 450, 900}};
  record::ClockWindow window = MakeWindow(samples, 0, 900, phases, 100);
  std::vector<TimedValue> mhz = {{-50, 9}, {910, 9}};
  for (int i = 0; i < 20; ++i) mhz.insert(mhz.end() - 1, {i * 45, i < 10 ? 1500.0 : 1980.0});
  UseDeviceClock(mhz, 1980.0, 0, 900, phases, 100, window);
  EXPECT_EQ(window.samples, 20) << "those outside the leg do not count";
  EXPECT_EQ(window.samples_all, 20);
  EXPECT_EQ(window.top_sclk_mhz, 1980);
  EXPECT_EQ(window.sclk_mhz.first_third, 1500);
  EXPECT_EQ(window.sclk_mhz.last_third, 1980);
  EXPECT_EQ(window.phases.at("decode").sclk_mhz.p50, 1980);
  EXPECT_EQ(window.power_w.p50, 300) << "what the sensor tells stays";
  UseDeviceClock(mhz, std::nullopt, 0, 900, phases, 100, window);
  EXPECT_FALSE(window.top_sclk_mhz);
}

}  // namespace
}  // namespace warmleg::telemetry
