// Small pieces that the kernels share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "backend/hip/kernels.h"

#if defined(WARMLEG_VENDOR_SIM)
#define WARMLEG_UNROLL
#define WARMLEG_NO_UNROLL
#else
#define WARMLEG_UNROLL _Pragma("unroll")
#define WARMLEG_NO_UNROLL _Pragma("unroll 1")
#endif

// The bounds of a kernel, with how many of its blocks shall fit on a multiprocessor of NVIDIA; 0: nvcc
// chooses. AMD's compiler reads that number as waves and has the choice.
#if defined(WARMLEG_VENDOR_NVIDIA)
#define WARMLEG_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#else
#define WARMLEG_BOUNDS(threads, blocks) __launch_bounds__(threads)
#endif

namespace vt::hip::WARMLEG_VENDOR {

inline dim3 Blocks(int64_t x, int64_t y = 1, int64_t z = 1) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z));
}

// A [rows, heads, d] view whose rows and heads may be strided; rank 2 counts as one head.
template <class T>
struct HeadView {
  T* data;
  int64_t row;
  int64_t head;
  __device__ T* At(int r, int h) const { return data + r * row + h * head; }
};
inline HeadView<float> ViewOf(const Tensor& t) {
  return {t.as<float>(), t.step(0), t.rank == 3 ? t.step(1) : 0};
}

// Whether every vector of the views may be read 16 bytes at a time.
inline bool Aligned(std::initializer_list<HeadView<float>> views, int d) {
  bool aligned = d % 4 == 0;
  for (const HeadView<float>& v : views) {
    aligned = aligned && v.row % 4 == 0 && v.head % 4 == 0 && reinterpret_cast<uintptr_t>(v.data) % 16 == 0;
  }
  return aligned;
}

// Calls f with the tensor's data as const bf16* or const float*.
template <class F>
void WithWeight(const Tensor& t, F&& f) {
  if (t.dtype == DType::bf16) {
    f(t.as<const bf16>());
  } else {
    f(t.as<const float>());
  }
}
template <class P>
using Pointee = std::remove_cv_t<std::remove_pointer_t<P>>;

#if defined(WARMLEG_KERNELS)

__device__ inline int Thread() { return static_cast<int>(threadIdx.x); }
__device__ inline int Threads() { return static_cast<int>(blockDim.x); }
__device__ inline int BlockX() { return static_cast<int>(blockIdx.x); }
__device__ inline int BlockY() { return static_cast<int>(blockIdx.y); }
__device__ inline int BlockZ() { return static_cast<int>(blockIdx.z); }

__device__ inline float Sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
__device__ inline float Silu(float x) { return x / (1.0F + expf(-x)); }
__device__ inline float Infinity() { return __builtin_bit_cast(float, 0x7f800000U); }
__device__ inline float NotANumber() { return __builtin_bit_cast(float, 0x7fc00000U); }

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
