// Every op of vt/ops.h in plain float64 loops, written from the contract and independent of all kernels.
// Tensors must be readable by the host; inputs are only read, results come back in row-major order of the
// output tensor's shape.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/vt/ops.h"

namespace reference {

using Values = std::vector<double>;

// One element of a tensor of any dtype and stride.
double At(const vt::Tensor& t, int64_t i, int64_t j = 0, int64_t k = 0, int64_t l = 0);
// All elements, row-major.
Values All(const vt::Tensor& t);

Values Embedding(const vt::EmbeddingArgs& a);
Values RmsNorm(const vt::RmsNormArgs& a);
struct AddRmsNormResult {
  Values h, out;
};
AddRmsNormResult AddRmsNorm(const vt::AddRmsNormArgs& a);
Values MatMul(const vt::MatMulArgs& a);  // rounds x to bf16 when the op does
Values SiluMul(const vt::SiluMulArgs& a);
Values Rope(const vt::RopeArgs& a);
Values Attention(const vt::AttentionArgs& a);
struct StateResult {
  Values out;
  Values state;            // as it was, when the block is held
  Values changes, decays;  // of GatedDeltaRule
};
StateResult CausalConv1d(const vt::CausalConv1dArgs& a);
StateResult GatedDeltaRule(const vt::GatedDeltaRuleArgs& a);
Values CommitConv(const vt::CommitConvArgs& a);    // states afterwards
Values CommitDelta(const vt::CommitDeltaArgs& a);  // states afterwards
Values GatedRmsNorm(const vt::GatedRmsNormArgs& a);
Values SigmoidGate(const vt::SigmoidGateArgs& a);
Values IndexSelect(const vt::IndexSelectArgs& a);
Values IndexCopy(const vt::IndexCopyArgs& a);  // dst afterwards
Values DFlashGroupedConv(const vt::DFlashGroupedConvArgs& a);
Values DFlashBlockAttn(const vt::DFlashBlockAttnArgs& a);
struct TopKResult {
  Values values;
  std::vector<int32_t> ids;
};
TopKResult TopKPairs(const vt::TopKPairsArgs& a);
// The rows i > 0 of t = 0 are NaN: they are not written.
Values SelectorEdges(const vt::SelectorEdgesArgs& a);
std::vector<int32_t> PathWalk(const vt::PathWalkArgs& a);
std::vector<int32_t> ArgMax(const vt::ArgMaxArgs& a);
struct AcceptResult {
  int32_t accepted, emitted, position, last, newest;
  std::vector<int32_t> tokens;
};
AcceptResult AcceptGreedy(const vt::AcceptGreedyArgs& a);

}  // namespace reference
