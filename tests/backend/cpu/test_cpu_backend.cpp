#include <gtest/gtest.h>
#include <omp.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "backend/cpu/passive_wait.h"
#include "backend/cpu/register.h"
#include "backend/vt/backend.h"
#include "backend/vt/error.h"

namespace {

vt::Backend& Cpu() {
  vt::cpu::Register();
  vt::cpu::Register();  // idempotent
  return vt::GetBackend({});
}

TEST(CpuBackend, StatesWhatItRunsOn) {
  const vt::DeviceInfo info = Cpu().Info();
  EXPECT_EQ(vt::ToString(info.device), "cpu");
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.compute_units, 1);
  EXPECT_GT(info.memory_bytes, uint64_t{1} << 26);
  EXPECT_TRUE(info.pci.empty());
  EXPECT_TRUE(Cpu().host_accessible());
  EXPECT_EQ(vt::ListDevices().size(), 1U);
}

TEST(CpuBackend, AllocationsAreAlignedAndRefusedBySize) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65}, size_t{17} << 20}) {
    const vt::Buffer buffer = Cpu().Alloc(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_EQ(buffer.bytes(), bytes);
  }
#if !defined(WARMLEG_ASAN)
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 4}) {
    try {
      Cpu().Alloc(bytes);
      FAIL() << "there was room";
    } catch (const vt::OutOfMemoryError& e) {
      EXPECT_EQ(std::string(e.what()), "cpu: no room for " + std::to_string(bytes) + " bytes");
    }
  }
#endif
}

TEST(CpuBackend, CopiesAndFills) {
  const auto queue = Cpu().CreateQueue();
  const vt::Buffer a = Cpu().Alloc(8);
  const vt::Buffer b = Cpu().Alloc(8);
  const char in[8] = "warmleg";
  char out[8] = {};
  Cpu().CopyIn(*queue, a.data(), in, 8);
  Cpu().Copy(*queue, b.data(), a.data(), 8);
  Cpu().Fill(*queue, a.data(), 0, 8);
  Cpu().CopyOut(*queue, out, b.data(), 8);
  EXPECT_STREQ(out, "warmleg");
  EXPECT_EQ(static_cast<const char*>(a.data())[0], 0);
}

TEST(CpuBackend, StampsMeasureTheTimeBetweenThem) {
  const auto queue = Cpu().CreateQueue();
  Cpu().Stamp(*queue, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Cpu().Stamp(*queue, 63);
  Cpu().Synchronize(*queue);
  EXPECT_GE(Cpu().StampSeconds(*queue, 3, 63), 0.02);
  EXPECT_LT(Cpu().StampSeconds(*queue, 3, 63), 20);
  EXPECT_DOUBLE_EQ(Cpu().StampSeconds(*queue, 63, 3), -Cpu().StampSeconds(*queue, 3, 63));
  EXPECT_THROW(Cpu().Stamp(*queue, 64), std::logic_error);
  EXPECT_THROW(Cpu().Stamp(*queue, -1), std::logic_error);
}

TEST(CpuBackend, DoesNotCapture) {
  const auto queue = Cpu().CreateQueue();
  EXPECT_FALSE(Cpu().can_capture());
  EXPECT_THROW(Cpu().BeginCapture(*queue), vt::RefusedError);
}

// The kernel shows the environment as it was when the program started, that is before the OpenMP runtime read
// it.
TEST(PassiveWaiting, HoldsWithoutTheUserSettingAnything) {
  Cpu();
  ASSERT_TRUE(vt::cpu::WaitPolicyIsSet());
  std::ifstream file("/proc/self/environ", std::ios::binary);
  const std::string start((std::istreambuf_iterator<char>(file)), {});
  const bool chosen =
      start.find("GOMP_SPINCOUNT=") != std::string::npos || start.find("KMP_BLOCKTIME=") != std::string::npos;
  EXPECT_TRUE(chosen || start.find("OMP_WAIT_POLICY=") != std::string::npos);
}

}  // namespace
