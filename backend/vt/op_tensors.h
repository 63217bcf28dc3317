// The tensors of each op's arguments, for code that treats all ops alike: moves them to another device, or
// makes new ones of their shapes.
#pragma once

#include <vector>

#include "backend/vt/ops.h"

namespace vt {

#define WARMLEG_VT_TENSORS(name, ...)                    \
  inline std::vector<Tensor*> TensorsOf(name##Args& a) { \
    std::vector<Tensor*> all;                            \
    for (Tensor * t : {__VA_ARGS__}) all.push_back(t);   \
    return all;                                          \
  }
WARMLEG_VT_TENSORS(Embedding, &a.table, &a.ids, &a.out)
WARMLEG_VT_TENSORS(RmsNorm, &a.x, &a.weight, &a.out)
WARMLEG_VT_TENSORS(AddRmsNorm, &a.h, &a.delta, &a.weight, &a.out)
WARMLEG_VT_TENSORS(MatMul, &a.x, &a.w, &a.bias, &a.out, &a.norm, &a.residual)
WARMLEG_VT_TENSORS(SiluMul, &a.gate_up, &a.out)
WARMLEG_VT_TENSORS(Positions, &a.start, &a.out)
WARMLEG_VT_TENSORS(Rope, &a.x, &a.positions, &a.inv_freq)
WARMLEG_VT_TENSORS(PrepareHeads, &a.q, &a.k, &a.q_norm, &a.k_norm, &a.positions, &a.inv_freq)
WARMLEG_VT_TENSORS(Attention, &a.q, &a.k, &a.v, &a.positions, &a.out)
WARMLEG_VT_TENSORS(CausalConv1d, &a.x, &a.weight, &a.state, &a.out)
WARMLEG_VT_TENSORS(GatedDeltaRule, &a.q, &a.k, &a.v, &a.a, &a.b, &a.a_log, &a.dt_bias, &a.state, &a.out,
                   &a.changes, &a.decays)
WARMLEG_VT_TENSORS(CommitConv, &a.x, &a.states, &a.last)
WARMLEG_VT_TENSORS(CommitDelta, &a.k, &a.changes, &a.decays, &a.states, &a.last)
WARMLEG_VT_TENSORS(GatedRmsNorm, &a.x, &a.z, &a.weight, &a.out)
WARMLEG_VT_TENSORS(SigmoidGate, &a.x, &a.gate)
WARMLEG_VT_TENSORS(IndexSelect, &a.src, &a.index, &a.out)
WARMLEG_VT_TENSORS(IndexCopy, &a.src, &a.index, &a.dst)
WARMLEG_VT_TENSORS(CopyRows, &a.src, &a.dst)
WARMLEG_VT_TENSORS(DFlashGroupedConv, &a.y, &a.base, &a.delta, &a.residual, &a.out)
WARMLEG_VT_TENSORS(DFlashBlockAttn, &a.q, &a.k_block, &a.v_block, &a.k_ctx, &a.v_ctx, &a.pages, &a.start,
                   &a.out)
WARMLEG_VT_TENSORS(TopKPairs, &a.x, &a.values, &a.ids)
WARMLEG_VT_TENSORS(SelectorEdges, &a.values, &a.ids, &a.hidden, &a.predecessor, &a.successor, &a.anchor,
                   &a.edges)
WARMLEG_VT_TENSORS(PathWalk, &a.edges, &a.ids, &a.drafted, &a.q, &a.draws.seed, &a.draws.position)
WARMLEG_VT_TENSORS(ArgMax, &a.x, &a.out)
WARMLEG_VT_TENSORS(ApplyTemperature, &a.x, &a.out)
WARMLEG_VT_TENSORS(ApplyTopKTopP, &a.x)
WARMLEG_VT_TENSORS(Softmax, &a.x, &a.out)
WARMLEG_VT_TENSORS(RandomSample, &a.x, &a.out, &a.draws.seed, &a.draws.position)
WARMLEG_VT_TENSORS(RejectionSample, &a.block, &a.p, &a.q, &a.ids, &a.bonus, &a.target, &a.draws.seed,
                   &a.draws.position)
WARMLEG_VT_TENSORS(AcceptGreedy, &a.block, &a.target, &a.stop_ids, &a.limit, &a.position, &a.last, &a.newest,
                   &a.result)
#undef WARMLEG_VT_TENSORS

}  // namespace vt
