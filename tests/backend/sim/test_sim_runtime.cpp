// Streams, events, memory, errors and failure injection of the simulated runtime.
#include <cstring>
#include <string>
#include <thread>

#include "backend/sim/sanitizer.h"
#include "tests/backend/sim/sim_test.h"

namespace vt::sim {
namespace {

using SimRuntime = SimTest;
using SimRuntimeDeathTest = SimTest;

TEST_F(SimRuntime, WorkRunsOnlyWhenSomethingWaits) {
  int ran = 0;
  ASSERT_HIP(Block(1, [&](int) { ++ran; }));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(PendingWork(0), 1U);
  EXPECT_EQ(hipStreamQuery(stream), hipErrorNotReady);
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(ran, 1);
  EXPECT_HIP(hipStreamQuery(stream));
}

TEST_F(SimRuntime, SynchronisingOneStreamLeavesTheOtherAlone) {
  hipStream_t other = NewStream();
  int ran = 0;
  ASSERT_HIP(Block(1, [&](int) { ran += 1; }));
  ASSERT_HIP(Block(
      1, [&](int) { ran += 10; }, other));
  ASSERT_HIP(hipStreamSynchronize(other));
  EXPECT_EQ(ran, 10);
  ASSERT_HIP(hipDeviceSynchronize());
  EXPECT_EQ(ran, 11);
}

TEST_F(SimRuntime, AWaitOnAnEventOrdersTwoStreams) {
  hipStream_t other = NewStream();
  hipEvent_t event = NewEvent();
  std::string order;
  ASSERT_HIP(Block(1, [&](int) { order += 'a'; }));
  ASSERT_HIP(hipEventRecord(event, stream));
  ASSERT_HIP(Block(1, [&](int) { order += 'c'; }));
  ASSERT_HIP(hipStreamWaitEvent(other, event, 0));
  ASSERT_HIP(Block(
      1, [&](int) { order += 'b'; }, other));
  ASSERT_HIP(hipStreamSynchronize(other));
  EXPECT_EQ(order, "ab");
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(order, "abc");
}

TEST_F(SimRuntime, EventsTellTimeOnceTheyAreReached) {
  hipEvent_t from = NewEvent();
  hipEvent_t to = NewEvent();
  float ms = -1;
  EXPECT_EQ(hipEventElapsedTime(&ms, from, to), hipErrorInvalidResourceHandle);
  ASSERT_HIP(hipEventRecord(from, stream));
  ASSERT_HIP(Block(1, [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }));
  ASSERT_HIP(hipEventRecord(to, stream));
  EXPECT_EQ(hipEventQuery(to), hipErrorNotReady);
  EXPECT_EQ(hipEventElapsedTime(&ms, from, to), hipErrorNotReady);
  ASSERT_HIP(hipEventSynchronize(to));
  ASSERT_HIP(hipEventElapsedTime(&ms, from, to));
  EXPECT_GE(ms, 2.0F);
}

TEST_F(SimRuntime, DestroyingAStreamDropsItsWork) {
  hipStream_t other = nullptr;
  ASSERT_HIP(hipStreamCreateWithFlags(&other, 0));
  int ran = 0;
  ASSERT_HIP(Block(
      1, [&](int) { ++ran; }, other));
  ASSERT_HIP(hipStreamDestroy(other));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(hipStreamSynchronize(other), hipErrorInvalidResourceHandle);
}

TEST_F(SimRuntime, CopiesAreStagedByTheirStream) {
  auto* host = NewPinned<float>(4);
  auto* back = NewPinned<float>(4);
  auto* device = NewDevice<float>(4);
  for (int i = 0; i < 4; ++i) host[i] = static_cast<float>(i);
  ASSERT_HIP(hipMemcpyAsync(device, host, 16, hipMemcpyHostToDevice, stream));
  ASSERT_HIP(hipMemcpyAsync(back, device, 16, hipMemcpyDeviceToHost, stream));
  host[3] = 7;  // too early: the copy reads it when it runs
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(back[2], 2.0F);
  EXPECT_EQ(back[3], 7.0F);
  EXPECT_EQ(PageableCopies(), 0U);
  float pageable[4];
  ASSERT_HIP(hipMemcpyAsync(pageable, device, 16, hipMemcpyDeviceToHost, stream));
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(PageableCopies(), 1U);
}

TEST_F(SimRuntime, FreshMemoryIsPoisoned) {
  auto* device = NewDevice<uint32_t>(4);
  uint32_t seen = 0;
  ASSERT_HIP(hipMemcpy(&seen, device + 3, 4, hipMemcpyDeviceToHost));
  EXPECT_EQ(seen, 0xffffffffU);
}

TEST_F(SimRuntimeDeathTest, HostCodeMayNotTouchDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto* device = NewDevice<int>(4);
  EXPECT_DEATH({ *static_cast<volatile int*>(device) = 1; }, "");
}

TEST_F(SimRuntime, CopiesOutsideAnAllocationAreRefused) {
  auto* a = NewDevice<float>(4);
  auto* b = NewDevice<float>(4);
  EXPECT_EQ(hipMemcpyAsync(a, b, 20, hipMemcpyDeviceToDevice, stream), hipErrorInvalidValue);
  EXPECT_EQ(hipMemsetAsync(a + 1, 0, 16, stream), hipErrorInvalidValue);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidValue);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

TEST_F(SimRuntime, FreesAreChecked) {
  void* data = nullptr;
  ASSERT_HIP(hipMalloc(&data, 100));
  EXPECT_EQ(LiveUsage(0).bytes, 100U);
  EXPECT_EQ(hipFree(static_cast<char*>(data) + 8), hipErrorInvalidValue);
  EXPECT_EQ(hipHostFree(data), hipErrorInvalidValue);
  ASSERT_HIP(hipFree(data));
  EXPECT_EQ(hipFree(data), hipErrorInvalidValue);
  EXPECT_EQ(LiveUsage(0).allocations, 0U);
  EXPECT_HIP(hipFree(nullptr));
}

TEST_F(SimRuntime, FreeWaitsForQueuedWork) {
  void* data = nullptr;
  ASSERT_HIP(hipMalloc(&data, 4));
  int ran = 0;
  ASSERT_HIP(Block(1, [&](int) { ran = 1; }));
  ASSERT_HIP(hipFree(data));
  EXPECT_EQ(ran, 1);
}

TEST_F(SimRuntime, FreedRoomIsUsedAgain) {
  for (int i = 0; i < 25; ++i) {
    void* a = nullptr;
    void* b = nullptr;
    ASSERT_HIP(hipMalloc(&a, 2 << 20));
    ASSERT_HIP(hipMalloc(&b, 2 << 20));
    ASSERT_HIP(hipFree(a));
    ASSERT_HIP(hipFree(b));
  }
  void* data = nullptr;
  EXPECT_EQ(hipMalloc(&data, size_t{65} << 20), hipErrorOutOfMemory);
}

TEST_F(SimRuntime, WritingPastAnAllocationBreaksTheDevice) {
#if defined(WARMLEG_ASAN)
  GTEST_SKIP() << "AddressSanitizer reports the write itself";
#endif
  auto* device = NewDevice<char>(10);
  ASSERT_HIP(Block(1, [=](int) { device[10] = 0; }));
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorLaunchFailure);
  EXPECT_NE(LastFault().find("allocation of 10 bytes"), std::string::npos) << LastFault();
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure) << "a broken device stays broken";
  void* data = nullptr;
  EXPECT_EQ(hipMalloc(&data, 4), hipErrorLaunchFailure);
  ASSERT_HIP(hipSetDevice(1));
  EXPECT_HIP(hipMalloc(&data, 4));
  EXPECT_HIP(hipFree(data));
}

TEST_F(SimRuntime, LaunchGeometryHasLimits) {
  const auto launch = [&](dim3 grid, dim3 block, size_t shared) {
    return LaunchKernel(stream, Geometry{grid, block, shared, "", 0}, [] {});
  };
  EXPECT_EQ(launch(1, 1025, 0), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, dim3(32, 32, 2), 0), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(0, 32, 0), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 65536), 32, 0), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1U << 24), 256, 0), hipErrorInvalidConfiguration) << "2^32 threads in x";
  EXPECT_EQ(launch(1, 32, 65537), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 2, 3), dim3(8, 4, 2), 65536), hipSuccess);
}

TEST_F(SimRuntime, AStreamOfAnotherDeviceIsRefused) {
  ASSERT_HIP(hipSetDevice(1));
  EXPECT_EQ(Block(1, [](int) {}), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipSetDevice(2), hipErrorInvalidDevice);
}

TEST_F(SimRuntime, InjectedFailuresHappenOnce) {
  void* data = nullptr;
  FailAt(Point::allocation, 2, hipErrorOutOfMemory);
  ASSERT_HIP(hipMalloc(&data, 4));
  ASSERT_HIP(hipFree(data));
  EXPECT_EQ(hipMalloc(&data, 4), hipErrorOutOfMemory);
  ASSERT_HIP(hipMalloc(&data, 4));
  ASSERT_HIP(hipFree(data));
  FailAt(Point::launch, 1, hipErrorLaunchOutOfResources);
  EXPECT_EQ(Block(1, [](int) {}), hipErrorLaunchOutOfResources);
  EXPECT_HIP(Block(1, [](int) {}));
  auto* device = NewDevice<char>(4);
  FailAt(Point::copy, 1, hipErrorUnknown);
  EXPECT_EQ(hipMemsetAsync(device, 0, 4, stream), hipErrorUnknown);
  EXPECT_HIP(hipMemsetAsync(device, 0, 4, stream));
}

TEST_F(SimRuntime, ALostDeviceFailsEveryCallUntilItIsReset) {
  LoseDevice(0);
  EXPECT_EQ(Block(1, [](int) {}), hipErrorLaunchFailure);
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorLaunchFailure);
  ASSERT_HIP(hipDeviceReset());
  EXPECT_HIP(Block(1, [](int) {}));
  EXPECT_HIP(hipStreamSynchronize(stream));
}

TEST_F(SimRuntime, HostThreadsWorkSideBySide) {
  std::vector<std::thread> threads;
  std::array<int, 4> sums{};
  for (size_t t = 0; t < sums.size(); ++t) {
    threads.emplace_back([&, t] {
      EXPECT_HIP(hipSetDevice(static_cast<int>(t % 2)));
      hipStream_t mine = nullptr;
      EXPECT_HIP(hipStreamCreateWithFlags(&mine, hipStreamNonBlocking));
      for (int i = 0; i < 10; ++i) {
        EXPECT_HIP(Block(
            64,
            [&sums, t](int) {
              BlockBarrier();
              ++sums[t];
            },
            mine));
        EXPECT_HIP(hipStreamSynchronize(mine));
      }
      EXPECT_HIP(hipStreamDestroy(mine));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int sum : sums) EXPECT_EQ(sum, 640);
}

}  // namespace
}  // namespace vt::sim
