// Random bits that depend on a key and an index alone, so that every device makes the same numbers in any
// order.
#pragma once

#include <cstdint>

#if defined(__CUDACC__) || defined(__HIP__)
#define WARMLEG_HOST_DEVICE __host__ __device__
#else
#define WARMLEG_HOST_DEVICE
#endif

namespace vt {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
WARMLEG_HOST_DEVICE constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Word `index` of the stream `key`.
WARMLEG_HOST_DEVICE constexpr uint64_t RandomWord(uint64_t key, uint64_t index) {
  return Mix64(Mix64(key) + (index + 1) * 0x9e3779b97f4a7c15U);
}

inline constexpr int kFillGroup = 4;  // elements that one word makes, 16 bits each

// Element `lane` of a group: [-1, 1) in steps of 2^-15, times `amplitude`, plus `centre`. With a power of two
// as amplitude nothing rounds but the sum, so contraction changes no bit.
WARMLEG_HOST_DEVICE inline float FillValue(uint64_t word, int lane, float amplitude, float centre) {
  const auto bits = static_cast<int16_t>(static_cast<uint16_t>(word >> (16 * lane)));
  return static_cast<float>(bits) * (amplitude / 32768.0F) + centre;
}

// Round to nearest even; not for NaN.
WARMLEG_HOST_DEVICE inline uint16_t RoundToBf16(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace vt
