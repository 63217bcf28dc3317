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

inline constexpr int kTileKeys = 64;  // of a tile whose partials are kept
// Up to which a block takes few pairs, so that there are enough blocks; of more tiles each is read once.
inline constexpr int kFewTiles = 32;

#if defined(WARMLEG_KERNELS)

// More than kMaxRows rows over the cache.
void AttentionTiled(Queue& queue, const Queries& queries, const CacheKeys& keys);

// The tiles' partials of up to kMaxRows rows over the cache, on matrix instructions. False: none was made, as
// the device or the head has no such form; that depends on neither the rows nor the position.
bool AttendNarrow(Queue& queue, const Queries& queries, const CacheKeys& keys, int max_tiles);

using Quartet = Vec<float, 4>;

// Values c .. c + 3 of a vector of d; past its end some value of it.
__device__ inline Quartet LoadQuartet(const float* from, int c, int d, bool aligned) {
  if (aligned) return *reinterpret_cast<const Quartet*>(from + (c < d ? c : 0));
  const int last = d - 1;
  return {{from[c < last ? c : last], from[c + 1 < last ? c + 1 : last], from[c + 2 < last ? c + 2 : last],
           from[c + 3 < last ? c + 3 : last]}};
}

// Pair g of KV head `head`: row g / group, query head head * group + g % group.
struct Pair {
  int row, head;
};
__device__ inline Pair PairAt(const Queries& a, int g, int head) {
  return {g / a.group, head * a.group + g % a.group};
}

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
