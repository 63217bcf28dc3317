#include <algorithm>
#include <limits>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

// NaN, so that a kernel that reads it is seen.
void Spoil(const vt::Tensor& t) {
  std::fill_n(t.as<float>(), t.count(), std::numeric_limits<float>::quiet_NaN());
}

class RecurrentOps : public DeviceOps {
 protected:
  vt::GatedDeltaRuleArgs Delta(int64_t rows, int64_t nk, int64_t nv, int64_t dk, int64_t dv, vt::DType type,
                               bool hold = false) {
    return {.q = t_.Strided({rows, nk, dk}),
            .k = t_.Strided({rows, nk, dk}),
            .v = t_.Strided({rows, nv, dv}),
            .a = t_.Strided({rows, nv}, 5, -4, 4),
            .b = t_.Strided({rows, nv}, 5, -4, 4),
            .a_log = t_.Random(type, {nv}),
            .dt_bias = t_.Random(type, {nv}),
            .state = t_.Random(kF32, {nv, dk, dv}),
            .out = t_.Empty(kF32, {rows, nv, dv}),
            .changes = hold ? t_.Empty(kF32, {rows, nv, dv}) : vt::Tensor{},
            .decays = hold ? t_.Empty(kF32, {rows, nv}) : vt::Tensor{}};
  }
};

TEST_F(RecurrentOps, CausalConvWithState) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const int64_t taps : {2, 3, 4, 7, 16}) {
      for (const int64_t rows : {1, 2, 5, 16, 17, 70}) {
        for (const bool hold : {false, true}) {
          if (hold && rows > vt::kMaxRows) continue;
          vt::CausalConv1dArgs args = {.x = t_.Strided({rows, 131}),
                                       .weight = t_.Random(type, {131, taps}),
                                       .state = t_.Random(kF32, {taps - 1, 131}),
                                       .out = t_.Empty(kF32, {rows, 131}),
                                       .hold = hold};
          const reference::StateResult want = reference::CausalConv1d(args);
          Run(args);
          EXPECT_TRUE(Near(args.out, want.out, 1e-6)) << taps << " taps, " << rows << " rows";
          EXPECT_TRUE(Near(args.state, want.state, 0)) << taps << " taps, " << rows << " rows, held " << hold;
        }
      }
    }
  }
}

TEST_F(RecurrentOps, GatedDeltaRule) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const auto& [dk, dv] :
         {std::pair{1, 1}, {8, 8}, {13, 37}, {32, 32}, {5, 75}, {100, 40}, {300, 10}}) {
      for (const int64_t rows : {1, 4, 16, 17, 75}) {
        for (const bool hold : {false, true}) {
          if (hold && rows > vt::kMaxRows) continue;
          vt::GatedDeltaRuleArgs args = Delta(rows, 2, 6, dk, dv, type, hold);
          const reference::StateResult want = reference::GatedDeltaRule(args);
          Run(args);
          EXPECT_TRUE(Near(args.out, want.out, 1e-5)) << dk << " x " << dv << ", " << rows << " rows";
          EXPECT_TRUE(Near(args.state, want.state, hold ? 0 : 1e-5))
              << dk << " x " << dv << ", " << rows << " rows, held " << hold;
          if (!hold) continue;
          EXPECT_TRUE(Near(args.changes, want.changes, 1e-5)) << dk << " x " << dv << ", " << rows << " rows";
          EXPECT_TRUE(Near(args.decays, want.decays, 1e-5)) << dk << " x " << dv << ", " << rows << " rows";
        }
      }
    }
  }
}

// Every count of rows, none included; nothing of the others is read.
TEST_F(RecurrentOps, CommitConv) {
  for (const int64_t taps : {2, 4, 16}) {
    for (const int64_t rows : {1, 5, 16}) {
      for (int32_t last = -2; last < rows; ++last) {
        vt::CommitConvArgs args = {.x = t_.Strided({3, rows, 131}),
                                   .states = t_.Random(kF32, {3, taps - 1, 131}),
                                   .last = t_.Ints({last})};
        for (int64_t r = last < 0 ? 0 : last + 1; r < rows; ++r) {
          for (int64_t layer = 0; layer < 3; ++layer) Spoil(args.x.At(layer).At(r));
        }
        const reference::Values want = reference::CommitConv(args);
        Run(args);
        EXPECT_TRUE(Near(args.states, want, 0)) << taps << " taps, row " << last << " of " << rows;
      }
    }
  }
}

TEST_F(RecurrentOps, CommitDelta) {
  for (const auto& [dk, dv] : {std::pair{1, 1}, {13, 37}, {128, 128}, {130, 33}, {300, 10}}) {
    for (const int64_t rows : {1, 4, 16}) {
      for (int32_t last = -2; last < rows; ++last) {
        vt::CommitDeltaArgs args = {.k = t_.Strided({2, rows, 2, dk}),
                                    .changes = t_.Random(kF32, {2, rows, 6, dv}),
                                    .decays = t_.Random(kF32, {2, rows, 6}, 0, 1),
                                    .states = t_.Random(kF32, {2, 6, dk, dv}),
                                    .last = t_.Ints({last})};
        for (int64_t r = last < 0 ? 0 : last + 1; r < rows; ++r) {
          for (int64_t layer = 0; layer < 2; ++layer) {
            for (const vt::Tensor& t : {args.changes, args.decays}) Spoil(t.At(layer).At(r));
            for (int64_t head = 0; head < 2; ++head) Spoil(args.k.At(layer).At(r).At(head));
          }
        }
        const reference::Values want = reference::CommitDelta(args);
        Run(args);
        EXPECT_TRUE(Near(args.states, want, 1e-6)) << dk << " x " << dv << ", row " << last << " of " << rows;
      }
    }
  }
}

// Prefill goes chunk by chunk: whole and cut chunks, heads that fill no tile, one head of keys for several.
TEST_F(RecurrentOps, GatedDeltaRuleInChunks) {
  struct Shape {
    int64_t rows, nk, nv, dk, dv;
  };
  for (const Shape& s : {Shape{17, 1, 1, 16, 16}, Shape{31, 2, 6, 48, 20}, Shape{32, 1, 3, 128, 128},
                         Shape{33, 2, 2, 127, 65}, Shape{130, 2, 4, 64, 32}, Shape{257, 1, 2, 100, 40},
                         Shape{600, 1, 2, 128, 33}, Shape{20, 1, 2, 140, 24}}) {
    for (const vt::DType type : {kF32, kBf16}) {
      vt::GatedDeltaRuleArgs args = Delta(s.rows, s.nk, s.nv, s.dk, s.dv, type);
      const reference::StateResult want = reference::GatedDeltaRule(args);
      Run(args);
      EXPECT_TRUE(Near(args.out, want.out, 1e-5)) << s.dk << " x " << s.dv << ", " << s.rows << " rows";
      EXPECT_TRUE(Near(args.state, want.state, 1e-5)) << s.dk << " x " << s.dv << ", " << s.rows << " rows";
    }
  }
}

// A span's decay is its own, however much has decayed before it: from none to below float32 within a chunk.
TEST_F(RecurrentOps, GatedDeltaRuleChunksKeepEveryDecay) {
  for (const auto& [low, high] : {std::pair{-60.0, -30.0}, {-60.0, 90.0}, {60.0, 90.0}}) {
    vt::GatedDeltaRuleArgs args = Delta(70, 1, 2, 40, 24, kF32);
    args.a = t_.Strided({70, 2}, 5, low, high);
    args.a_log = t_.Random(kF32, {2}, 1, 3);
    // near-parallel keys, fully written: the hardest system to solve
    args.k = t_.Random(kF32, {70, 1, 40}, 0.9, 1);
    args.b = t_.Random(kF32, {70, 2}, 4, 9);
    const reference::StateResult want = reference::GatedDeltaRule(args);
    Run(args);
    EXPECT_TRUE(Near(args.out, want.out, 1e-5)) << low << " to " << high;
    EXPECT_TRUE(Near(args.state, want.state, 1e-5)) << low << " to " << high;
  }
}

// One token forgets everything; what the next ones keep of each other must not be rounded to its sum.
TEST_F(RecurrentOps, GatedDeltaRuleChunksAfterAFullDecay) {
  vt::GatedDeltaRuleArgs args = Delta(64, 1, 2, 32, 16, kF32);
  args.a = t_.Random(kF32, {64, 2}, -8, -4);
  for (const int64_t r : {2, 17, 33}) args.a.as<float>()[2 * r] = args.a.as<float>()[2 * r + 1] = 900;
  args.a_log = t_.Random(kF32, {2}, 2, 3);
  args.v = t_.Random(kF32, {64, 2, 16}, 1, 2);
  const reference::StateResult want = reference::GatedDeltaRule(args);
  Run(args);
  EXPECT_TRUE(Near(args.out, want.out, 1e-5));
  EXPECT_TRUE(Near(args.state, want.state, 1e-5));
}

}  // namespace
}  // namespace testing_support
