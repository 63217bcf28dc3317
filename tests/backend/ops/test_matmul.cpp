#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

// bf16 weights on matrix tiles meet activations of 17 bits (hi + lo), and each sum here has up to a thousand
// products of up to 2. Without the lower part a sum is off by a hundred times as much.
constexpr double kNear = 1e-4;

class MatMulOp : public DeviceOps {};

TEST_F(MatMulOp, EqualsTheReferenceOverOddShapes) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33}) {
      for (const auto& [n, k] :
           {std::pair{1, 1}, {3, 7}, {5, 8}, {7, 17}, {67, 31}, {13, 203}, {33, 248}, {5, 1032}}) {
        const vt::MatMulArgs args = {.x = t_.Strided({rows, k}),
                                     .w = t_.Random(type, {n, k}),
                                     .bias = rows % 2 == 0 ? t_.Random(type, {n}) : vt::Tensor{},
                                     .out = t_.Strided({rows, n})};
        Run(args);
        EXPECT_TRUE(Near(args.out, reference::MatMul(args), kNear)) << rows << " x " << n << " x " << k;
      }
    }
  }
}

// Rows that may be read 16 bytes at a time; outputs and k that fill no tile, no piece and no share of a
// device.
TEST_F(MatMulOp, EqualsTheReferenceOverAlignedRows) {
  for (const int64_t rows : {1, 3, 8, 9, 16, 17}) {
    for (const auto& [n, k] : {std::pair{1, 8}, {33, 248}, {130, 1032}, {10700, 72}}) {
      const vt::MatMulArgs args = {.x = t_.Strided({rows, k}, 4),
                                   .w = t_.Random(kBf16, {n, k}),
                                   .bias = rows % 2 == 0 ? t_.Random(kF32, {n}) : vt::Tensor{},
                                   .out = t_.Strided({rows, n})};
      Run(args);
      EXPECT_TRUE(Near(args.out, reference::MatMul(args), kNear)) << rows << " x " << n << " x " << k;
    }
  }
}

// One row is kept in shared memory as long as it fits there; the bits are those of a row among others.
TEST_F(MatMulOp, TakesALongRowAlone) {
  for (const int64_t k : {20480, 20488}) {
    vt::MatMulArgs args = {.x = t_.Random(kF32, {2, k}),
                           .w = t_.Random(kBf16, {37, k}),
                           .bias = {},
                           .out = t_.Empty(kF32, {2, 37})};
    args.norm = t_.Random(kBf16, {k});
    args.eps = 1e-3F;
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::MatMul(args), 10 * kNear)) << k;
    vt::MatMulArgs first = args;
    first.x = args.x.Rows(0, 1);
    first.out = t_.Empty(kF32, {1, 37});
    Run(first);
    EXPECT_TRUE(SameBits(first.out, args.out.Rows(0, 1))) << k;
  }
}

TEST_F(MatMulOp, NormalisesItsInputAndAddsAResidual) {
  for (const int64_t rows : {1, 3, 8, 9, 16, 17}) {
    for (const auto& [n, k] : {std::pair{7, 17}, {33, 248}, {130, 1032}, {1070, 72}}) {
      for (const vt::DType type : {kF32, kBf16}) {
        vt::MatMulArgs args = {.x = t_.Strided({rows, k}, 4, -2, 2),
                               .w = t_.Random(kBf16, {n, k}),
                               .bias = rows % 2 == 0 ? t_.Random(kF32, {n}) : vt::Tensor{},
                               .out = t_.Strided({rows, n})};
        args.norm = t_.Random(type, {k});
        args.eps = 1e-3F;
        args.one_plus = rows % 2 == 0;
        Run(args);
        EXPECT_TRUE(Near(args.out, reference::MatMul(args), 2 * kNear)) << rows << " x " << n << " x " << k;
        args.residual = rows % 3 == 0 ? t_.Strided({rows, n}, 5) : args.out;
        const reference::Values want = reference::MatMul(args);
        Run(args);
        EXPECT_TRUE(Near(args.out, want, 2 * kNear)) << rows << " x " << n << " x " << k;
        args.norm = {};
        const reference::Values plain = reference::MatMul(args);
        Run(args);
        EXPECT_TRUE(Near(args.out, plain, 2 * kNear)) << rows << " x " << n << " x " << k;
      }
    }
  }
}

TEST_F(MatMulOp, EndsInSiluMul) {
  for (const int64_t rows : {1, 3, 8, 9, 16, 17}) {
    for (const auto& [n, k] : {std::pair{1, 8}, {7, 17}, {33, 248}, {130, 1032}, {5350, 72}}) {
      vt::MatMulArgs args = {.x = t_.Strided({rows, k}, 4),
                             .w = t_.Random(kBf16, {2 * n, k}, -0.1F, 0.1F),
                             .bias = {},
                             .out = t_.Empty(kF32, {rows, n})};
      args.silu_mul = true;
      if (rows % 2 == 0) args.norm = t_.Random(kBf16, {k}), args.eps = 1e-3F;
      Run(args);
      EXPECT_TRUE(Near(args.out, reference::MatMul(args), kNear)) << rows << " x " << n << " x " << k;
    }
  }
}

TEST_F(MatMulOp, LeavesTheGapsOfAStridedOutputAlone) {
  const vt::Tensor whole = t_.Random(kF32, {5, 40});
  const vt::Tensor before = t_.Copy(whole);
  Run(vt::MatMulArgs{
      .x = t_.Random(kF32, {5, 9}), .w = t_.Random(kBf16, {11, 9}), .bias = {}, .out = whole.Cols(7, 11)});
  EXPECT_TRUE(SameBits(whole.Cols(0, 7), before.Cols(0, 7)));
  EXPECT_TRUE(SameBits(whole.Cols(18, 22), before.Cols(18, 22)));
}

TEST_F(MatMulOp, RoundsActivationsInPrefillOnlyWhenAsked) {
  const vt::Tensor w = t_.Random(kBf16, {9, 75});
  for (const int64_t rows : {16, 17}) {
    const vt::Tensor x = t_.Random(kF32, {rows, 75});
    vt::MatMulArgs exact = {.x = x, .w = w, .bias = {}, .out = t_.Empty(kF32, {rows, 9})};
    vt::MatMulArgs rounded = exact;
    rounded.out = t_.Empty(kF32, {rows, 9});
    rounded.precision = vt::Precision::bf16;
    Run(exact);
    Run(rounded);
    EXPECT_TRUE(Near(rounded.out, reference::MatMul(rounded), 1e-5));
    EXPECT_EQ(static_cast<bool>(SameBits(rounded.out, exact.out)), rows == 16);
  }
}

}  // namespace
}  // namespace testing_support
