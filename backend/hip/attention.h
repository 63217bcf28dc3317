// The forms of Attention; attention.hip chooses.
#pragma once

#include "backend/hip/attention_keys.h"

namespace vt::hip::WARMLEG_VENDOR {

struct Queries {
  HeadView<float> q;
  float* out;  // [rows, nq, d]
  int rows, nq, d, group;
  float scale;
  bool aligned;  // queries, keys and values may be read 16 bytes at a time
  // partials of (tile, row, head): [tiles, rows * nq] and [tiles, rows * nq, d]
  float *max, *sum, *values;
};

#if defined(WARMLEG_KERNELS)

// More than kMaxRows rows over the cache.
void AttentionTiled(Queue& queue, const Queries& queries, const CacheKeys& keys);

// Pair g of KV head `head`: row g / group, query head head * group + g % group.
struct Pair {
  int row, head;
};
__device__ inline Pair PairAt(const Queries& a, int g, int head) {
  return {g / a.group, head * a.group + g % a.group};
}

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
