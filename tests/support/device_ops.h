// Runs ops on the device of the test program with tensors in host memory. Where it is not the cpu they are
// copied in, the op runs, and all are copied back. Tensors that share memory on the host share it on the
// device.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "backend/vt/dispatch.h"
#include "tests/support/host_tensors.h"
#include "tests/support/op_matchers.h"
#include "tests/support/reference_ops.h"

namespace testing_support {

// The tensors of each op.
#define WARMLEG_OP_TENSORS(name, ...)                            \
  inline std::vector<vt::Tensor*> TensorsOf(vt::name##Args& a) { \
    std::vector<vt::Tensor*> all;                                \
    for (vt::Tensor * t : {__VA_ARGS__}) all.push_back(t);       \
    return all;                                                  \
  }
WARMLEG_OP_TENSORS(Embedding, &a.table, &a.ids, &a.out)
WARMLEG_OP_TENSORS(RmsNorm, &a.x, &a.weight, &a.out)
WARMLEG_OP_TENSORS(AddRmsNorm, &a.h, &a.delta, &a.weight, &a.out)
WARMLEG_OP_TENSORS(MatMul, &a.x, &a.w, &a.bias, &a.out)
WARMLEG_OP_TENSORS(SiluMul, &a.gate_up, &a.out)
WARMLEG_OP_TENSORS(Positions, &a.start, &a.out)
WARMLEG_OP_TENSORS(Rope, &a.x, &a.positions, &a.inv_freq)
WARMLEG_OP_TENSORS(Attention, &a.q, &a.k, &a.v, &a.positions, &a.out)
WARMLEG_OP_TENSORS(CausalConv1d, &a.x, &a.weight, &a.states, &a.slot, &a.out)
WARMLEG_OP_TENSORS(GatedDeltaRule, &a.q, &a.k, &a.v, &a.a, &a.b, &a.a_log, &a.dt_bias, &a.states, &a.slot,
                   &a.out)
WARMLEG_OP_TENSORS(GatedRmsNorm, &a.x, &a.z, &a.weight, &a.out)
WARMLEG_OP_TENSORS(SigmoidGate, &a.x, &a.gate)
WARMLEG_OP_TENSORS(IndexSelect, &a.src, &a.index, &a.out)
WARMLEG_OP_TENSORS(IndexCopy, &a.src, &a.index, &a.dst)
WARMLEG_OP_TENSORS(CopyRows, &a.src, &a.dst)
WARMLEG_OP_TENSORS(DFlashGroupedConv, &a.y, &a.base, &a.delta, &a.residual, &a.out)
WARMLEG_OP_TENSORS(DFlashBlockAttn, &a.q, &a.k_block, &a.v_block, &a.k_ctx, &a.v_ctx, &a.pages, &a.start,
                   &a.out)
WARMLEG_OP_TENSORS(TopKPairs, &a.x, &a.values, &a.ids)
WARMLEG_OP_TENSORS(SelectorEdges, &a.values, &a.ids, &a.hidden, &a.predecessor, &a.successor, &a.anchor,
                   &a.edges)
WARMLEG_OP_TENSORS(PathWalk, &a.edges, &a.ids, &a.drafted)
WARMLEG_OP_TENSORS(ArgMax, &a.x, &a.out)
WARMLEG_OP_TENSORS(AcceptGreedy, &a.block, &a.target, &a.stop_ids, &a.limit, &a.position, &a.slot, &a.newest,
                   &a.result)
#undef WARMLEG_OP_TENSORS

// Registers the backend under test and gives the device; each test program links one definition.
vt::Device TestDevice();

class DeviceOps : public testing::Test {
 protected:
  DeviceOps();

  template <class Args>
  void Run(Args args) {
    if (OnCpu()) return vt::Run(*queue_, args);
    RunMirrored(TensorsOf(args), [&](vt::Queue& queue) { vt::Run(queue, args); });
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
