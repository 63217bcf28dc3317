// The arithmetic of sampling, the same bits on every device: float32 operations that IEEE 754 rounds exactly
// (+ - * / and conversions), no libm, no contraction (-ffp-contract=off, --fmad=false), sums in integers.
//
//   token = argmax(logit / temperature + gumbel), ties to the lowest index
//   gumbel = -log(-log(u)), u from a counter: (seed, request, position, purpose) and the token's index
//
// so a token depends on its row alone: not on the row count, the blocks of a kernel, the device or the
// provider. Probabilities are sums of masses in units of 2^-40 of the row's best token.
#pragma once

#include <cstdint>

#include "backend/vt/random_bits.h"

#if defined(__CUDACC__) || defined(__HIP__)
#define WARMLEG_SAMPLER __host__ __device__ inline
#else
#define WARMLEG_SAMPLER inline
#endif

namespace vt::sampler {

// What a random number decides. Numbers of different purposes are independent of one another; a draft's must
// be of its acceptance and of the target's own draw at the same position.
enum class Purpose : uint32_t { sample = 1, draft = 2, accept = 3, resample = 4 };

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15U;

// position: of the token that is chosen; request: index of the prompt.
WARMLEG_SAMPLER uint64_t KeyOf(uint64_t seed, uint32_t request, uint32_t position, Purpose purpose) {
  uint64_t key = Mix64(seed + kGolden);
  key = Mix64(key ^ (static_cast<uint64_t>(request) << 32 | static_cast<uint32_t>(purpose)));
  return Mix64(key + kGolden * (static_cast<uint64_t>(position) + 1));
}
WARMLEG_SAMPLER uint32_t Bits(uint64_t key, uint32_t index) {
  return static_cast<uint32_t>(Mix64(key + kGolden * (static_cast<uint64_t>(index) + 1)) >> 32);
}
// In (0, 1), 23 bits.
WARMLEG_SAMPLER float Uniform(uint32_t bits) { return (static_cast<float>(bits >> 9) + 0.5F) * 0x1p-23F; }

// Natural logarithm of a positive normal number.
WARMLEG_SAMPLER float Log(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x);
  auto exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127);
  float m = __builtin_bit_cast(float, (bits & 0x7fffffU) | 0x3f800000U);  // [1, 2)
  if (m > 1.41421356F) {
    m = m * 0.5F;
    exponent = exponent + 1.0F;
  }
  // log m = 2 atanh s, s in [-0.172, 0.172]
  const float s = (m - 1.0F) / (m + 1.0F);
  const float z = s * s;
  float series = 2.0F / 11.0F;
  series = series * z + 2.0F / 9.0F;
  series = series * z + 2.0F / 7.0F;
  series = series * z + 2.0F / 5.0F;
  series = series * z + 2.0F / 3.0F;
  const float log_m = 2.0F * s + s * z * series;
  return exponent * 0.693145751953125F + (exponent * 1.42860682e-6F + log_m);  // ln 2 in two parts
}

// exp(x) for x <= 0, 0 below -87.
WARMLEG_SAMPLER float Exp(float x) {
  if (!(x >= -87.0F)) return 0.0F;
  const float n = (x * 1.44269504F + 12582912.0F) - 12582912.0F;  // nearest integer
  const float r = (x - n * 0.693145751953125F) - n * 1.42860682e-6F;
  float series = 1.0F / 5040.0F;
  series = series * r + 1.0F / 720.0F;
  series = series * r + 1.0F / 120.0F;
  series = series * r + 1.0F / 24.0F;
  series = series * r + 1.0F / 6.0F;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  return series * __builtin_bit_cast(float, static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23);
}

// -log(u), u uniform in (0, 1), with all 32 bits at both ends: from 2^-33 to 22.9.
WARMLEG_SAMPLER float Exponential(uint32_t bits) {
  if ((bits & 0x80000000U) != 0) return -Log((static_cast<float>(~bits) + 0.5F) * 0x1p-32F);
  // -log(1 - v) = 2 atanh(v / (2 - v)), v in (0, 0.5]
  const float v = (static_cast<float>(bits) + 0.5F) * 0x1p-32F;
  const float s = v / (2.0F - v);
  const float z = s * s;
  float series = 2.0F / 15.0F;
  series = series * z + 2.0F / 13.0F;
  series = series * z + 2.0F / 11.0F;
  series = series * z + 2.0F / 9.0F;
  series = series * z + 2.0F / 7.0F;
  series = series * z + 2.0F / 5.0F;
  series = series * z + 2.0F / 3.0F;
  return 2.0F * s + s * z * series;
}
WARMLEG_SAMPLER float Gumbel(uint64_t key, uint32_t index) { return -Log(Exponential(Bits(key, index))); }

// Scores as numbers whose order is the choice: larger score first, then lower index, a NaN before all. 0 is
// below every score.
inline constexpr uint32_t kNanOrder = 0xffffffffU;
WARMLEG_SAMPLER uint32_t Order(float score) {
  if (score != score) return kNanOrder;
  const auto bits = __builtin_bit_cast(uint32_t, score + 0.0F);  // -0 and 0 are equal
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}
WARMLEG_SAMPLER uint64_t Choice(float score, uint32_t index) {
  return static_cast<uint64_t>(Order(score)) << 32 | (0xffffffffU - index);
}
// -1 for a NaN.
WARMLEG_SAMPLER int32_t TokenOf(uint64_t choice) {
  if (static_cast<uint32_t>(choice >> 32) == kNanOrder) return -1;
  return static_cast<int32_t>(0xffffffffU - static_cast<uint32_t>(choice));
}
WARMLEG_SAMPLER float ScoreOf(uint64_t choice) {
  const auto order = static_cast<uint32_t>(choice >> 32);
  return __builtin_bit_cast(float, (order & 0x80000000U) != 0 ? order & 0x7fffffffU : ~order);
}
// RandomSample's candidate: z is the logit after temperature, top-k and top-p.
WARMLEG_SAMPLER uint64_t Drawn(float z, uint64_t key, uint32_t index) {
  return Choice(z + Gumbel(key, index), index);
}

// exp(z - best) in units of 2^-40; a row has at most 2^18 tokens, so that a sum fits 58 bits. A row of -inf
// alone is uniform, and an infinite best takes all.
WARMLEG_SAMPLER uint64_t Mass(float z, float best) {
  if (z == best) return uint64_t{1} << 40;
  return static_cast<uint64_t>(Exp(z - best) * 0x1p40F);
}
WARMLEG_SAMPLER float Probability(uint64_t mass, uint64_t total) {
  return static_cast<float>(mass) / static_cast<float>(total);
}

// top_p in units of 2^-32. A token is kept while the mass before it is below TopPMass of what top-k left; the
// best token always is.
inline uint64_t TopPFixed(float top_p) { return static_cast<uint64_t>(static_cast<double>(top_p) * 0x1p32); }
WARMLEG_SAMPLER uint64_t TopPMass(uint64_t total, uint64_t top_p_fixed) {
  const uint64_t mass = (total >> 32) * top_p_fixed + ((total & 0xffffffffU) * top_p_fixed >> 32);
  return mass > 0 ? mass : 1;
}

// Whether a draft survives: with probability min(1, p / q).
WARMLEG_SAMPLER bool Accepts(uint64_t key, uint32_t token, float p, float q) {
  return Uniform(Bits(key, token)) * q < p;
}
// A candidate to replace a rejected draft, drawn from the positive part of p - q; 0: none. Should rounding
// leave no positive part at all, the other tokens are drawn from p: hence the class in the top bit.
WARMLEG_SAMPLER uint64_t Residual(float p, float q, uint64_t key, uint32_t index) {
  if (p != p || q != q) return ~uint64_t{0};
  const float rest = p - q;
  const float weight = rest > 0x1p-126F ? rest : p;
  if (!(weight > 0x1p-126F)) return 0;
  const uint64_t score = Order(Log(weight) + Gumbel(key, index));
  return (rest > 0x1p-126F ? uint64_t{1} << 63 : 0) | score << 31 | (0x7fffffffU - index);
}
// -1: no candidate, or a NaN.
WARMLEG_SAMPLER int32_t ResidualToken(uint64_t residual) {
  if (residual == 0 || residual == ~uint64_t{0}) return -1;
  return static_cast<int32_t>(0x7fffffffU - static_cast<uint32_t>(residual & 0x7fffffffU));
}

}  // namespace vt::sampler
