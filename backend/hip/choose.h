// Scores as numbers whose order is the choice: larger score first, then lower index, a NaN before all.
#pragma once

#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_KERNELS)

inline constexpr uint32_t kNanOrder = 0xffffffffU;

__device__ inline uint64_t ScoreKey(float score, int index) {
  const auto bits = __builtin_bit_cast(uint32_t, score + 0.0F);  // -0 and 0 are equal
  uint32_t order = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  if (score != score) order = kNanOrder;
  return static_cast<uint64_t>(order) << 32 | (0xffffffffU - static_cast<uint32_t>(index));
}
__device__ inline float ScoreOf(uint64_t key) {
  const auto order = static_cast<uint32_t>(key >> 32);
  return __builtin_bit_cast(float, (order & 0x80000000U) != 0 ? order & 0x7fffffffU : ~order);
}
// -1 for a NaN.
__device__ inline int32_t IndexOf(uint64_t key) {
  if (static_cast<uint32_t>(key >> 32) == kNanOrder) return -1;
  return static_cast<int32_t>(0xffffffffU - static_cast<uint32_t>(key));
}

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
