// Runs ops on the device of the test program with tensors in host memory. Where it is not the cpu they are
// copied in, the op runs, and all are copied back. Tensors that share memory on the host share it on the
// device.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "backend/vt/dispatch.h"
#include "backend/vt/op_tensors.h"
#include "tests/support/host_tensors.h"
#include "tests/support/op_matchers.h"
#include "tests/support/reference_ops.h"

namespace testing_support {

// Registers the backend under test and gives the device; each test program links one definition.
vt::Device TestDevice();

class DeviceOps : public testing::Test {
 protected:
  DeviceOps();

  template <class Args>
  void Run(Args args) {
    if (OnCpu()) return vt::Run(*queue_, args);
    RunMirrored(vt::TensorsOf(args), [&](vt::Queue& queue) { vt::Run(queue, args); });
  }

  bool OnCpu() const { return queue_->backend().device().type == vt::DeviceType::cpu; }
  vt::Tensor Ascending(int32_t first, int64_t n);
  static std::vector<int32_t> Ids(const vt::Tensor& t) {
    const auto* first = t.as<int32_t>();
    return {first, first + t.count()};
  }

  HostTensors t_{20261130};

 private:
  void RunMirrored(const std::vector<vt::Tensor*>& tensors, const std::function<void(vt::Queue&)>& run);

  std::unique_ptr<vt::Queue> queue_;
};

inline constexpr vt::DType kF32 = vt::DType::f32;
inline constexpr vt::DType kBf16 = vt::DType::bf16;
inline constexpr vt::DType kI32 = vt::DType::i32;

}  // namespace testing_support
