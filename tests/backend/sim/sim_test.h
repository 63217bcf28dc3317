// What the tests of the simulated runtime share: a fresh runtime a test, handles that are destroyed.
#pragma once

#include <gtest/gtest.h>

#include "backend/sim/control.h"
#include "backend/sim/hip_sim.h"
#include "backend/sim/kernel.h"

namespace vt::sim {

#define EXPECT_HIP(call) EXPECT_EQ(hipSuccess, (call))
#define ASSERT_HIP(call) ASSERT_EQ(hipSuccess, (call))

class SimTest : public testing::Test {
 protected:
  void SetUp() override {
    Configure(
        {{.wave = 32, .memory_bytes = size_t{64} << 20}, {.wave = 64, .memory_bytes = size_t{64} << 20}});
    stream = NewStream();
  }
  void TearDown() override {
    for (hipStream_t s : streams_) hipStreamDestroy(s);
    for (hipEvent_t e : events_) hipEventDestroy(e);
    for (int device = 0; device < 2; ++device) {
      EXPECT_HIP(hipSetDevice(device));
      EXPECT_HIP(hipDeviceReset());
    }
    for (void* data : memory_) hipFree(data);
    for (void* data : pinned_) hipHostFree(data);
    EXPECT_HIP(hipSetDevice(0));
    hipGetLastError();
  }

  hipStream_t NewStream() {
    hipStream_t made = nullptr;
    EXPECT_HIP(hipStreamCreateWithFlags(&made, hipStreamNonBlocking));
    streams_.push_back(made);
    return made;
  }
  hipEvent_t NewEvent() {
    hipEvent_t made = nullptr;
    EXPECT_HIP(hipEventCreateWithFlags(&made, 0));
    events_.push_back(made);
    return made;
  }
  template <class T>
  T* NewDevice(size_t count) {
    void* data = nullptr;
    EXPECT_HIP(hipMalloc(&data, count * sizeof(T)));
    memory_.push_back(data);
    return static_cast<T*>(data);
  }
  template <class T>
  T* NewPinned(size_t count) {
    void* data = nullptr;
    EXPECT_HIP(hipHostMalloc(&data, count * sizeof(T)));
    pinned_.push_back(data);
    return static_cast<T*>(data);
  }
  // Queues body(thread) for one block of `threads`.
  template <class F>
  hipError_t Block(unsigned threads, F body, hipStream_t on = nullptr, size_t shared = 0) {
    return LaunchKernel(on != nullptr ? on : stream, Geometry{1, threads, shared, __FILE__, __LINE__},
                        [body] { body(static_cast<int>(threadIdx.x)); });
  }

  hipStream_t stream = nullptr;

 private:
  std::vector<hipStream_t> streams_;
  std::vector<hipEvent_t> events_;
  std::vector<void*> memory_;
  std::vector<void*> pinned_;
};

}  // namespace vt::sim
