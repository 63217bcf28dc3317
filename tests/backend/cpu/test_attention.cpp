#include <cmath>
#include <numeric>

#include "tests/backend/cpu/cpu_ops.h"

namespace testing_support {
namespace {

class AttentionOps : public CpuOps {
 protected:
  vt::Tensor Ascending(int32_t first, int64_t n) {
    std::vector<int32_t> values(static_cast<size_t>(n));
    std::iota(values.begin(), values.end(), first);
    return t_.Ints(values);
  }

  vt::DFlashBlockAttnArgs Block(int64_t rows, int32_t start, int64_t heads = 6, int64_t kv = 2,
                                int64_t d = 20) {
    return {.q = t_.Strided({rows, heads, d}),
            .k_block = t_.Strided({rows, kv, d}),
            .v_block = t_.Strided({rows, kv, d}),
            .k_ctx = t_.Random(kF32, {start + 5, kv, d}),
            .v_ctx = t_.Random(kF32, {start + 5, kv, d}),
            .pages = {},
            .start = t_.Ints({start}),
            .out = t_.Empty(kF32, {rows, heads, d}),
            .scale = 1 / std::sqrt(static_cast<float>(d))};
  }
};

TEST_F(AttentionOps, CausalOverTheCache) {
  for (const int64_t d : {1, 20, 64, 75}) {
    for (const int32_t start : {0, 1, 62, 64, 150}) {
      for (const int64_t rows : {1, 3, 17}) {
        const vt::AttentionArgs args = {.q = t_.Strided({rows, 6, d}, 3, -3, 3),
                                        .k = t_.Random(kF32, {180, 3, d}, -3, 3),
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

TEST_F(AttentionOps, LargeScoresDoNotOverflow) {
  const vt::AttentionArgs args = {.q = t_.Random(kF32, {2, 2, 16}, -60, 60),
                                  .k = t_.Random(kF32, {140, 1, 16}, -60, 60),
                                  .v = t_.Random(kF32, {140, 1, 16}),
                                  .positions = Ascending(130, 2),
                                  .out = t_.Empty(kF32, {2, 2, 16}),
                                  .scale = 1};
  Run(args);
  EXPECT_TRUE(Near(args.out, reference::Attention(args), 5e-3));  // scores of 1e4 carry 1e-3 of rounding
}

TEST_F(AttentionOps, RefusesAPositionBeyondTheCache) {
  EXPECT_THROW(Run(vt::AttentionArgs{.q = t_.Random(kF32, {1, 1, 4}),
                                     .k = t_.Random(kF32, {3, 1, 4}),
                                     .v = t_.Random(kF32, {3, 1, 4}),
                                     .positions = t_.Ints({3}),
                                     .out = t_.Empty(kF32, {1, 1, 4})}),
               std::logic_error);
}

TEST_F(AttentionOps, DraftBlockOverContextAndItself) {
  for (const int64_t rows : {1, 2, 7, 8, 16}) {
    for (const int32_t start : {0, 1, 63, 64, 100}) {
      for (const bool causal : {false, true}) {
        for (const int window : {0, 1, 3, 8, 64, 100, 101, 500}) {
          vt::DFlashBlockAttnArgs args = Block(rows, start);
          args.causal = causal;
          args.window = window;
          Run(args);
          EXPECT_TRUE(Near(args.out, reference::DFlashBlockAttn(args), 1e-5))
              << rows << " rows at " << start << " causal " << causal << " window " << window;
        }
      }
    }
  }
}

TEST_F(AttentionOps, WindowEdgeIsExclusive) {
  // row 0 at position 4, window 3: context keys 2 and 3 are seen, key 1 is not
  vt::DFlashBlockAttnArgs args = Block(1, 4, 1, 1, 8);
  args.window = 3;
  Run(args);
  const vt::Tensor before = t_.Copy(args.out);
  args.k_ctx.as<float>()[1 * 8] += 5;
  args.v_ctx.as<float>()[1 * 8] += 5;
  Run(args);
  EXPECT_TRUE(SameBits(before, args.out));
  args.v_ctx.as<float>()[2 * 8] += 5;
  Run(args);
  EXPECT_FALSE(SameBits(before, args.out));
}

TEST_F(AttentionOps, PagedContextHasTheBitsOfTheContiguousOne) {
  for (const int page_size : {1, 4, 16}) {
    vt::DFlashBlockAttnArgs args = Block(5, 59);
    args.window = 40;
    Run(args);
    const int64_t pages = (59 + page_size - 1) / page_size;
    const int64_t row = args.k_ctx.dim(1) * args.k_ctx.dim(2);
    std::vector<int32_t> table(static_cast<size_t>(pages));
    std::iota(table.begin(), table.end(), 1);  // physical page 0 stays unused
    std::shuffle(table.begin(), table.end(), t_.random());
    vt::DFlashBlockAttnArgs paged = args;
    paged.k_ctx = t_.Random(kF32, {(pages + 1) * page_size, 2, 20});
    paged.v_ctx = t_.Random(kF32, {(pages + 1) * page_size, 2, 20});
    paged.out = t_.Empty(kF32, {5, 6, 20});
    paged.pages = t_.Ints(table);
    paged.page_size = page_size;
    for (int64_t j = 0; j < 59; ++j) {
      const int64_t to = table[static_cast<size_t>(j / page_size)] * int64_t{page_size} + j % page_size;
      for (int64_t c = 0; c < row; ++c) {
        paged.k_ctx.as<float>()[to * row + c] = args.k_ctx.as<float>()[j * row + c];
        paged.v_ctx.as<float>()[to * row + c] = args.v_ctx.as<float>()[j * row + c];
      }
    }
    Run(paged);
    EXPECT_TRUE(Near(paged.out, reference::DFlashBlockAttn(paged), 1e-5));
    EXPECT_TRUE(SameBits(args.out, paged.out));
  }
}

TEST_F(AttentionOps, RefusesAContextThatDoesNotFit) {
  vt::DFlashBlockAttnArgs args = Block(2, 8);
  args.start = t_.Ints({14});
  EXPECT_THROW(Run(args), std::logic_error);
  args.start = t_.Ints({8});
  args.k_ctx = t_.Random(kF32, {12, 2, 20});
  args.v_ctx = t_.Random(kF32, {12, 2, 20});
  args.page_size = 4;
  args.pages = t_.Ints({0, 3});
  EXPECT_THROW(Run(args), std::logic_error) << "physical page 3 of 3";
}

}  // namespace
}  // namespace testing_support
