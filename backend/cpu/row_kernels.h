// The inner loops of the CPU kernels, compiled once for AVX2 + FMA and once for any machine, chosen at run
// time. Each works on eight lanes in a fixed order, so that its result depends on its own operands only and
// not on how many rows, heads or threads a call has.
#pragma once

#include <cstdint>

#include "backend/vt/tensor.h"

namespace vt::cpu {

// A block of out[r, n] = sum_k x[r, k] w[n, k]. Strides in elements.
template <class W>
struct MatMulBlock {
  const W* w;  // [outputs, k] contiguous; uint16_t holds bf16
  const float* x;
  float* out;
  int64_t rows, outputs, k;
  int64_t x_stride, out_stride;
};

// Running softmax of one (row, head); out holds the unnormalised sum.
struct Attend {
  const float* q;
  float* out;
  int64_t d;
  float scale;
  float max;
  float sum = 0;
};
inline constexpr int kAttendTile = 64;  // keys a step

// One token of one value head's gated delta rule. to may be from.
struct DeltaStep {
  const float* from;  // [dk, dv] state before
  float* to;          // [dk, dv] state after
  const float* q;     // [dk], normalised
  const float* k;     // [dk], as given; k_norm is 1 / |k|
  const float* v;     // [dv]
  float* out;         // [dv]
  float* changes;     // [dv], what delta_advance takes, or null
  int64_t dk, dv;
  float decay, beta, k_norm;
};

struct RowKernels {
  const char* name;  // "avx2" or "portable"

  float (*dot)(const float* a, const float* b, int64_t n);
  // sum_r p[r] * h[r] * s[r]; p and s f32 or bf16
  float (*edge)(const void* p, DType p_type, const float* h, const void* s, DType s_type, int64_t n);
  void (*add)(float* y, const float* x, int64_t n);  // y += x
  // out = x * scale * (one_plus ? 1 + w : w) (* silu(z), when z is given)
  void (*scale_weight)(const float* x, float scale, const void* w, DType w_type, bool one_plus,
                       const float* z, float* out, int64_t n);
  void (*silu_mul)(const float* gate, const float* up, float* out,
                   int64_t n);                                  // out = silu(gate) * up; up may be null
  void (*sigmoid_mul)(float* x, const float* gate, int64_t n);  // x *= sigmoid(gate)
  void (*widen)(const void* x, DType type, float scale, float* out, int64_t n);  // out = float(x) * scale

  void (*matmul_bf16)(const MatMulBlock<uint16_t>& block, bool round_x);
  void (*matmul_f32)(const MatMulBlock<float>& block, bool round_x);

  // The next `count` (<= kAttendTile) visible keys and their values.
  void (*attend)(Attend& state, const float* const* keys, const float* const* values, int count);
  void (*attend_end)(Attend& state);  // divides by the sum
  void (*delta_step)(const DeltaStep& step);
  // state [dk, dv] = state decay + k change^T: what delta_step does to it, to the bit
  void (*delta_advance)(float* state, const float* k, const float* change, float decay, int64_t dk,
                        int64_t dv);
};

// The kernels of this machine.
const RowKernels& Rows();

// Both tables, for tests; Avx2Kernels is nullptr where the machine has no AVX2 and FMA.
const RowKernels& PortableKernels();
const RowKernels* Avx2Kernels();

inline float FromBf16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, sizeof value);
  return value;
}

}  // namespace vt::cpu
