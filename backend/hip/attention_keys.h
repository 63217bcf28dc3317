// Where the keys of a query lie and which of them it sees. Keys are numbered by position; Begin and End bound
// what row `row` may see, Visible decides, Key and Value address one (of the head chosen with Head).
#pragma once

#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_KERNELS)

// Causal over the cache: row r sees 0..positions[r].
struct CacheKeys {
  const float *k, *v;
  int64_t step, head;
  int capacity;
  const int32_t* positions;

  __device__ CacheKeys Head(int h) const {
    return {k + h * head, v + h * head, step, head, capacity, positions};
  }
  __device__ int Begin(int) const { return 0; }
  __device__ int End(int row) const {
    const int n = positions[row] + 1;
    return n < capacity ? n : capacity;
  }
  __device__ bool Visible(int row, int j) const { return j <= positions[row]; }
  __device__ const float* Key(int j) const { return k + j * step; }
  __device__ const float* Value(int j) const { return v + j * step; }
};

// A draft block at p = start[0]: keys 0..p-1 are the context, p.. the block's own rows.
struct BlockKeys {
  const float *k, *v;
  int64_t step, head;
  HeadView<float> k_block, v_block;
  const int32_t* pages;  // nullptr: contiguous
  int page_size, physical_rows, capacity;
  const int32_t* start;
  int rows, window;
  bool causal;

  __device__ BlockKeys Head(int h) const {
    BlockKeys one = *this;
    one.k += h * head;
    one.v += h * head;
    one.k_block.data += h * k_block.head;
    one.v_block.data += h * v_block.head;
    return one;
  }
  __device__ int Context() const { return start[0] < 0 ? 0 : start[0] < capacity ? start[0] : capacity; }
  __device__ int Begin(int row) const {
    const int first = window > 0 ? Context() + row - window + 1 : 0;
    return first > 0 ? first : 0;
  }
  __device__ int End(int row) const { return Context() + (causal ? row + 1 : rows); }
  __device__ bool Visible(int row, int j) const {
    const int p = Context();
    if (window > 0 && p + row - j >= window) return false;
    if (j < p) return true;
    return (!causal || j - p <= row) && (window == 0 || j - p - row < window);
  }
  __device__ int64_t Row(int j) const {
    if (pages == nullptr) return j;
    const int64_t row = static_cast<int64_t>(pages[j / page_size]) * page_size + j % page_size;
    return row >= 0 && row < physical_rows ? row : 0;
  }
  __device__ const float* Key(int j) const {
    const int p = Context();
    return j < p ? k + Row(j) * step : k_block.data + (j - p) * k_block.row;
  }
  __device__ const float* Value(int j) const {
    const int p = Context();
    return j < p ? v + Row(j) * step : v_block.data + (j - p) * v_block.row;
  }
};

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
