#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/telemetry/gpu_metrics.h"
#include "tests/harness/telemetry/fake_tree.h"

namespace warmleg::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::FakeTree;

GpuMetricsResult Parse(const std::string& bytes) { return ParseGpuMetrics(std::as_bytes(std::span(bytes))); }

void Put(std::string& bytes, size_t at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

// A file of the given format, all zero behind the header.
std::string Blank(size_t size, int format, int content) {
  std::string bytes(size, '\0');
  Put(bytes, 0, size, 2);
  Put(bytes, 2, static_cast<uint64_t>(format), 1);
  Put(bytes, 3, static_cast<uint64_t>(content), 1);
  return bytes;
}

TEST(GpuMetrics, DiscreteCard13) {
  const FakeTree tree("rx7900xtx-steady");
  const GpuMetricsResult r = Parse(tree.Read("gpu_metrics"));
  ASSERT_TRUE(r.metrics);
  EXPECT_EQ(r.metrics->format, 1);
  EXPECT_EQ(r.metrics->content, 3);
  EXPECT_EQ(r.metrics->temp_c.value, 61);
  EXPECT_EQ(r.metrics->junction_c.value, 84);
  EXPECT_EQ(r.metrics->memory_c.value, 76);
  EXPECT_EQ(r.metrics->busy_percent.value, 97);
  EXPECT_EQ(r.metrics->memory_busy_percent.value, 41);
  EXPECT_EQ(r.metrics->socket_power_w.value, 288);
  EXPECT_EQ(r.metrics->current_sclk_mhz.value, 2482);
  EXPECT_EQ(r.metrics->current_mclk_mhz.value, 1249);
  EXPECT_EQ(r.metrics->throttle_bits, 0U);
  EXPECT_FALSE(r.metrics->residency);
}

TEST(GpuMetrics, Apu30HasAveragesOnly) {
  const FakeTree tree("strix-halo-mid");
  const GpuMetricsResult r = Parse(tree.Read("gpu_metrics"));
  ASSERT_TRUE(r.metrics);
  EXPECT_EQ(r.metrics->format, 3);
  EXPECT_EQ(r.metrics->average_sclk_mhz.value, 2399);
  EXPECT_EQ(r.metrics->average_mclk_mhz.value, 1000);
  EXPECT_EQ(r.metrics->average_fclk_mhz.value, 2000);
  EXPECT_NEAR(*r.metrics->socket_power_w.value, 104.021, 1e-9);
  EXPECT_NEAR(*r.metrics->temp_c.value, 75, 1e-9);
  EXPECT_EQ(r.metrics->busy_percent.value, 98);
  EXPECT_EQ(r.metrics->stapm_limit_w.value, 65);
  EXPECT_FALSE(r.metrics->current_sclk_mhz.value);
  EXPECT_EQ(r.metrics->current_sclk_mhz.missing, Missing::unsupported);
  ASSERT_TRUE(r.metrics->residency);
}

TEST(GpuMetrics, Format10HasItsOwnOffsets) {
  std::string bytes = Blank(80, 1, 0);
  Put(bytes, 16, 50, 2);    // edge, behind the 8 byte counter
  Put(bytes, 28, 90, 2);    // gfx activity
  Put(bytes, 34, 200, 2);   // socket power
  Put(bytes, 54, 1800, 2);  // current gfxclk
  Put(bytes, 68, 4, 4);     // the board's own throttle bits
  const GpuMetricsResult r = Parse(bytes);
  ASSERT_TRUE(r.metrics);
  EXPECT_EQ(r.metrics->temp_c.value, 50);
  EXPECT_EQ(r.metrics->busy_percent.value, 90);
  EXPECT_EQ(r.metrics->socket_power_w.value, 200);
  EXPECT_EQ(r.metrics->current_sclk_mhz.value, 1800);
  EXPECT_EQ(r.metrics->asic_throttle_bits, 4U);
  EXPECT_FALSE(r.metrics->throttle_bits);
}

TEST(GpuMetrics, FillersAreNoValues) {
  std::string bytes = Blank(120, 1, 3);
  for (size_t at : {4U, 16U, 22U, 54U}) Put(bytes, at, 0xFFFF, 2);
  Put(bytes, 112, ~uint64_t{0}, 8);
  const GpuMetricsResult r = Parse(bytes);
  ASSERT_TRUE(r.metrics);
  for (const Number* n : {&r.metrics->temp_c, &r.metrics->busy_percent, &r.metrics->socket_power_w,
                          &r.metrics->current_sclk_mhz}) {
    EXPECT_FALSE(n->value);
    EXPECT_EQ(n->missing, Missing::sentinel_value);
  }
  EXPECT_FALSE(r.metrics->throttle_bits);
  std::string apu = Blank(264, 3, 0);
  Put(apu, 112, 0xFFFFFFFF, 4);
  EXPECT_EQ(Parse(apu).metrics->socket_power_w.missing, Missing::sentinel_value);
  Put(apu, 112, 0xFFFF, 4);  // 66 W made of a 16 bit filler
  EXPECT_EQ(Parse(apu).metrics->socket_power_w.missing, Missing::sentinel_value);
}

TEST(GpuMetrics, WhatIsNotAWholeFile) {
  EXPECT_EQ(Parse("").reason, Missing::empty);
  EXPECT_EQ(Parse("ab").reason, Missing::error);
  EXPECT_EQ(Parse(Blank(120, 1, 3).substr(0, 119)).reason, Missing::error);
  std::string liar = Blank(120, 1, 3);
  Put(liar, 0, 60, 2);
  EXPECT_EQ(Parse(liar).reason, Missing::error);
  for (auto [format, content] : {std::pair{1, 4}, {1, 255}, {2, 3}, {3, 1}, {0, 0}}) {
    const GpuMetricsResult r = Parse(Blank(400, format, content));
    EXPECT_FALSE(r.metrics);
    EXPECT_EQ(r.reason, Missing::unsupported) << format << "." << content;
  }
}

TEST(Throttle, BitsHaveNamesAndAClass) {
  EXPECT_THAT(ThrottleNames(0), IsEmpty());
  EXPECT_THAT(ThrottleNames(uint64_t{1} << 36 | 1U << 5 | uint64_t{1} << 63),
              ElementsAre("fppt", "temp_hotspot", "bit_63"));
  EXPECT_EQ(ClassOf("temp_hotspot"), ThrottleClass::thermal);
  EXPECT_EQ(ClassOf("thm_gfx"), ThrottleClass::thermal);
  EXPECT_EQ(ClassOf("prochot"), ThrottleClass::hw_slowdown);
  EXPECT_EQ(ClassOf("vrhot0"), ThrottleClass::hw_slowdown);
  for (const char* power : {"ppt0", "spl", "fppt", "sppt", "sppt_apu", "tdc_gfx", "edc_cpu"}) {
    EXPECT_EQ(ClassOf(power), ThrottleClass::power) << power;
  }
  EXPECT_EQ(ClassOf("asic_bit_3"), ThrottleClass::other);
}

TEST(Throttle, OnlyARiseOfResidencyCounts) {
  ThrottleResidency a;
  a.count = {9, 8, 7, 6, 5, 4, 3};
  ThrottleResidency b = a;
  EXPECT_THAT(ThrottleNames(a, b), IsEmpty());
  b.count[5] = 5;
  b.count[1] = 9;
  EXPECT_THAT(ThrottleNames(a, b), ElementsAre("spl", "thm_gfx"));
  EXPECT_THAT(ThrottleNames(b, ThrottleResidency{}), IsEmpty());  // reset
}

}  // namespace
}  // namespace warmleg::telemetry
