// What the tests of RocmBackend share: backends of two simulated devices and small device arrays.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backend/hip/backend.h"
#include "backend/sim/control.h"
#include "backend/vt/scratch.h"
#include "tests/backend/hip/example.h"

namespace vt::hip::on_sim {

class RocmTest : public testing::Test {
 protected:
  void SetUp() override {
    sim::Configure(
        {{.wave = 32, .memory_bytes = size_t{64} << 20}, {.wave = 64, .memory_bytes = size_t{64} << 20}});
    backend = Open(0);
    queue = backend->CreateQueue();
  }
  void TearDown() override {
    queue.reset();
    backend.reset();
    for (int device = 0; device < 2; ++device) {
      EXPECT_EQ(sim::LiveUsage(device).allocations, 0U) << "device " << device << " leaks memory";
      EXPECT_EQ(sim::LiveUsage(device).host_allocations, 0U) << "device " << device << " leaks pinned memory";
      EXPECT_EQ(sim::LiveUsage(device).streams, 0U) << "device " << device << " leaks streams";
    }
  }

  static std::unique_ptr<RocmBackend> Open(int index, MemoryKind kind = MemoryKind::device) {
    return std::make_unique<RocmBackend>(ListHipDevices(nullptr).at(static_cast<size_t>(index)), kind);
  }
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

}  // namespace vt::hip::on_sim
