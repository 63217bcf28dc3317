#include <stdexcept>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class Accept : public DeviceOps {
 protected:
  struct Case {
    std::vector<int32_t> block, target, stop_ids;
    int32_t position, limit;
  };

  void Check(const Case& c, int32_t accepted, const std::vector<int32_t>& tokens) {
    const vt::AcceptGreedyArgs args = {.block = t_.Ints(c.block),
                                       .target = t_.Ints(c.target),
                                       .stop_ids = c.stop_ids.empty() ? vt::Tensor{} : t_.Ints(c.stop_ids),
                                       .limit = t_.Ints({c.limit}),
                                       .position = t_.Ints({c.position}),
                                       .last = t_.Ints({-1}),
                                       .newest = t_.Ints({-1}),
                                       .result = t_.Empty(kI32, {18})};
    const reference::AcceptResult want = reference::AcceptGreedy(args);
    Run(args);
    const std::vector<int32_t> result = Ids(args.result);
    const std::vector<int32_t> got(result.begin() + 2, result.begin() + 2 + result[1]);
    EXPECT_EQ(result[0], accepted);
    EXPECT_EQ(got, tokens);
    EXPECT_EQ(want.accepted, accepted);
    EXPECT_EQ(want.tokens, tokens);
    EXPECT_EQ(Ids(args.position)[0], want.position);
    EXPECT_EQ(Ids(args.last)[0], want.last);
    EXPECT_EQ(Ids(args.newest)[0], want.newest);
    EXPECT_EQ(want.newest, tokens.back());
    EXPECT_EQ(want.last, static_cast<int32_t>(tokens.size()) - 1);
    EXPECT_EQ(want.position, c.position + static_cast<int32_t>(tokens.size()));
  }
};

TEST_F(Accept, NoneSomeAll) {
  Check({{5, 1, 2, 3}, {9, 2, 3, 4}, {}, 10, 100}, 0, {9});
  Check({{5, 1, 2, 3}, {1, 2, 8, 4}, {}, 10, 100}, 2, {1, 2, 8});
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {}, 10, 100}, 3, {1, 2, 3, 4});
  Check({{5, 1, 2, 3}, {9, 2, 3, 4}, {}, 0, 2}, 0, {9});
  Check({{5}, {7}, {}, 10, 100}, 0, {7});  // a plain step
}

TEST_F(Accept, AMatchAfterAMismatchDoesNotCount) {
  Check({{5, 1, 2, 3}, {1, 9, 3, 4}, {}, 10, 100}, 1, {1, 9});
}

TEST_F(Accept, TheLimitCutsWhatWasAccepted) {
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {}, 10, 14}, 3, {1, 2, 3});
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {}, 10, 15}, 3, {1, 2, 3, 4});
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {}, 10, 12}, 3, {1});
}

TEST_F(Accept, TheFirstStopTokenEndsTheRoundAndIsKept) {
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {2}, 10, 100}, 3, {1, 2});
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {77, 4, 3}, 10, 100}, 3, {1, 2, 3});
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {1}, 10, 100}, 3, {1});
  Check({{5, 1, 2, 3}, {9, 2, 3, 4}, {2}, 10, 100}, 0, {9});    // a stop beyond the accepted part
  Check({{5, 1, 2, 3}, {1, 2, 3, 4}, {3}, 10, 13}, 3, {1, 2});  // the limit comes first
}

TEST_F(Accept, SixteenRows) {
  const std::vector<int32_t> block = Ids(Ascending(0, 16));
  const std::vector<int32_t> target = Ids(Ascending(1, 16));
  Check({block, target, {}, 0, 1000}, 15, target);
}

// The cpu refuses; a kernel cannot, and must not leave the last round's row for a commit.
TEST_F(Accept, WithoutRoomNoRowCounts) {
  const vt::AcceptGreedyArgs args = {.block = t_.Ints({5, 1}),
                                     .target = t_.Ints({1, 2}),
                                     .stop_ids = {},
                                     .limit = t_.Ints({11}),
                                     .position = t_.Ints({10}),
                                     .last = t_.Ints({1}),
                                     .newest = t_.Ints({-1}),
                                     .result = t_.Empty(kI32, {18})};
  if (OnCpu()) {
    EXPECT_THROW(Run(args), std::logic_error);
    return;
  }
  Run(args);
  EXPECT_LT(Ids(args.last)[0], 0);
  EXPECT_EQ(Ids(args.position)[0], 10);
}

TEST_F(Accept, NewestMayBeTheAnchorsPlace) {
  const vt::Tensor block = t_.Ints({5, 1, 2});
  const vt::Tensor position = t_.Ints({10});
  Run(vt::AcceptGreedyArgs{.block = block,
                           .target = t_.Ints({1, 2, 3}),
                           .stop_ids = {},
                           .limit = t_.Ints({100}),
                           .position = position,
                           .last = t_.Ints({-1}),
                           .newest = block.Rows(0, 1),
                           .result = t_.Empty(kI32, {18})});
  EXPECT_EQ(Ids(block), (std::vector<int32_t>{3, 1, 2}));
  EXPECT_EQ(Ids(position)[0], 13);
}

}  // namespace
}  // namespace testing_support
