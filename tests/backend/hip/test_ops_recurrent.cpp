#include "tests/backend/hip/device_ops.h"

namespace testing_support {
namespace {

class RecurrentOps : public DeviceOps {
 protected:
  vt::GatedDeltaRuleArgs Delta(int64_t rows, int64_t nk, int64_t nv, int64_t dk, int64_t dv, vt::DType type,
                               int32_t slot) {
    return {.q = t_.Strided({rows, nk, dk}),
            .k = t_.Strided({rows, nk, dk}),
            .v = t_.Strided({rows, nv, dv}),
            .a = t_.Strided({rows, nv}, 5, -4, 4),
            .b = t_.Strided({rows, nv}, 5, -4, 4),
            .a_log = t_.Random(type, {nv}),
            .dt_bias = t_.Random(type, {nv}),
            .states = t_.Random(kF32, {17, nv, dk, dv}),
            .slot = t_.Ints({slot}),
            .out = t_.Empty(kF32, {rows, nv, dv})};
  }
};

TEST_F(RecurrentOps, CausalConvWithState) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const int64_t taps : {2, 3, 4, 7, 16}) {
      for (const int64_t rows : {1, 2, 5, 16, 17, 70}) {
        for (const int32_t slot : {0, 2, 16}) {
          for (const bool keep : {false, true}) {
            if (keep && rows > 17) continue;
            vt::CausalConv1dArgs args = {.x = t_.Strided({rows, 131}),
                                         .weight = t_.Random(type, {131, taps}),
                                         .states = t_.Random(kF32, {17, taps - 1, 131}),
                                         .slot = t_.Ints({slot}),
                                         .out = t_.Empty(kF32, {rows, 131}),
                                         .keep_rows = keep};
            const reference::StateResult want = reference::CausalConv1d(args);
            Run(args);
            EXPECT_TRUE(Near(args.out, want.out, 1e-6))
                << taps << " taps, " << rows << " rows, slot " << slot;
            EXPECT_TRUE(Near(args.states, want.states, 0))
                << taps << " taps, " << rows << " rows, slot " << slot;
          }
        }
      }
    }
  }
}

TEST_F(RecurrentOps, GatedDeltaRule) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const auto& [dk, dv] : {std::pair{1, 1}, {8, 8}, {13, 37}, {32, 32}, {5, 75}, {100, 40}}) {
      for (const int64_t rows : {1, 4, 16, 17, 75}) {
        for (const bool keep : {false, true}) {
          if (keep && rows > 17) continue;
          vt::GatedDeltaRuleArgs args = Delta(rows, 2, 6, dk, dv, type, rows == 4 ? 2 : 0);
          args.keep_rows = keep;
          const reference::StateResult want = reference::GatedDeltaRule(args);
          Run(args);
          EXPECT_TRUE(Near(args.out, want.out, 1e-5)) << dk << " x " << dv << ", " << rows << " rows";
          EXPECT_TRUE(Near(args.states, want.states, 1e-5)) << dk << " x " << dv << ", " << rows << " rows";
        }
      }
    }
  }
}

}  // namespace
}  // namespace testing_support
