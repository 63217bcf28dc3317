// Eight lanes in a 256-bit register. Only functions marked so use AVX2 and FMA: the rest of the program runs
// anywhere.
#include "backend/cpu/row_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#define LANES_FN __attribute__((target("avx2,fma")))
#define LANES_INLINE __attribute__((target("avx2,fma"), always_inline)) inline

namespace vt::cpu {

namespace {

using Lanes = __m256;

alignas(32) constexpr int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

LANES_INLINE Lanes Zero() { return _mm256_setzero_ps(); }
LANES_INLINE Lanes Set1(float x) { return _mm256_set1_ps(x); }
LANES_INLINE float First(Lanes a) { return _mm256_cvtss_f32(a); }
LANES_INLINE Lanes Load(const float* p) { return _mm256_loadu_ps(p); }
LANES_INLINE Lanes Load(const uint16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
LANES_INLINE __m256i MaskOf(int n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - n));
}
LANES_INLINE Lanes LoadN(const float* p, int n) { return _mm256_maskload_ps(p, MaskOf(n)); }
LANES_INLINE Lanes LoadN(const uint16_t* p, int n) {
  uint16_t padded[8] = {};
  for (int i = 0; i < n; ++i) padded[i] = p[i];
  return Load(padded);
}
LANES_INLINE void Store(float* p, Lanes a) { _mm256_storeu_ps(p, a); }
LANES_INLINE void StoreN(float* p, Lanes a, int n) { _mm256_maskstore_ps(p, MaskOf(n), a); }

LANES_INLINE Lanes Add(Lanes a, Lanes b) { return _mm256_add_ps(a, b); }
LANES_INLINE Lanes Sub(Lanes a, Lanes b) { return _mm256_sub_ps(a, b); }
LANES_INLINE Lanes Mul(Lanes a, Lanes b) { return _mm256_mul_ps(a, b); }
LANES_INLINE Lanes Div(Lanes a, Lanes b) { return _mm256_div_ps(a, b); }
LANES_INLINE Lanes Fma(Lanes a, Lanes b, Lanes c) { return _mm256_fmadd_ps(a, b, c); }

// e^x = 2^n e^r, |r| <= ln2 / 2, e^r by its Taylor series to r^7 (relative error of the series 6e-9). 2^n is
// applied in two halves, so that results run over to infinity and down through the denormals to 0. A NaN
// stays one.
LANES_INLINE Lanes Exp(Lanes x) {
  x = _mm256_min_ps(Set1(89.0F), _mm256_max_ps(Set1(-104.0F), x));
  const Lanes n = _mm256_round_ps(Mul(x, Set1(1.44269504F)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 as a part exact in 9 bits and the rest
  Lanes r = Fma(n, Set1(-0.693359375F), x);
  r = Fma(n, Set1(2.12194440e-4F), r);
  Lanes y = Set1(1.0F / 5040);
  y = Fma(y, r, Set1(1.0F / 720));
  y = Fma(y, r, Set1(1.0F / 120));
  y = Fma(y, r, Set1(1.0F / 24));
  y = Fma(y, r, Set1(1.0F / 6));
  y = Fma(y, r, Set1(0.5F));
  y = Fma(y, r, Set1(1.0F));
  y = Fma(y, r, Set1(1.0F));
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i first = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i low = _mm256_slli_epi32(_mm256_add_epi32(first, bias), 23);
  const __m256i high = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, first), bias), 23);
  return Mul(Mul(y, _mm256_castsi256_ps(low)), _mm256_castsi256_ps(high));
}

// To nearest, ties to even; a NaN stays one.
LANES_INLINE Lanes RoundBf16(Lanes x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i cut = _mm256_and_si256(up, _mm256_set1_epi32(static_cast<int>(0xffff0000U)));
  return _mm256_blendv_ps(_mm256_castsi256_ps(cut), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

LANES_INLINE float Sum(Lanes a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

#include "backend/cpu/row_kernels.inc"

}  // namespace

const RowKernels* Avx2Kernels() {
  static const RowKernels table = MakeTable("avx2");
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &table : nullptr;
}

}  // namespace vt::cpu

#else

namespace vt::cpu {

const RowKernels* Avx2Kernels() { return nullptr; }

}  // namespace vt::cpu

#endif
