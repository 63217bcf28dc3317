// One set of names for kernels and backend on three compilers: AMD's clang (-x hip), nvcc (-x cu), and plain
// C++ for the simulated device. Kernels live in backend/hip/*.hip, one file per op family.
// How to write a kernel that runs on all three: docs/backend.md, "Kernels".
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#if defined(WARMLEG_VENDOR_SIM)
#define WARMLEG_VENDOR on_sim
#include "backend/hip/vendor/sim.h"
#elif defined(WARMLEG_VENDOR_AMD)
#define WARMLEG_VENDOR on_amd
#include "backend/hip/vendor/amd.h"
#elif defined(WARMLEG_VENDOR_NVIDIA)
#define WARMLEG_VENDOR on_nvidia
#include "backend/hip/vendor/nvidia.h"
#else
#error "define WARMLEG_VENDOR_SIM, WARMLEG_VENDOR_AMD or WARMLEG_VENDOR_NVIDIA (cmake/hip.cmake does)"
#endif

namespace vt {
class Queue;
}

namespace vt::hip::WARMLEG_VENDOR {

inline constexpr int kMaxBlock = 1024;  // threads

// Makes the queue's device current on this thread.
hipStream_t StreamOf(Queue& queue);
int WaveSize(const Queue& queue);
int ComputeUnits(const Queue& queue);
// The shared memory that each of `blocks` has to use so that no multiprocessor takes more of them than its
// share. Without it a kernel that starts early crowds onto the multiprocessors on which earlier work ends
// first. 0 where kernels do not start early.
size_t SharedToSpread(const Queue& queue, int64_t blocks);
// Throws EnvironmentError "CALL failed at FILE:LINE: NAME (TEXT)" and clears the runtime's last error.
void CheckHip(hipError_t error, const char* call, const char* file, int line);

#define WARMLEG_HIP(call) ::vt::hip::WARMLEG_VENDOR::CheckHip((call), #call, __FILE__, __LINE__)

// The number of blocks, with the place of the launch for the error text.
struct Grid {
  dim3 dim;
  const char* file;
  int line;
  // NOLINTNEXTLINE(google-explicit-constructor): a plain number of blocks reads best at the launch
  Grid(dim3 dim_, const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE())
      : dim(dim_), file(file_), line(line_) {}
  template <class Int, class = std::enable_if_t<std::is_integral_v<Int>>>
  Grid(Int blocks, const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE())
      : dim(static_cast<unsigned>(blocks)), file(file_), line(line_) {}
};

template <bool kEarly, class... P, class... A>
void LaunchKernel(void (*kernel)(P...), Grid grid, dim3 block, size_t shared_bytes, Queue& queue,
                  A&&... args) {
  static_assert((std::is_trivially_copyable_v<P> && ...), "kernel arguments are copied as bytes");
  const std::tuple<P...> values{static_cast<P>(std::forward<A>(args))...};
  CheckHip(
      LaunchOn(StreamOf(queue), kernel, grid.dim, block, shared_bytes, grid.file, grid.line, values, kEarly),
      "launch", grid.file, grid.line);
}
template <class... P, class... A>
void launch(void (*kernel)(P...), Grid grid, dim3 block, size_t shared_bytes, Queue& queue, A&&... args) {
  LaunchKernel<false>(kernel, grid, block, shared_bytes, queue, std::forward<A>(args)...);
}
// For a kernel all of whose threads call AwaitPrevious() (or StartInOrder()) before they touch what earlier
// work reads or writes: on NVIDIA its blocks may be scheduled while that work still runs.
template <class... P, class... A>
void launch_early(void (*kernel)(P...), Grid grid, dim3 block, size_t shared_bytes, Queue& queue,
                  A&&... args) {
  LaunchKernel<true>(kernel, grid, block, shared_bytes, queue, std::forward<A>(args)...);
}

// Calls f with the queue's wave size as a std::integral_constant.
template <class F>
void WithWave(const Queue& queue, F&& f) {
  if constexpr (kHasWave64) {
    if (WaveSize(queue) == 64) return f(std::integral_constant<int, 64>{});
  }
  f(std::integral_constant<int, 32>{});
}

template <class Int>
__host__ __device__ constexpr Int DivUp(Int a, Int b) {
  return (a + b - 1) / b;
}

// bfloat16, round to nearest even.
struct bf16 {
  uint16_t bits;
};
__host__ __device__ inline float ToFloat(bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  return __builtin_bit_cast(float, bits);
}
__host__ __device__ inline float ToFloat(float value) { return value; }
__host__ __device__ inline bf16 ToBf16(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<uint16_t>((bits >> 16) | 0x40U)};  // stays NaN
  return {static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

// N values that load and store as one access; the address must be aligned to its size.
template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T at[N];
};

#if defined(WARMLEG_KERNELS)  // a compiler that knows what a thread is, or sim

// First line of a kernel of launch_early that reads nothing ahead.
__device__ inline void StartInOrder() {
  LetNextStart();
  AwaitPrevious();
}

__device__ inline float Rsqrt(float x) { return 1.0F / sqrtf(x); }

// Sum over all threads of the block, known to all of them. `partial` is shared, one value a wave.
template <int kWave, class T>
__device__ inline T BlockSum(T value, T* partial) {
  value = WaveSum<kWave>(value);
  const int waves = static_cast<int>(blockDim.x) / kWave;
  if (waves == 1) return value;
  if (threadIdx.x % kWave == 0) partial[threadIdx.x / kWave] = value;
  BlockSync();
  value = partial[0];
  for (int i = 1; i < waves; ++i) value += partial[i];
  BlockSync();
  return value;
}

template <int kWave, class T>
__device__ inline T BlockMax(T value, T* partial) {
  value = WaveMax<kWave>(value);
  const int waves = static_cast<int>(blockDim.x) / kWave;
  if (waves == 1) return value;
  if (threadIdx.x % kWave == 0) partial[threadIdx.x / kWave] = value;
  BlockSync();
  value = partial[0];
  for (int i = 1; i < waves; ++i) value = partial[i] > value ? partial[i] : value;
  BlockSync();
  return value;
}

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
