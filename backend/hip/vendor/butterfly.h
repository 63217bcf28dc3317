// Reductions over a wave and atomics, for the vendors whose lanes really run side by side.
#pragma once

namespace vt::hip::WARMLEG_VENDOR {

template <int kWave, class T>
__device__ inline T WaveSum(T value) {
#pragma unroll
  for (int width = kWave / 2; width > 0; width /= 2) value += ShuffleXor<kWave>(value, width);
  return value;
}
template <int kWave, class T>
__device__ inline T WaveMax(T value) {
#pragma unroll
  for (int width = kWave / 2; width > 0; width /= 2) {
    const T other = ShuffleXor<kWave>(value, width);
    value = other > value ? other : value;
  }
  return value;
}

template <class T>
__device__ inline T AtomicAdd(T* at, T value) {
  return atomicAdd(at, value);
}
__device__ inline uint64_t AtomicMax(uint64_t* at, uint64_t value) {
  return atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
}

}  // namespace vt::hip::WARMLEG_VENDOR
