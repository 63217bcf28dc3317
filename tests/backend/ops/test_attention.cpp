#include <cmath>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class AttentionOps : public DeviceOps {};

TEST_F(AttentionOps, CausalOverTheCache) {
  for (const int64_t d : {1, 20, 64, 75, 128, 150, 196, 256, 300}) {
    for (const int32_t start : {0, 63, 64, 150}) {
      for (const int64_t rows : {1, 2, 9, 16, 17}) {
        const vt::AttentionArgs args = {.q = t_.Strided({rows, 6, d}, start % 4, -1, 1),
                                        .k = t_.Random(kF32, {180, 3, d}, -1, 1),
                                        .v = t_.Random(kF32, {180, 3, d}),
                                        .positions = Ascending(start, rows),
                                        .out = t_.Empty(kF32, {rows, 6, d}),
                                        .scale = 0.25F};
        Run(args);
        EXPECT_TRUE(Near(args.out, reference::Attention(args), 1e-5)) << d << " " << start << " " << rows;
      }
    }
  }
}

// Long contexts: a block has more pairs, and a combining thread more tiles than it has on the way.
TEST_F(AttentionOps, ManyKeys) {
  struct Shape {
    int64_t d, group, capacity;
    int32_t start;
  };
  for (const Shape& s : {Shape{256, 6, 2200, 2150}, Shape{8, 2, 4400, 4350}}) {
    for (const int64_t rows : {1, 3, 8}) {
      const vt::AttentionArgs args = {.q = t_.Random(kF32, {rows, s.group, s.d}, -1, 1),
                                      .k = t_.Random(kF32, {s.capacity, 1, s.d}, -1, 1),
                                      .v = t_.Random(kF32, {s.capacity, 1, s.d}),
                                      .positions = Ascending(s.start, rows),
                                      .out = t_.Empty(kF32, {rows, s.group, s.d}),
                                      .scale = 0.25F};
      Run(args);
      EXPECT_TRUE(Near(args.out, reference::Attention(args), 1e-5)) << s.d << " " << rows;
    }
  }
}

TEST_F(AttentionOps, LargeScoresDoNotOverflow) {
  for (const int64_t d : {16, 256}) {
    const float most = d == 16 ? 60 : 15;
    const vt::AttentionArgs args = {.q = t_.Random(kF32, {2, 2, d}, -most, most),
                                    .k = t_.Random(kF32, {140, 1, d}, -60, 60),
                                    .v = t_.Random(kF32, {140, 1, d}),
                                    .positions = Ascending(130, 2),
                                    .out = t_.Empty(kF32, {2, 2, d}),
                                    .scale = 1};
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::Attention(args), 5e-3)) << d;  // 1e-3 of rounding in scores of 1e4
  }
}

TEST_F(AttentionOps, KeysBeyondThePositionAreNotRead) {
  for (const int64_t d : {40, 198, 256}) {
    const vt::AttentionArgs args = {.q = t_.Random(kF32, {3, 4, d}),
                                    .k = t_.Random(kF32, {90, 2, d}),
                                    .v = t_.Random(kF32, {90, 2, d}),
                                    .positions = Ascending(64, 3),
                                    .out = t_.Empty(kF32, {3, 4, d}),
                                    .scale = 0.2F};
    for (const vt::Tensor& t : {args.k, args.v}) {
      std::fill_n(t.Rows(67, 23).as<float>(), 23 * 2 * d, std::numeric_limits<float>::quiet_NaN());
    }
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::Attention(args), 1e-5)) << d;
  }
}

// Prefill shares tiles of keys between the rows: whole and cut tiles, group sizes that cut a row's heads.
TEST_F(AttentionOps, ManyRowsShareTheKeys) {
  struct Shape {
    int64_t rows, kv, group, d;
    int32_t start;
  };
  for (const Shape& s : {Shape{64, 1, 1, 64, 0}, Shape{67, 2, 3, 33, 5}, Shape{130, 1, 2, 128, 0},
                         Shape{21, 1, 6, 256, 63}, Shape{18, 2, 5, 257, 100}, Shape{33, 1, 1, 512, 1}}) {
    const int64_t keys = s.start + s.rows + 9;
    const vt::AttentionArgs args = {.q = t_.Strided({s.rows, s.kv * s.group, s.d}, 3, -1, 1),
                                    .k = t_.Random(kF32, {keys, s.kv, s.d}, -1, 1),
                                    .v = t_.Random(kF32, {keys, s.kv, s.d}),
                                    .positions = Ascending(s.start, s.rows),
                                    .out = t_.Empty(kF32, {s.rows, s.kv * s.group, s.d}),
                                    .scale = 0.25F};
    for (const vt::Tensor& t : {args.k, args.v}) {
      std::fill_n(t.Rows(keys - 9, 9).as<float>(), 9 * s.kv * s.d, std::numeric_limits<float>::quiet_NaN());
    }
    Run(args);
    EXPECT_TRUE(Near(args.out, reference::Attention(args), 1e-5)) << s.rows << " rows of " << s.d;
  }
}

TEST_F(AttentionOps, LargeScoresOfManyRowsDoNotOverflow) {
  const vt::AttentionArgs args = {.q = t_.Random(kF32, {20, 2, 16}, -60, 60),
                                  .k = t_.Random(kF32, {140, 1, 16}, -60, 60),
                                  .v = t_.Random(kF32, {140, 1, 16}),
                                  .positions = Ascending(118, 20),
                                  .out = t_.Empty(kF32, {20, 2, 16}),
                                  .scale = 1};
  Run(args);
  EXPECT_TRUE(Near(args.out, reference::Attention(args), 5e-3));
}

}  // namespace
}  // namespace testing_support
