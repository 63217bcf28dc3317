// What the tests of RocmBackend share: backends of the device at hand and small device arrays. The same tests
// run on the simulated device, where what is queued and what leaks can be seen, and on real ones.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "backend/hip/backend.h"
#include "backend/vt/scratch.h"
#include "tests/backend/hip/example.h"
#if defined(WARMLEG_VENDOR_SIM)
#include "backend/sim/control.h"
#endif

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_VENDOR_SIM)
inline constexpr bool kSimulated = true;
#else
inline constexpr bool kSimulated = false;
#endif

class RocmTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(WARMLEG_VENDOR_SIM)
    sim::Configure({{.wave = 32, .memory_bytes = size_t{64} << 20},
                    {.wave = 64,
                     .memory_bytes = size_t{64} << 20 }});
#endif
    backend = Open(Index());
    queue = backend->CreateQueue();
  }
  void TearDown() override {
    queue.reset();
    backend.reset();
#if defined(WARMLEG_VENDOR_SIM)
    for (int device = 0; device < 2; ++device) {
      EXPECT_EQ(sim::LiveUsage(device).allocations, 0U) << "device " << device << " leaks memory";
      EXPECT_EQ(sim::LiveUsage(device).host_allocations, 0U) << "device " << device << " leaks pinned memory";
      EXPECT_EQ(sim::LiveUsage(device).streams, 0U) << "device " << device << " leaks streams";
    }
#endif
  }

  // The device under test: WARMLEG_TEST_DEVICE, else the first.
  static int Index() {
    const char* name = std::getenv("WARMLEG_TEST_DEVICE");
    return name != nullptr ? ParseDevice(name).index : 0;
  }
  static std::unique_ptr<RocmBackend> Open(int index, MemoryKind kind = MemoryKind::device) {
    return std::make_unique<RocmBackend>(ListHipDevices(nullptr).at(static_cast<size_t>(index)), kind);
  }
  // Another device; null where there is one alone.
  static std::unique_ptr<RocmBackend> OpenOther() {
    const int other = Index() == 0 ? 1 : 0;
    if (other >= static_cast<int>(ListHipDevices(nullptr).size())) return nullptr;
    return Open(other);
  }
  std::string DeviceName() const { return ToString(backend->device()); }

  // What only a simulation can see; real devices give `expected`.
  size_t Pending([[maybe_unused]] size_t expected) const {
#if defined(WARMLEG_VENDOR_SIM)
    return sim::PendingWork(backend->device().index);
#else
    return expected;
#endif
  }
  size_t LiveBytes() const {
#if defined(WARMLEG_VENDOR_SIM)
    return sim::LiveUsage(backend->device().index).bytes;
#else
    return 0;
#endif
  }
  size_t LiveAllocations() const {
#if defined(WARMLEG_VENDOR_SIM)
    return sim::LiveUsage(backend->device().index).allocations;
#else
    return 0;
#endif
  }

  // Ticks of the device's clock: long enough that the host gets ahead of a real device. A simulated one runs
  // nothing before it is waited for.
  static uint64_t LateTicks() { return kSimulated ? 0 : static_cast<uint64_t>(0.05 * ClockHz(Index())); }

  static std::vector<float> Read(Queue& from, const Buffer& buffer) {
    std::vector<float> values(buffer.bytes() / sizeof(float));
    from.backend().CopyOut(from, values.data(), buffer.data(), buffer.bytes());
    return values;
  }
  static void Write(Queue& to, const Buffer& buffer, const std::vector<float>& values) {
    to.backend().CopyIn(to, buffer.data(), values.data(), buffer.bytes());
  }
  static float* Floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

  std::unique_ptr<RocmBackend> backend;
  std::unique_ptr<Queue> queue;
};

}  // namespace vt::hip::WARMLEG_VENDOR
