#include "backend/vt/ops.h"

#include <array>

namespace vt {

std::string_view Name(Op op) {
  static constexpr std::array<std::string_view, kOps> kNames = {
#define WARMLEG_VT_OP_NAME(name) #name,
      WARMLEG_VT_OPS(WARMLEG_VT_OP_NAME)
#undef WARMLEG_VT_OP_NAME
  };
  return kNames[static_cast<size_t>(op)];
}

int64_t EmbeddingArgs::bytes() const { return ids.bytes() + out.bytes() + out.count() * SizeOf(table.dtype); }
int64_t RmsNormArgs::bytes() const { return x.bytes() + weight.bytes() + out.bytes(); }
int64_t AddRmsNormArgs::bytes() const {
  return 2 * h.bytes() + delta.bytes() + (out ? weight.bytes() + out.bytes() : 0);
}
int64_t MatMulArgs::bytes() const {
  int64_t sum = x.bytes() + w.bytes() + out.bytes();
  for (const Tensor* t : {&bias, &norm, &residual}) sum += *t ? t->bytes() : 0;
  return sum;
}
int64_t SiluMulArgs::bytes() const { return gate_up.bytes() + out.bytes(); }
int64_t PositionsArgs::bytes() const { return start.bytes() + out.bytes(); }
int64_t RopeArgs::bytes() const {
  return 2 * x.dim(0) * x.dim(1) * 2 * inv_freq.bytes() + positions.bytes() + inv_freq.bytes();
}
int64_t PrepareHeadsArgs::bytes() const {
  return 2 * (k.bytes() + (q ? q.bytes() : 0)) + k_norm.bytes() + (q ? q_norm.bytes() : 0) +
         positions.bytes() + inv_freq.bytes();
}
int64_t AttentionArgs::bytes() const {
  return q.bytes() + k.bytes() + v.bytes() + positions.bytes() + out.bytes();
}
int64_t CausalConv1dArgs::bytes() const {
  return x.bytes() + weight.bytes() + out.bytes() + state.bytes() * (hold ? 1 : 2);
}
int64_t GatedDeltaRuleArgs::bytes() const {
  return q.bytes() + k.bytes() + v.bytes() + a.bytes() + b.bytes() + a_log.bytes() + dt_bias.bytes() +
         out.bytes() + state.bytes() + (changes ? changes.bytes() + decays.bytes() : state.bytes());
}
int64_t CommitConvArgs::bytes() const { return x.bytes() + 2 * states.bytes(); }
int64_t CommitDeltaArgs::bytes() const {
  return k.bytes() + changes.bytes() + decays.bytes() + 2 * states.bytes();
}
int64_t GatedRmsNormArgs::bytes() const { return x.bytes() + z.bytes() + weight.bytes() + out.bytes(); }
int64_t SigmoidGateArgs::bytes() const { return 2 * x.bytes() + gate.bytes(); }
int64_t IndexSelectArgs::bytes() const { return index.bytes() + 2 * out.bytes(); }
int64_t IndexCopyArgs::bytes() const { return index.bytes() + 2 * src.bytes(); }
int64_t CopyRowsArgs::bytes() const { return 2 * src.bytes(); }
int64_t DFlashGroupedConvArgs::bytes() const {
  return y.bytes() + base.bytes() / 2 + delta.bytes() / 2 + (residual ? residual.bytes() : 0) + out.bytes();
}
int64_t DFlashBlockAttnArgs::bytes() const {
  return q.bytes() + k_block.bytes() + v_block.bytes() + k_ctx.bytes() + v_ctx.bytes() + out.bytes();
}
int64_t TopKPairsArgs::bytes() const { return x.bytes() + values.bytes() + ids.bytes(); }
int64_t SelectorEdgesArgs::bytes() const {
  const int64_t gathered =
      2 * ids.count() * hidden.dim(1) * SizeOf(predecessor.dtype);  // one row each of P and S a candidate
  return values.bytes() + ids.bytes() + hidden.bytes() + gathered + edges.bytes();
}
int64_t PathWalkArgs::bytes() const { return edges.bytes() + ids.bytes() + drafted.bytes(); }
int64_t ArgMaxArgs::bytes() const { return x.bytes() + out.bytes(); }
int64_t ApplyTemperatureArgs::bytes() const { return x.bytes() + out.bytes(); }
int64_t ApplyTopKTopPArgs::bytes() const { return 2 * x.bytes(); }
int64_t SoftmaxArgs::bytes() const { return x.bytes() + out.bytes(); }
int64_t RandomSampleArgs::bytes() const { return x.bytes() + out.bytes(); }
int64_t RejectionSampleArgs::bytes() const {
  return block.bytes() + p.bytes() / p.dim(0) + q.bytes() + ids.bytes() + target.bytes();
}
int64_t AcceptGreedyArgs::bytes() const { return block.bytes() + target.bytes() + result.bytes() + 16; }

}  // namespace vt
