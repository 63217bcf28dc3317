#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class NormOps : public DeviceOps {};

TEST_F(NormOps, RmsNormOfRowsAndHeads) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const bool one_plus : {false, true}) {
      for (const int64_t n : {1, 7, 8, 33, 64, 77, 600, 2100}) {
        vt::RmsNormArgs args = {.x = t_.Strided({5, n}),
                                .weight = t_.Random(type, {n}),
                                .out = t_.Strided({5, n}, 5),
                                .eps = 1e-6F,
                                .one_plus = one_plus};
        Run(args);
        EXPECT_TRUE(Near(args.out, reference::RmsNorm(args), 2e-6));
        args.x = t_.Strided({3, 4, n});
        args.out = t_.Strided({3, 4, n}, 9);
        Run(args);
        EXPECT_TRUE(Near(args.out, reference::RmsNorm(args), 2e-6));
      }
    }
  }
}

TEST_F(NormOps, RmsNormInPlaceAndOfZeros) {
  const vt::Tensor x = t_.Strided({3, 2, 19});
  vt::RmsNormArgs args = {.x = x, .weight = t_.Random(kBf16, {19}), .out = x, .eps = 1e-6F, .one_plus = true};
  const reference::Values want = reference::RmsNorm(args);
  Run(args);
  EXPECT_TRUE(Near(x, want, 2e-6));
  args.x = t_.Random(kF32, {2, 19}, 0, 0);
  args.out = t_.Empty(kF32, {2, 19});
  Run(args);
  EXPECT_TRUE(Near(args.out, reference::Values(38, 0.0), 0));
}

TEST_F(NormOps, AddRmsNormUpdatesTheResidualAndMayStopThere) {
  for (const int64_t rows : {1, 3, 17}) {
    vt::AddRmsNormArgs args = {.h = t_.Random(kF32, {rows, 45}),
                               .delta = t_.Random(kF32, {rows, 45}),
                               .weight = t_.Random(kBf16, {45}),
                               .out = t_.Empty(kF32, {rows, 45}),
                               .eps = 1e-5F,
                               .one_plus = true};
    reference::AddRmsNormResult want = reference::AddRmsNorm(args);
    Run(args);
    EXPECT_TRUE(Near(args.h, want.h, 1e-7));
    EXPECT_TRUE(Near(args.out, want.out, 2e-6));
    args.out = {};
    args.weight = {};
    want = reference::AddRmsNorm(args);
    Run(args);
    EXPECT_TRUE(Near(args.h, want.h, 1e-7));
  }
}

TEST_F(NormOps, GatedRmsNorm) {
  for (const vt::DType type : {kF32, kBf16}) {
    const vt::GatedRmsNormArgs args = {.x = t_.Random(kF32, {3, 5, 21}),
                                       .z = t_.Strided({3, 5, 21}, 4, -9, 9),
                                       .weight = t_.Random(type, {21}),
                                       .out = t_.Empty(kF32, {3, 5, 21}),
                                       .eps = 1e-6F};
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::GatedRmsNorm(args), 3e-6));
  }
}

TEST_F(NormOps, SiluMulOverItsWholeRange) {
  for (const float range : {1.0F, 20.0F, 200.0F}) {
    const vt::SiluMulArgs args = {.gate_up = t_.Random(kF32, {7, 46}, -range, range),
                                  .out = t_.Empty(kF32, {7, 23})};
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::SiluMul(args), 1e-6));
  }
}

TEST_F(NormOps, SigmoidGateInPlace) {
  const vt::SigmoidGateArgs args = {.x = t_.Random(kF32, {4, 3, 13}),
                                    .gate = t_.Strided({4, 3, 13}, 2, -120, 120)};
  const reference::Values want = reference::SigmoidGate(args);
  Run(args);
  EXPECT_TRUE(Near(args.x, want, 1e-6));
}

TEST_F(NormOps, RopeRotatesTheFirstEntriesOnly) {
  for (const int64_t half : {1, 4, 9}) {
    vt::RopeArgs args = {.x = t_.Strided({3, 5, 19}),
                         .positions = t_.Ints({0, 77, 99999}),
                         .inv_freq = t_.Random(kF32, {half}, 0, 1)};
    const vt::Tensor before = t_.Copy(args.x);
    const reference::Values want = reference::Rope(args);
    Run(args);
    EXPECT_TRUE(Near(args.x, want, 2e-6));
    EXPECT_TRUE(SameBits(args.x.Cols(2 * half, 19 - 2 * half), before.Cols(2 * half, 19 - 2 * half)));
    EXPECT_TRUE(SameBits(args.x.Rows(0, 1), before.Rows(0, 1))) << "position 0 turns nothing";
  }
}

// The same as a norm and a rotation one after the other.
TEST_F(NormOps, PrepareHeads) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const auto& [d, half] : {std::pair{19, 4}, {64, 32}, {300, 10}}) {
      vt::PrepareHeadsArgs args;
      if (d != 64) args.q = t_.Strided({3, 4, d});
      args.k = t_.Strided({3, 2, d});
      args.q_norm = t_.Random(type, {d});
      args.k_norm = t_.Random(type, {d});
      args.positions = t_.Ints({11, 4, 99999});
      args.inv_freq = t_.Random(kF32, {half}, 0, 1);
      args.eps = 1e-6F;
      args.one_plus = type == kBf16;
      const auto heads = [&, d = d](const vt::Tensor& x, const vt::Tensor& norm) {
        const vt::Tensor own = t_.Empty(kF32, {3, x.dim(1), d});
        Run(vt::RmsNormArgs{x, norm, own, args.eps, args.one_plus});
        Run(vt::RopeArgs{own, args.positions, args.inv_freq});
        return own;
      };
      const vt::Tensor q = args.q ? heads(args.q, args.q_norm) : vt::Tensor{};
      const vt::Tensor k = heads(args.k, args.k_norm);
      Run(args);
      if (q) {
        EXPECT_TRUE(Near(args.q, reference::All(q), 2e-6)) << d;
      }
      EXPECT_TRUE(Near(args.k, reference::All(k), 2e-6)) << d;
    }
  }
}

}  // namespace
}  // namespace testing_support
