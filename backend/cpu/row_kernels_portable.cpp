// Eight lanes as a plain array: for machines without AVX2 and FMA, and for tests.
#include <cmath>
#include <cstring>

#include "backend/cpu/row_kernels.h"

#define LANES_FN
#define LANES_INLINE inline

namespace vt::cpu {

namespace {

struct Lanes {
  float v[8];
};

template <class Fn>
Lanes Each(const Fn& fn) {
  Lanes out;
  for (int i = 0; i < 8; ++i) out.v[i] = fn(i);
  return out;
}

Lanes Set1(float x) {
  return Each([=](int) { return x; });
}
Lanes Zero() { return Set1(0); }
float First(const Lanes& a) { return a.v[0]; }
Lanes Load(const float* p) {
  Lanes out;
  std::memcpy(out.v, p, sizeof out.v);
  return out;
}
Lanes Load(const uint16_t* p) {
  return Each([=](int i) { return FromBf16(p[i]); });
}
Lanes LoadN(const float* p, int n) {
  return Each([=](int i) { return i < n ? p[i] : 0.0F; });
}
Lanes LoadN(const uint16_t* p, int n) {
  return Each([=](int i) { return i < n ? FromBf16(p[i]) : 0.0F; });
}
void Store(float* p, const Lanes& a) { std::memcpy(p, a.v, sizeof a.v); }
void StoreN(float* p, const Lanes& a, int n) { std::memcpy(p, a.v, sizeof(float) * static_cast<size_t>(n)); }

Lanes Add(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return a.v[i] + b.v[i]; });
}
Lanes Sub(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return a.v[i] - b.v[i]; });
}
Lanes Mul(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return a.v[i] * b.v[i]; });
}
Lanes Div(const Lanes& a, const Lanes& b) {
  return Each([&](int i) { return a.v[i] / b.v[i]; });
}
// Two roundings: a fused one is a library call on machines without FMA.
Lanes Fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return Each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
Lanes Exp(const Lanes& a) {
  return Each([&](int i) { return std::exp(a.v[i]); });
}
// To nearest, ties to even; a NaN stays one.
Lanes RoundBf16(const Lanes& a) {
  return Each([&](int i) {
    uint32_t bits;
    std::memcpy(&bits, &a.v[i], sizeof bits);
    bits = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
    float rounded;
    std::memcpy(&rounded, &bits, sizeof rounded);
    return std::isnan(a.v[i]) ? a.v[i] : rounded;
  });
}
// The same tree as the AVX2 version.
float Sum(const Lanes& a) {
  const float s0 = a.v[0] + a.v[4];
  const float s1 = a.v[1] + a.v[5];
  const float s2 = a.v[2] + a.v[6];
  const float s3 = a.v[3] + a.v[7];
  return (s0 + s2) + (s1 + s3);
}

#include "backend/cpu/row_kernels.inc"

}  // namespace

const RowKernels& PortableKernels() {
  static const RowKernels table = MakeTable("portable");
  return table;
}

}  // namespace vt::cpu
