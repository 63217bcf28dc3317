// The NVML source against a fake libnvidia-ml.so.1 (fake_nvml.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "harness/telemetry/nvml.h"

namespace warmleg::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NvmlTest : public ::testing::Test {
 protected:
  NvmlTest() {
    path_ = std::filesystem::temp_directory_path() / ("warmleg-fake-nvml-" + std::to_string(::getpid()));
    Say({});
    ::setenv("WARMLEG_FAKE_NVML", path_.c_str(), 1);
  }
  ~NvmlTest() override { std::filesystem::remove(path_); }

  void Say(const std::vector<std::string>& lines) {
    std::ofstream out(path_);
    for (const std::string& line : lines) out << line << "\n";
  }
  static std::unique_ptr<Nvml> Open(const char* file = WARMLEG_FAKE_NVML_LIBRARY) {
    OpenedNvml opened = Nvml::Open(file);
    EXPECT_EQ(opened.why_not, "");
    return std::move(opened.library);
  }

 private:
  std::filesystem::path path_;
};

template <class T>
void ExpectNull(const Reading<T>& reading, Missing why) {
  EXPECT_FALSE(reading.value);
  EXPECT_EQ(record::Name(reading.missing), record::Name(why));
  EXPECT_EQ(reading.source, Source::nvml);
}

TEST_F(NvmlTest, AnAbsentLibraryIsAReason) {
  const OpenedNvml opened = Nvml::Open("libno-such-nvml.so.1");
  EXPECT_EQ(opened.library, nullptr);
  EXPECT_THAT(opened.why_not, HasSubstr("libno-such-nvml.so.1"));
}

TEST_F(NvmlTest, ALibraryWithoutDriverOrCardIsAReason) {
  Say({"init.status 9"});
  EXPECT_THAT(Nvml::Open(WARMLEG_FAKE_NVML_LIBRARY).why_not, HasSubstr("nvmlInit_v2: status 9"));
  Say({"count.status 999"});
  EXPECT_THAT(Nvml::Open(WARMLEG_FAKE_NVML_LIBRARY).why_not, HasSubstr("nvmlDeviceGetCount_v2: status 999"));
  Say({"count 0"});
  EXPECT_THAT(Nvml::Open(WARMLEG_FAKE_NVML_LIBRARY).why_not, HasSubstr("no card"));
  Say({"0.pci.status 3"});
  EXPECT_THAT(Nvml::Open(WARMLEG_FAKE_NVML_LIBRARY).why_not, HasSubstr("no card"));
}

TEST_F(NvmlTest, CardsAreKnownByTheirPciAddress) {
  Say({"count 3", "0.pci 0001:c1:00.0", "0.name B", "1.pci.status 999", "2.pci 0000:1b:00.0", "2.name A",
       "2.sm 600"});
  const auto nvml = Open();
  ASSERT_EQ(nvml->boards().size(), 2U);
  EXPECT_EQ(nvml->boards()[0].pci, "0000:1b:00.0");
  EXPECT_EQ(nvml->boards()[0].name, "A");
  EXPECT_EQ(nvml->boards()[1].pci, "0001:c1:00.0");
  EXPECT_TRUE(nvml->boards()[1].nvidia);
  EXPECT_EQ(nvml->Read(0, 5).clocks.sclk_mhz.value, 600);
  EXPECT_EQ(nvml->Read(1, 5).clocks.sclk_mhz.value, 1980);
}

TEST_F(NvmlTest, ReadsEveryFieldWithItsSource) {
  Say({"0.sm 1755", "0.state 2"});
  const BoardSample sample = Open()->Read(0, 77);
  const record::ClockSample& c = sample.clocks;
  EXPECT_EQ(sample.pci, "0000:1b:00.0");
  EXPECT_EQ(c.monotonic_ns, 77);
  EXPECT_EQ(c.sclk_mhz.value, 1755);
  EXPECT_EQ(c.sclk_mhz.source, Source::nvml);
  EXPECT_EQ(c.top_sclk_mhz.value, 1980);
  EXPECT_EQ(c.mclk_mhz.value, 3201);
  EXPECT_EQ(c.power_w.value, 312.345);
  EXPECT_EQ(c.power_cap_w.value, 700);
  EXPECT_EQ(c.temp_c.value, 41);
  EXPECT_EQ(c.busy_percent.value, 97);
  EXPECT_EQ(sample.memory_busy_percent.value, 33);
  EXPECT_EQ(c.perf_level.value, "P2");
  EXPECT_THAT(c.throttle.value->active, IsEmpty());
  ExpectNull(c.fclk_mhz, Missing::unsupported);
  ExpectNull(sample.junction_c, Missing::unsupported);
}

TEST_F(NvmlTest, WhatIsDearOrSlowIsAskedForNowAndThen) {
  constexpr int64_t kMs = 1'000'000;
  const auto nvml = Open();
  Say({"0.sm_max.status 999", "0.busy 10"});
  ExpectNull(nvml->Read(0, 0).clocks.top_sclk_mhz, Missing::error);
  Say({"0.sm 600", "0.cap 650000", "0.temp 60", "0.busy 20"});
  const record::ClockSample soon = nvml->Read(0, 100 * kMs).clocks;
  EXPECT_EQ(soon.sclk_mhz.value, 600);
  EXPECT_EQ(soon.power_cap_w.value, 700);
  EXPECT_EQ(soon.temp_c.value, 41);
  EXPECT_EQ(soon.busy_percent.value, 10);
  EXPECT_EQ(nvml->Read(0, 200 * kMs).clocks.busy_percent.value, 20);
  const record::ClockSample later = nvml->Read(0, 1000 * kMs).clocks;
  EXPECT_EQ(later.power_cap_w.value, 650);
  EXPECT_EQ(later.temp_c.value, 60);
  EXPECT_EQ(later.top_sclk_mhz.value, 1980);
  Say({"0.sm_max 2100"});
  EXPECT_EQ(nvml->Read(0, 3000 * kMs).clocks.top_sclk_mhz.value, 1980);
}

TEST_F(NvmlTest, WhatFailsIsNullWithItsReason) {
  const auto nvml = Open();
  Say({"0.sm.status 3", "0.mem.status 4", "0.power.status 15", "0.cap.status 999", "0.temp.status 13",
       "0.busy.status 21", "0.state.status 3", "0.reasons.status 3", "0.sm_max.status 3"});
  const record::ClockSample c = nvml->Read(0, 1).clocks;
  ExpectNull(c.sclk_mhz, Missing::unsupported);
  ExpectNull(c.top_sclk_mhz, Missing::unsupported);
  ExpectNull(c.mclk_mhz, Missing::permission);
  ExpectNull(c.power_w, Missing::lost);
  ExpectNull(c.power_cap_w, Missing::error);
  ExpectNull(c.temp_c, Missing::unsupported);
  ExpectNull(c.busy_percent, Missing::empty);
  ExpectNull(c.perf_level, Missing::unsupported);
  ExpectNull(c.throttle, Missing::unsupported);
}

TEST_F(NvmlTest, AFillerIsNoNumberAndAnUnknownStateNoState) {
  const auto nvml = Open();
  Say({"0.sm 0xffffffff", "0.state 32"});
  ExpectNull(nvml->Read(0, 1).clocks.sclk_mhz, Missing::sentinel_value);
  ExpectNull(nvml->Read(0, 1).clocks.perf_level, Missing::unsupported);
}

TEST_F(NvmlTest, ThrottleReasonsAreClassed) {
  const auto nvml = Open();
  const auto throttle = [&](const std::string& bits) {
    Say({"0.reasons " + bits});
    return *nvml->Read(0, 1).clocks.throttle.value;
  };
  EXPECT_THAT(throttle("0x1").active, IsEmpty()) << "idle is no throttling";
  EXPECT_EQ(throttle("0x1").raw, 1U);
  const record::Throttle cap = throttle("0x4");
  EXPECT_TRUE(cap.power_cap);
  EXPECT_FALSE(cap.thermal || cap.hw_slowdown);
  EXPECT_TRUE(throttle("0x20").thermal);
  const record::Throttle hot = throttle("0x48");
  EXPECT_TRUE(hot.thermal && hot.hw_slowdown);
  EXPECT_THAT(hot.active, ElementsAre("hw_slowdown", "hw_thermal_slowdown"));
  EXPECT_TRUE(throttle("0x80").hw_slowdown);
  const record::Throttle other = throttle("0x10102");
  EXPECT_FALSE(other.thermal || other.power_cap || other.hw_slowdown);
  EXPECT_THAT(other.active,
              ElementsAre("applications_clocks_setting", "display_clock_setting", "reason_bit_16"));
}

TEST_F(NvmlTest, AnOlderLibraryAnswersWithWhatItHas) {
  Say({"0.reasons 0x40"});
  const auto nvml = Open(WARMLEG_FAKE_NVML_OLD_LIBRARY);
  EXPECT_TRUE(nvml->Read(0, 1).clocks.throttle.value->thermal);
  std::string reason;
  EXPECT_FALSE(nvml->Clients(0, &reason));
  EXPECT_THAT(reason, HasSubstr("unsupported"));
}

TEST_F(NvmlTest, DescribesTheCardAndItsClients) {
  Say({"0.clients 100", "driver 580.159.04"});
  const auto nvml = Open();
  std::string reason;
  EXPECT_EQ(nvml->Clients(0, &reason)->size(), 100U) << "more than the first buffer holds";
  const BoardFingerprint board = nvml->Describe(0, {1000, 1001, 5});
  EXPECT_EQ(board.other_clients, 98);
  record::Environment environment;
  AddBoard(board, environment);
  EXPECT_EQ(environment.gpu->vbios, "96.00");
  EXPECT_EQ(environment.gpu->vram_bytes, 150754820096);
  EXPECT_EQ(environment.cuda->driver, "580.159.04");
  EXPECT_FALSE(environment.rocm);
  Say({"0.clients.status 4", "0.vbios.status 3", "driver.status 999"});
  const BoardFingerprint mute = nvml->Describe(0, {});
  EXPECT_FALSE(mute.other_clients);
  EXPECT_THAT(mute.unreadable.at("other_clients"), HasSubstr("permission"));
  EXPECT_THAT(mute.unreadable.at("gpu.vbios"), HasSubstr("unsupported"));
  EXPECT_THAT(mute.unreadable.at("cuda.driver"), HasSubstr("error"));
}

TEST_F(NvmlTest, SaysWhichLibraryAnswers) {
  const auto nvml = Open();
  EXPECT_EQ(std::filesystem::path(nvml->File()), std::filesystem::path(WARMLEG_FAKE_NVML_LIBRARY));
  EXPECT_EQ(nvml->Version(), "12.580");
}

}  // namespace
}  // namespace warmleg::telemetry
