#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class RowOps : public DeviceOps {};

TEST_F(RowOps, EmbeddingScalesAndTakesRepeatedIds) {
  for (const vt::DType type : {kF32, kBf16}) {
    const vt::EmbeddingArgs args = {.table = t_.Random(type, {11, 21}),
                                    .ids = t_.Ints({10, 0, 3, 3}),
                                    .out = t_.Empty(kF32, {4, 21}),
                                    .scale = 1.7F};
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::Embedding(args), 1e-7));
  }
}

TEST_F(RowOps, IndexSelectOfEveryType) {
  for (const vt::Tensor& src :
       {t_.Random(kF32, {6, 300}), t_.Random(kBf16, {6, 300}), t_.RandomInts({6, 300}, 1 << 30)}) {
    const vt::IndexSelectArgs args = {
        .src = src, .index = t_.Ints({5, 5, 0}), .out = t_.Empty(src.dtype, {3, 300})};
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::IndexSelect(args), 0));
  }
}

TEST_F(RowOps, IndexCopyWritesOnlyItsRows) {
  const vt::IndexCopyArgs args = {
      .src = t_.Strided({3, 7}), .index = t_.Ints({4, 0, 2}), .dst = t_.Random(kF32, {6, 7})};
  const reference::Values want = reference::IndexCopy(args);
  Run(args);
  EXPECT_TRUE(Near(args.dst, want, 0));
}

TEST_F(RowOps, CopyRowsBetweenStridedRowsAndVectors) {
  const vt::Tensor src = t_.Strided({5, 6});
  const vt::Tensor dst = t_.Strided({5, 6}, 8);
  Run(vt::CopyRowsArgs{.src = src, .dst = dst});
  EXPECT_TRUE(SameBits(src, dst));
  const vt::Tensor ints = t_.RandomInts({9}, 1000);
  const vt::Tensor copy = t_.Empty(kI32, {9});
  Run(vt::CopyRowsArgs{.src = ints, .dst = copy});
  EXPECT_TRUE(SameBits(ints, copy));
}

TEST_F(RowOps, PositionsCountFromStart) {
  const vt::Tensor out = t_.Empty(kI32, {4});
  Run(vt::PositionsArgs{.start = t_.Ints({41}), .out = out});
  EXPECT_TRUE(SameBits(out, t_.Ints({41, 42, 43, 44})));
}

}  // namespace
}  // namespace testing_support
