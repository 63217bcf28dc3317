// The forms of GatedDeltaRule; delta_rule.hip chooses.
#pragma once

#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

struct Rule {
  HeadView<float> q, k, v;
  const float *a, *b;
  int64_t a_row, b_row;
  float* state;             // [nv, dk, dv]
  float* out;               // [rows, nv, dv]
  float *changes, *decays;  // [rows, nv, dv], [rows, nv] of a block that is held, or null
  int rows, nv, served, dk, dv;
  float q_scale;
  bool aligned_keys = false;  // q and k may be read 16 bytes at a time
};

// Of a head that the chunked form takes.
inline constexpr int kChunkedDepth = 128;

// More than kMaxRows rows: chunk after chunk, dk at most kChunkedDepth.
void DeltaRuleChunks(Queue& queue, const Rule& rule, const GatedDeltaRuleArgs& args);

#if defined(WARMLEG_KERNELS)

// ln(1 + e^x); from 20 on it is x in float32.
__device__ inline float Softplus(float x) { return x > 20.0F ? x : log1pf(expf(x)); }

// What a row does to an entry of the state: the same bits in every kernel.
__device__ inline float Advanced(float state, float decay, float k, float change) {
  return fmaf(k, change, state * decay);
}

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
