// The cpu device with one queue, random tensors, and the way to call an op.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "backend/cpu/register.h"
#include "backend/vt/dispatch.h"
#include "backend/vt/error.h"
#include "tests/support/host_tensors.h"
#include "tests/support/op_matchers.h"
#include "tests/support/reference_ops.h"

namespace testing_support {

class CpuOps : public testing::Test {
 protected:
  template <class Args>
  void Run(const Args& args) {
    vt::Run(*queue_, args);
  }

  HostTensors t_{20261130};

 private:
  static vt::Backend& Cpu() {
    vt::cpu::Register();
    return vt::GetBackend({});
  }
  std::unique_ptr<vt::Queue> queue_ = Cpu().CreateQueue();
};

inline constexpr vt::DType kF32 = vt::DType::f32;
inline constexpr vt::DType kBf16 = vt::DType::bf16;
inline constexpr vt::DType kI32 = vt::DType::i32;

}  // namespace testing_support
