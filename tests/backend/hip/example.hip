// Example kernels: the smallest of each kind (plain loop, static shared memory and reduction, dynamic shared
// memory and barrier, ballot and atomics). They prove the vendor layer on every compiler.
#include "tests/backend/hip/example.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;

__global__ void FillKernel(float* out, float value, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = value;
}

__global__ void FillLateKernel(float* out, float value, int n, uint64_t wall_ticks) {
  const uint64_t begin = DeviceClock();
  while (DeviceClock() - begin < wall_ticks) {
  }
  for (int i = 0; i < n; ++i) out[i] = value;
}

__global__ void AddKernel(const float* a, const float* b, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = a[i] + b[i];
}

template <int kWave>
__global__ void RowSumKernel(const float* x, float* out, int n) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(float, partial, [kBlock / kWave]);
  const float* row = x + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(n);
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) sum += row[i];
  sum = BlockSum<kWave>(sum, partial);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void ReverseKernel(const float* x, float* out) {
  WARMLEG_DYNAMIC_SHARED(float, chunk);
  const unsigned at = blockIdx.x * blockDim.x;
  chunk[threadIdx.x] = x[at + threadIdx.x];
  BlockSync();
  out[at + threadIdx.x] = chunk[blockDim.x - 1 - threadIdx.x];
}

template <int kWave>
__global__ void CountKernel(const float* x, uint64_t* out) {
  WARMLEG_WAVE_KERNEL(kWave);
  const bool positive = x[blockIdx.x * blockDim.x + threadIdx.x] > 0;
  const uint64_t bits = Ballot<kWave>(positive);
  if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = bits;
  if (LaneId<kWave>() == 0) {
    unsigned long long count = 0;
    for (int i = 0; i < kWave; ++i) count += (bits >> i) & 1;
    AtomicAdd(reinterpret_cast<unsigned long long*>(out + 1), count);
  }
}

}  // namespace

void FillFloats(Queue& queue, float* out, float value, int n) {
  launch(FillKernel, DivUp(n, kBlock), kBlock, 0, queue, out, value, n);
}

void FillFloatsLate(Queue& queue, float* out, float value, int n, uint64_t wall_ticks) {
  launch(FillLateKernel, 1, 1, 0, queue, out, value, n, wall_ticks);
}

void LaunchTooLarge(Queue& queue, float* out) {
  launch(FillKernel, 1, 2 * kMaxBlock, 0, queue, out, 1.0F, 1);
}

void AddFloats(Queue& queue, const float* a, const float* b, float* out, int n) {
  launch(AddKernel, DivUp(n, kBlock), kBlock, 0, queue, a, b, out, n);
}

void RowSums(Queue& queue, const float* x, float* out, int rows, int n) {
  WithWave(queue, [&](auto wave) { launch(RowSumKernel<wave()>, rows, kBlock, 0, queue, x, out, n); });
}

void ReverseChunks(Queue& queue, const float* x, float* out, int chunks) {
  launch(ReverseKernel, chunks, kBlock, kBlock * sizeof(float), queue, x, out);
}

void CountPositive(Queue& queue, const float* x, uint64_t* out, int n) {
  WithWave(queue, [&](auto wave) { launch(CountKernel<wave()>, n / kBlock, kBlock, 0, queue, x, out); });
}

}  // namespace vt::hip::WARMLEG_VENDOR
