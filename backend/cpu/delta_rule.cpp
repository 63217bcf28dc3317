// The gated delta rule, token by token, so that a prefill equals single steps bit for bit.
#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"
#include "backend/vt/check.h"

namespace vt::cpu {

namespace {

float WeightAt(const Tensor& t, int64_t i) {
  return t.dtype == DType::bf16 ? FromBf16(t.as<uint16_t>()[i]) : t.as<float>()[i];
}

// ln(1 + e^x); from 20 on it is x in float32.
float Softplus(float x) { return x > 20.0F ? x : std::log1p(std::exp(x)); }

void Normalise(const float* x, int64_t n, float scale, float* out) {
  const float s = 1.0F / std::sqrt(Rows().dot(x, x, n) + 1e-6F) * scale;
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * s;
}

}  // namespace

void GatedDeltaRule(Queue&, const GatedDeltaRuleArgs& args) {
  const int64_t rows = args.q.dim(0);
  const int64_t dk = args.q.dim(2);
  const int64_t nv = args.v.dim(1);
  const int64_t dv = args.v.dim(2);
  const int64_t served = nv / args.q.dim(1);
  const int64_t slot = args.slot.as<int32_t>()[0];
  if (slot < 0 || slot >= args.states.dim(0)) {
    throw std::logic_error(fmt::format("op GatedDeltaRule: slot is {} of {}", slot, args.states.dim(0)));
  }
  const float q_scale = 1.0F / std::sqrt(static_cast<float>(dk));
  ParallelFor(nv, rows * nv * dk * dv * 2, [&](int64_t h) {
    float q[kMaxHeadDim];
    float k[kMaxHeadDim];
    const int64_t key_head = h / served;
    const float rate = -std::exp(WeightAt(args.a_log, h));
    const float dt_bias = WeightAt(args.dt_bias, h);
    const auto state = [&](int64_t s) { return args.states.as<float>() + (s * nv + h) * dk * dv; };
    const float* from = state(slot);
    for (int64_t r = 0; r < rows; ++r) {
      Normalise(args.q.as<float>() + r * args.q.step(0) + key_head * args.q.step(1), dk, q_scale, q);
      Normalise(args.k.as<float>() + r * args.k.step(0) + key_head * args.k.step(1), dk, 1, k);
      const float a = args.a.as<float>()[r * args.a.step(0) + h];
      const float b = args.b.as<float>()[r * args.b.step(0) + h];
      float* to = state(args.keep_rows ? r : 0);
      Rows().delta_step({.from = from,
                         .to = to,
                         .q = q,
                         .k = k,
                         .v = args.v.as<float>() + r * args.v.step(0) + h * args.v.step(1),
                         .out = args.out.as<float>() + (r * nv + h) * dv,
                         .dk = dk,
                         .dv = dv,
                         .decay = std::exp(rate * Softplus(a + dt_bias)),
                         .beta = 1.0F / (1.0F + std::exp(-b))});
      from = to;
    }
  });
}

}  // namespace vt::cpu
