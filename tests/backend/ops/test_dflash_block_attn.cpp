#include <cmath>
#include <numeric>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class DraftBlockAttention : public DeviceOps {
 protected:
  vt::DFlashBlockAttnArgs Block(int64_t rows, int32_t start, int64_t heads = 6, int64_t kv = 2,
                                int64_t d = 20) {
    return {.q = t_.Strided({rows, heads, d}, 4),
            .k_block = t_.Strided({rows, kv, d}, rows % 4 + 1),
            .v_block = t_.Strided({rows, kv, d}),
            .k_ctx = t_.Random(kF32, {start + 5, kv, d}),
            .v_ctx = t_.Random(kF32, {start + 5, kv, d}),
            .pages = {},
            .start = t_.Ints({start}),
            .out = t_.Empty(kF32, {rows, heads, d}),
            .scale = 1 / std::sqrt(static_cast<float>(d))};
  }
};

TEST_F(DraftBlockAttention, DraftBlockOverContextAndItself) {
  for (const int64_t rows : {1, 7, 16}) {
    for (const int32_t start : {0, 1, 63, 64, 100}) {
      for (const bool causal : {false, true}) {
        for (const int window : {0, 1, 8, 64, 100, 101, 500}) {
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

TEST_F(DraftBlockAttention, WindowEdgeIsExclusive) {
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

TEST_F(DraftBlockAttention, PagedContextHasTheBitsOfTheContiguousOne) {
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

TEST_F(DraftBlockAttention, HeadsOfTheRealSize) {
  vt::DFlashBlockAttnArgs args = Block(8, 150, 8, 2, 128);
  args.window = 90;
  Run(args);
  EXPECT_TRUE(Near(args.out, reference::DFlashBlockAttn(args), 1e-5));
}

}  // namespace
}  // namespace testing_support
