// A row's bits do not depend on the number of rows beside it, for every width up to kMaxRows. On cpu this
// holds for more rows too (a prefill equals single steps), and for every number of threads.
#include <omp.h>

#include <algorithm>
#include <tuple>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class RowInvariance : public DeviceOps {
 protected:
  // run(first, n) computes rows first .. first + n - 1 and returns them; compares every width with all rows
  // in one call.
  template <class Fn>
  void Check(const Fn& run) {
    const vt::Tensor all = run(0, rows_);
    for (int64_t width = 1; width <= vt::kMaxRows; ++width) {
      // on a device the first and the last place only
      const int64_t step = OnCpu() ? width : std::max<int64_t>(rows_ - width, 1);
      for (int64_t first = 0; first + width <= rows_; first += step) {
        ASSERT_TRUE(SameBits(run(first, width), all.Rows(first, width)))
            << "row " << first << " in " << width;
      }
    }
    if (!OnCpu()) return;
    ASSERT_TRUE(SameBits(run(3, 33), all.Rows(3, 33)));
    const int threads = omp_get_max_threads();
    for (const int n : {1, 2, 3}) {
      omp_set_num_threads(n);
      EXPECT_TRUE(SameBits(run(0, rows_), all)) << n << " threads";
    }
    omp_set_num_threads(threads);
  }

  // On cpu large enough that all rows run on several threads and single rows do not.
  const int64_t rows_ = OnCpu() ? 40 : vt::kMaxRows;
  const int64_t heads_ = OnCpu() ? 18 : 6;
  const int64_t vocab_ = OnCpu() ? 40000 : 5000;
};

TEST_F(RowInvariance, MatMul) {
  for (const auto& [type, k] : {std::pair<vt::DType, int64_t>{kF32, 301}, {kBf16, 301}, {kBf16, 1104}}) {
    const vt::Tensor x = t_.Strided({rows_, k}, 4);
    const vt::Tensor w = t_.Random(type, {203, k});
    const vt::Tensor bias = t_.Random(type, {203});
    const vt::Tensor norm = t_.Random(kBf16, {k});
    const vt::Tensor residual = t_.Strided({rows_, 203});
    const vt::Tensor gate_up = t_.Random(type, {202, k});
    for (const bool fused : {false, true}) {
      Check([&](int64_t first, int64_t n) {
        vt::MatMulArgs args = {.x = x.Rows(first, n), .w = w, .bias = bias, .out = t_.Empty(kF32, {n, 203})};
        if (fused) args.norm = norm, args.eps = 1e-6F, args.residual = residual.Rows(first, n);
        Run(args);
        return args.out;
      });
      Check([&](int64_t first, int64_t n) {
        vt::MatMulArgs args = {
            .x = x.Rows(first, n), .w = gate_up, .bias = {}, .out = t_.Empty(kF32, {n, 101})};
        args.silu_mul = true;
        if (fused) args.norm = norm, args.eps = 1e-6F;
        Run(args);
        return args.out;
      });
    }
  }
}

TEST_F(RowInvariance, Norms) {
  const vt::Tensor x = t_.Strided({rows_, 5, 77});
  const vt::Tensor weight = t_.Random(kBf16, {77});
  Check([&](int64_t first, int64_t n) {
    const vt::RmsNormArgs args = {.x = x.Rows(first, n),
                                  .weight = weight,
                                  .out = t_.Empty(kF32, {n, 5, 77}),
                                  .eps = 1e-6F,
                                  .one_plus = true};
    Run(args);
    const vt::GatedRmsNormArgs gated = {
        .x = args.out, .z = x.Rows(first, n), .weight = weight, .out = args.out, .eps = 1e-6F};
    Run(gated);
    return args.out;
  });
}

// The last starts below a long context, from which on more rows are read together, and ends in one.
TEST_F(RowInvariance, Attention) {
  struct Shape {
    int64_t d, capacity, kv, group;
    int32_t start;
    int64_t gap;
  };
  for (const Shape& s :
       {Shape{40, 140, 2, 2, 90, 3}, Shape{136, 140, 2, 6, 90, 3}, Shape{256, 2100, 1, 3, 2040, 4}}) {
    const vt::Tensor q = t_.Strided({rows_, s.kv * s.group, s.d}, s.gap);
    const vt::Tensor k = t_.Random(kF32, {s.capacity, s.kv, s.d});
    const vt::Tensor v = t_.Random(kF32, {s.capacity, s.kv, s.d});
    Check([&](int64_t first, int64_t n) {
      const vt::AttentionArgs args = {.q = q.Rows(first, n),
                                      .k = k,
                                      .v = v,
                                      .positions = Ascending(static_cast<int32_t>(first) + s.start, n),
                                      .out = t_.Empty(kF32, {n, s.kv * s.group, s.d}),
                                      .scale = 0.2F};
      Run(args);
      return args.out;
    });
  }
}

// Row i of a causal draft block does not see later rows: the block may be cut anywhere.
TEST_F(RowInvariance, CausalDraftBlock) {
  const vt::Tensor q = t_.Strided({16, 4, 40});
  const vt::Tensor k = t_.Strided({16, 2, 40});
  const vt::Tensor ctx = t_.Random(kF32, {100, 2, 40});
  const auto run = [&](int64_t n) {
    const vt::DFlashBlockAttnArgs args = {.q = q.Rows(0, n),
                                          .k_block = k.Rows(0, n),
                                          .v_block = k.Rows(0, n),
                                          .k_ctx = ctx,
                                          .v_ctx = ctx,
                                          .pages = {},
                                          .start = t_.Ints({97}),
                                          .out = t_.Empty(kF32, {n, 4, 40}),
                                          .scale = 0.2F,
                                          .causal = true,
                                          .window = 70};
    Run(args);
    return args.out;
  };
  const vt::Tensor all = run(16);
  for (int64_t n = 1; n < 16; ++n) EXPECT_TRUE(SameBits(run(n), all.Rows(0, n))) << n;
}

// Each call starts from the state that single steps left before its first row. A block that is held ends with
// theirs too, however many of its rows count.
TEST_F(RowInvariance, CausalConv) {
  const vt::Tensor x = t_.Strided({rows_, 75});
  const vt::Tensor weight = t_.Random(kBf16, {75, 4});
  const vt::Tensor states = t_.Random(kF32, {rows_ + 1, 3, 75});
  const auto run = [&](int64_t first, int64_t n, const vt::Tensor& state, bool hold) {
    const vt::CausalConv1dArgs args = {.x = x.Rows(first, n),
                                       .weight = weight,
                                       .state = state,
                                       .out = t_.Empty(kF32, {n, 75}),
                                       .hold = hold};
    Run(args);
    return args.out;
  };
  for (int64_t r = 0; r < rows_; ++r) {
    const vt::Tensor state = t_.Copy(states.At(r));
    run(r, 1, state, false);
    std::copy_n(state.as<float>(), state.count(), states.At(r + 1).as<float>());
  }
  Check([&](int64_t first, int64_t n) {
    const vt::Tensor state = t_.Copy(states.At(first));
    const vt::Tensor out = run(first, n, state, false);
    EXPECT_TRUE(SameBits(state, states.At(first + n)));
    if (n > vt::kMaxRows) return out;
    const vt::Tensor held = t_.Copy(states.Rows(first, 1));
    EXPECT_TRUE(SameBits(run(first, n, held.At(0), true), out));
    for (const int64_t counted : {int64_t{0}, n / 2, n}) {
      const vt::Tensor committed = t_.Copy(held);
      vt::Tensor block = x.Rows(first, n);  // as [1, n, 75]
      block.rank = 3;
      block.shape = {1, n, 75};
      block.stride = {n * x.step(0), x.step(0), 1};
      Run(vt::CommitConvArgs{
          .x = block, .states = committed, .last = t_.Ints({static_cast<int32_t>(counted) - 1})});
      EXPECT_TRUE(SameBits(committed.At(0), states.At(first + counted))) << counted << " of " << n;
    }
    return out;
  });
}

TEST_F(RowInvariance, GatedDeltaRule) {
  const vt::Tensor q = t_.Strided({rows_, 2, 24});
  const vt::Tensor k = t_.Random(kF32, {rows_, 2, 24});
  const vt::Tensor v = t_.Strided({rows_, heads_, 40});
  const vt::Tensor ab = t_.Strided({rows_, heads_});
  const vt::Tensor a_log = t_.Random(kF32, {heads_});
  const vt::Tensor states = t_.Random(kF32, {rows_ + 1, heads_, 24, 40});
  const auto args_of = [&](int64_t first, int64_t n, const vt::Tensor& state) {
    return vt::GatedDeltaRuleArgs{.q = q.Rows(first, n),
                                  .k = k.Rows(first, n),
                                  .v = v.Rows(first, n),
                                  .a = ab.Rows(first, n),
                                  .b = ab.Rows(first, n),
                                  .a_log = a_log,
                                  .dt_bias = a_log,
                                  .state = state,
                                  .out = t_.Empty(kF32, {n, heads_, 40}),
                                  .changes = {},
                                  .decays = {}};
  };
  for (int64_t r = 0; r < rows_; ++r) {
    const vt::Tensor state = t_.Copy(states.At(r));
    Run(args_of(r, 1, state));
    std::copy_n(state.as<float>(), state.count(), states.At(r + 1).as<float>());
  }
  Check([&](int64_t first, int64_t n) {
    const vt::Tensor state = t_.Copy(states.At(first));
    const vt::GatedDeltaRuleArgs args = args_of(first, n, state);
    Run(args);
    EXPECT_TRUE(SameBits(state, states.At(first + n)));
    if (n > vt::kMaxRows) return args.out;
    vt::GatedDeltaRuleArgs held = args_of(first, n, t_.Copy(states.At(first)));
    held.changes = t_.Empty(kF32, {n, heads_, 40});
    held.decays = t_.Empty(kF32, {n, heads_});
    Run(held);
    EXPECT_TRUE(SameBits(held.out, args.out));
    EXPECT_TRUE(SameBits(held.state, states.At(first)));
    for (const int64_t counted : {int64_t{0}, n / 2, n}) {
      const vt::CommitDeltaArgs commit = {.k = held.k.Reshape({1, n, 2, 24}),
                                          .changes = held.changes.Reshape({1, n, heads_, 40}),
                                          .decays = held.decays.Reshape({1, n, heads_}),
                                          .states = t_.Copy(states.Rows(first, 1)),
                                          .last = t_.Ints({static_cast<int32_t>(counted) - 1})};
      Run(commit);
      EXPECT_TRUE(SameBits(commit.states.At(0), states.At(first + counted))) << counted << " of " << n;
    }
    return args.out;
  });
}

TEST_F(RowInvariance, GatesAndRope) {
  const vt::Tensor x = t_.Strided({rows_, 3, 34}, 3, -9, 9);
  const vt::Tensor gate_up = t_.Random(kF32, {rows_, 2 * 102}, -9, 9);
  const vt::Tensor inv_freq = t_.Random(kF32, {13}, 0, 1);
  Check([&](int64_t first, int64_t n) {
    const vt::Tensor out = t_.Empty(kF32, {n, 102});
    Run(vt::SiluMulArgs{.gate_up = t_.Copy(gate_up.Rows(first, n)), .out = out});
    Run(vt::SigmoidGateArgs{.x = out.SplitLast(3, 34), .gate = x.Rows(first, n)});
    Run(vt::RopeArgs{.x = out.SplitLast(3, 34),
                     .positions = Ascending(static_cast<int32_t>(first), n),
                     .inv_freq = inv_freq});
    return out;
  });
}

TEST_F(RowInvariance, TopKAndArgMax) {
  const vt::Tensor x = t_.Strided({rows_, vocab_});
  Check([&](int64_t first, int64_t n) {
    const vt::TopKPairsArgs args = {
        .x = x.Rows(first, n), .values = t_.Empty(kF32, {n, 16}), .ids = t_.Empty(kI32, {n, 16})};
    Run(args);
    const vt::ArgMaxArgs best = {.x = x.Rows(first, n), .out = t_.Empty(kI32, {n})};
    Run(best);
    for (int64_t r = 0; r < n; ++r) EXPECT_EQ(best.out.as<int32_t>()[r], args.ids.as<int32_t>()[r * 16]);
    return args.values;
  });
}

}  // namespace
}  // namespace testing_support
