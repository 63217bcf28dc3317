// The gated delta rule, token by token, so that a prefill equals single steps bit for bit.
#include <cmath>

#include "backend/cpu/held.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"
#include "backend/vt/check.h"
#include "backend/vt/scratch.h"

namespace vt::cpu {

namespace {

float WeightAt(const Tensor& t, int64_t i) {
  return t.dtype == DType::bf16 ? FromBf16(t.as<uint16_t>()[i]) : t.as<float>()[i];
}

// ln(1 + e^x); from 20 on it is x in float32.
float Softplus(float x) { return x > 20.0F ? x : std::log1p(std::exp(x)); }

float NormOf(const float* x, int64_t n) { return 1.0F / std::sqrt(Rows().dot(x, x, n) + 1e-6F); }

}  // namespace

void GatedDeltaRule(Queue& queue, const GatedDeltaRuleArgs& args) {
  const int64_t rows = args.q.dim(0);
  const int64_t dk = args.q.dim(2);
  const int64_t nv = args.v.dim(1);
  const int64_t dv = args.v.dim(2);
  const int64_t served = nv / args.q.dim(1);
  // The rows of a block that is held follow each other in here.
  float* const held =
      args.changes ? Scratch<float>(queue, "GatedDeltaRule.held", static_cast<size_t>(args.state.count()))
                   : nullptr;
  const float q_scale = 1.0F / std::sqrt(static_cast<float>(dk));
  ParallelFor(nv, rows * nv * dk * dv * 2, [&](int64_t h) {
    float q[kMaxHeadDim];
    const int64_t key_head = h / served;
    const float rate = -std::exp(WeightAt(args.a_log, h));
    const float dt_bias = WeightAt(args.dt_bias, h);
    const float* from = args.state.as<float>() + h * dk * dv;
    float* const to = (held != nullptr ? held : args.state.as<float>()) + h * dk * dv;
    for (int64_t r = 0; r < rows; ++r) {
      const float* given_q = args.q.as<float>() + r * args.q.step(0) + key_head * args.q.step(1);
      const float* k = args.k.as<float>() + r * args.k.step(0) + key_head * args.k.step(1);
      const float q_norm = NormOf(given_q, dk) * q_scale;
      for (int64_t i = 0; i < dk; ++i) q[i] = given_q[i] * q_norm;
      const float a = args.a.as<float>()[r * args.a.step(0) + h];
      const float b = args.b.as<float>()[r * args.b.step(0) + h];
      const float decay = std::exp(rate * Softplus(a + dt_bias));
      if (held != nullptr) args.decays.as<float>()[r * nv + h] = decay;
      Rows().delta_step({.from = from,
                         .to = to,
                         .q = q,
                         .k = k,
                         .v = args.v.as<float>() + r * args.v.step(0) + h * args.v.step(1),
                         .out = args.out.as<float>() + (r * nv + h) * dv,
                         .changes = held != nullptr ? args.changes.as<float>() + (r * nv + h) * dv : nullptr,
                         .dk = dk,
                         .dv = dv,
                         .decay = decay,
                         .beta = 1.0F / (1.0F + std::exp(-b)),
                         .k_norm = NormOf(k, dk)});
      from = to;
    }
  });
}

void CommitDelta(Queue&, const CommitDeltaArgs& args) {
  const int64_t block = args.k.dim(1);
  const int64_t rows = CountedRows(args.kOp, args.last, block);
  const int64_t nv = args.changes.dim(2);
  const int64_t dk = args.k.dim(3);
  const int64_t dv = args.changes.dim(3);
  const int64_t served = nv / args.k.dim(2);
  const int64_t heads = args.k.dim(0) * nv;
  ParallelFor(heads, rows * heads * dk * dv, [&](int64_t i) {
    const int64_t layer = i / nv;
    const int64_t h = i % nv;
    const float* k = args.k.as<float>() + layer * args.k.step(0) + h / served * args.k.step(2);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (layer * block + r) * nv + h;
      Rows().delta_advance(args.states.as<float>() + i * dk * dv, k + r * args.k.step(1),
                           args.changes.as<float>() + at * dv, args.decays.as<float>()[at], dk, dv);
    }
  });
}

}  // namespace vt::cpu
