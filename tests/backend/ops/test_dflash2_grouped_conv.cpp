#include <algorithm>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class GroupedConv : public DeviceOps {};

TEST_F(GroupedConv, GroupedConvStaysInItsBlock) {
  for (const vt::DType type : {kF32, kBf16}) {
    for (const int64_t taps : {1, 2, 3}) {
      for (const int64_t rows : {1, 2, 8, 16}) {
        for (const int side : {0, 1}) {
          for (const bool residual : {false, true}) {
            vt::DFlashGroupedConvArgs args = {.y = t_.Random(kF32, {rows, 42}),
                                              .base = t_.Random(type, {2, taps, 42}),
                                              .delta = t_.Random(kF32, {rows, 2, taps, 6}),
                                              .residual = {},
                                              .out = t_.Random(kF32, {rows, 42}),
                                              .side = side};
            if (residual) args.residual = args.out;  // in place
            const reference::Values want = reference::DFlashGroupedConv(args);
            Run(args);
            EXPECT_TRUE(Near(args.out, want, 1e-6)) << taps << " taps, " << rows << " rows, side " << side;
          }
        }
      }
    }
  }
}

// The first taps - 1 rows of a block see only their own block: what stands before y in memory is not read.
TEST_F(GroupedConv, NothingBeforeTheBlockIsRead) {
  const vt::Tensor before_and_y = t_.Random(kF32, {5, 30});
  std::fill_n(before_and_y.as<float>(), 2 * 30, std::numeric_limits<float>::quiet_NaN());
  const vt::DFlashGroupedConvArgs args = {.y = before_and_y.Rows(2, 3),
                                          .base = t_.Random(kBf16, {2, 3, 30}),
                                          .delta = t_.Random(kF32, {3, 2, 3, 5}),
                                          .residual = {},
                                          .out = t_.Empty(kF32, {3, 30}),
                                          .side = 1};
  Run(args);
  EXPECT_TRUE(Near(args.out, reference::DFlashGroupedConv(args), 1e-6));
}

}  // namespace
}  // namespace testing_support
