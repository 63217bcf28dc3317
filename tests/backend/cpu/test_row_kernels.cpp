// Both tables of inner loops against each other: the portable one is what machines without AVX2 run.
#include "backend/cpu/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

std::vector<const vt::cpu::RowKernels*> Tables() {
  std::vector<const vt::cpu::RowKernels*> all = {&vt::cpu::PortableKernels()};
  if (vt::cpu::Avx2Kernels() != nullptr) all.push_back(vt::cpu::Avx2Kernels());
  return all;
}

TEST(RowKernels, SiluIsAccurateToARoundingOverTheWholeRange) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const vt::cpu::RowKernels* rows : Tables()) {
    std::vector<float> x;
    for (float v = -110; v < 110; v += 0.0173F) x.push_back(v);
    std::vector<float> y(x.size());
    rows->silu_mul(x.data(), nullptr, y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = x[i] / (1 + std::exp(-static_cast<double>(x[i])));
      EXPECT_NEAR(y[i], want, 4e-7 * std::abs(want) + 1e-36) << rows->name << " at " << x[i];
    }
    const float edges[4] = {inf, 3e38F, -3e38F, std::numeric_limits<float>::quiet_NaN()};
    float out[4];
    rows->silu_mul(edges, nullptr, out, 4);
    EXPECT_EQ(out[0], inf);
    EXPECT_EQ(out[1], 3e38F);
    EXPECT_EQ(out[2], 0);
    EXPECT_TRUE(std::isnan(out[3])) << rows->name;
  }
}

TEST(RowKernels, EveryRegisterBlockHasTheBitsOfOneRow) {
  HostTensors t(7);
  for (const vt::cpu::RowKernels* rows : Tables()) {
    for (const int64_t k : {5, 8, 16, 23, 100}) {
      const vt::Tensor x = t.Random(kF32, {8, k});
      const vt::Tensor w = t.Random(kBf16, {11, k});
      const auto run = [&](int64_t first, int64_t n) {
        vt::Tensor out = t.Empty(kF32, {n, 11});
        rows->matmul_bf16({.w = w.as<uint16_t>(),
                           .x = x.as<float>() + first * k,
                           .out = out.as<float>(),
                           .rows = n,
                           .outputs = 11,
                           .k = k,
                           .x_stride = k,
                           .out_stride = 11},
                          false);
        return out;
      };
      const vt::Tensor all = run(0, 8);
      for (int64_t n = 1; n <= 8; ++n)
        EXPECT_TRUE(SameBits(run(8 - n, n), all.Rows(8 - n, n))) << rows->name << n;
    }
  }
}

TEST(RowKernels, Bf16RoundingIsToEvenAndKeepsNan) {
  // 1 + 2^-8 lies between two bf16 numbers: down to the even one; 1 + 3 * 2^-8 up to the even one
  const float x[4] = {1.00390625F, 1.01171875F, -1.00390625F, std::numeric_limits<float>::quiet_NaN()};
  const float w[1] = {1};
  for (const vt::cpu::RowKernels* rows : Tables()) {
    float out[4];
    rows->matmul_f32(
        {.w = w, .x = x, .out = out, .rows = 4, .outputs = 1, .k = 1, .x_stride = 1, .out_stride = 1}, true);
    EXPECT_EQ(out[0], 1.0F) << rows->name;
    EXPECT_EQ(out[1], 1.015625F) << rows->name;
    EXPECT_EQ(out[2], -1.0F) << rows->name;
    EXPECT_TRUE(std::isnan(out[3])) << rows->name;
  }
}

TEST(RowKernels, TablesAgree) {
  if (vt::cpu::Avx2Kernels() == nullptr) GTEST_SKIP() << "no AVX2 here";
  HostTensors t(3);
  for (const int64_t n : {1, 7, 8, 9, 31, 200}) {
    const vt::Tensor a = t.Random(kF32, {n});
    const vt::Tensor b = t.Random(kF32, {n});
    const float portable = vt::cpu::PortableKernels().dot(a.as<float>(), b.as<float>(), n);
    EXPECT_NEAR(vt::cpu::Avx2Kernels()->dot(a.as<float>(), b.as<float>(), n), portable, 1e-5);
  }
}

}  // namespace
}  // namespace testing_support
