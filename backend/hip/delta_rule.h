// The forms of GatedDeltaRule; delta_rule.hip chooses.
#pragma once

#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

struct Rule {
  HeadView<float> q, k, v;
  const float *a, *b;
  int64_t a_row, b_row;
  float* states;  // [slots, nv, dk, dv]
  const int32_t* slot;
  float* out;  // [rows, nv, dv]
  int slots, rows, nv, served, dk, dv;
  float q_scale;
  bool keep_rows;
};

// Of a head that the chunked form takes.
inline constexpr int kChunkedDepth = 128;

// More than kMaxRows rows whose states are not kept: chunk after chunk, dk at most kChunkedDepth.
void DeltaRuleChunks(Queue& queue, const Rule& rule, const GatedDeltaRuleArgs& args);

#if defined(WARMLEG_KERNELS)

// ln(1 + e^x); from 20 on it is x in float32.
__device__ inline float Softplus(float x) { return x > 20.0F ? x : log1pf(expf(x)); }

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
