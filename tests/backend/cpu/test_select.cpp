#include <limits>
#include <numeric>

#include "tests/backend/cpu/cpu_ops.h"

namespace testing_support {
namespace {

std::vector<int32_t> Ids(const vt::Tensor& t) {
  const auto* first = t.as<int32_t>();
  return {first, first + t.count()};
}

class SelectOps : public CpuOps {
 protected:
  vt::TopKPairsArgs TopK(const vt::Tensor& x, int64_t k) {
    return {.x = x, .values = t_.Empty(kF32, {x.dim(0), k}), .ids = t_.Empty(kI32, {x.dim(0), k})};
  }
  vt::Tensor Row(const std::vector<float>& values) {
    vt::Tensor x = t_.Empty(kF32, {1, static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), x.as<float>());
    return x;
  }
};

TEST_F(SelectOps, ArgMaxTakesTheLowestOfEquals) {
  const vt::ArgMaxArgs args = {.x = t_.Strided({17, 203}), .out = t_.Empty(kI32, {17})};
  for (int64_t r = 0; r < 17; ++r) {
    for (const int64_t i : {r + 3, r + 60, int64_t{202}}) args.x.as<float>()[r * args.x.step(0) + i] = 2;
  }
  Run(args);
  EXPECT_EQ(Ids(args.out), reference::ArgMax(args));
  EXPECT_EQ(Ids(args.out)[5], 8);
}

TEST_F(SelectOps, ArgMaxOfNegativesInfinitiesAndOne) {
  const float inf = std::numeric_limits<float>::infinity();
  const vt::Tensor out = t_.Empty(kI32, {1});
  for (const auto& [values, want] : {std::pair<std::vector<float>, int32_t>{{-3, -1, -1}, 1},
                                     {{-inf, -inf}, 0},
                                     {{7}, 0},
                                     {{1, inf, inf}, 1},
                                     {{-0.0F, 0.0F}, 0}}) {
    Run(vt::ArgMaxArgs{.x = Row(values), .out = out});
    EXPECT_EQ(Ids(out)[0], want);
  }
}

TEST_F(SelectOps, ANanIsRefusedByNameWhereverItStands) {
  for (size_t at : {0, 1, 40}) {
    std::vector<float> values(41, 1.0F);
    values[at] = std::numeric_limits<float>::quiet_NaN();
    try {
      Run(vt::ArgMaxArgs{.x = Row(values), .out = t_.Empty(kI32, {1})});
      FAIL() << "accepted";
    } catch (const vt::EnvironmentError& e) {
      EXPECT_STREQ(e.what(), "op ArgMax: row 0 holds a NaN; the checkpoint or the device is broken");
    }
    EXPECT_THROW(Run(TopK(Row(values), 3)), vt::EnvironmentError);
  }
}

TEST_F(SelectOps, TopKAgreesWithAFullSort) {
  for (const int64_t k : {1, 2, 16, 40}) {
    for (const float multiplier : {1.0F, 0.37F, -1.5F}) {
      vt::TopKPairsArgs args = TopK(t_.Strided({9, 300}), k);
      // many equal values: a coarse grid
      HostTensors::ForEach(
          args.x, [&](int64_t i) { args.x.as<float>()[i] = std::round(args.x.as<float>()[i] * 20); });
      args.multiplier = multiplier;
      Run(args);
      const reference::TopKResult want = reference::TopKPairs(args);
      EXPECT_EQ(Ids(args.ids), want.ids);
      EXPECT_TRUE(Near(args.values, want.values, 1e-6));
    }
  }
}

TEST_F(SelectOps, TopKTakesTheWholeVocabularyAndOrdersItByIdWhenAllAreEqual) {
  const vt::TopKPairsArgs args = TopK(Row(std::vector<float>(40, -2)), 40);
  Run(args);
  std::vector<int32_t> want(40);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(Ids(args.ids), want);
}

TEST_F(SelectOps, SoftcapIsAppliedBeforeTheOrder) {
  // both saturate to the cap: the lower id comes first although its logit is smaller
  vt::TopKPairsArgs args = TopK(Row({0, 900, 1000, -5}), 2);
  args.softcap = 3;
  Run(args);
  EXPECT_EQ(Ids(args.ids), (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(Near(args.values, {3, 3}, 0));
  vt::TopKPairsArgs mild = TopK(t_.Random(kF32, {4, 100}, -30, 30), 5);
  mild.softcap = 15;
  mild.multiplier = 0.5F;
  Run(mild);
  EXPECT_EQ(Ids(mild.ids), reference::TopKPairs(mild).ids);
  EXPECT_TRUE(Near(mild.values, reference::TopKPairs(mild).values, 1e-6));
}

TEST_F(SelectOps, SelectorEdgesOfEveryDtype) {
  for (const vt::DType p : {kF32, kBf16}) {
    for (const vt::DType s : {kF32, kBf16}) {
      for (const int64_t rank : {1, 19, 32}) {
        const vt::SelectorEdgesArgs args = {.values = t_.Random(kF32, {5, 6}),
                                            .ids = t_.RandomInts({5, 6}, 50),
                                            .hidden = t_.Random(kF32, {5, rank}),
                                            .predecessor = t_.Random(p, {50, rank}),
                                            .successor = t_.Random(s, {50, rank}),
                                            .anchor = t_.Ints({49}),
                                            .edges = t_.Empty(kF32, {5, 6, 6})};
        Run(args);
        EXPECT_TRUE(Near(args.edges, reference::SelectorEdges(args), 2e-6));
        EXPECT_TRUE(std::isnan(args.edges.as<float>()[6])) << "only the anchor's edges of row 0 are written";
      }
    }
  }
}

TEST_F(SelectOps, SelectorEdgesRefuseAnUnknownToken) {
  EXPECT_THROW(Run(vt::SelectorEdgesArgs{.values = t_.Random(kF32, {1, 1}),
                                         .ids = t_.Ints({3}).Reshape({1, 1}),
                                         .hidden = t_.Random(kF32, {1, 2}),
                                         .predecessor = t_.Random(kF32, {3, 2}),
                                         .successor = t_.Random(kF32, {3, 2}),
                                         .anchor = t_.Ints({0}),
                                         .edges = t_.Empty(kF32, {1, 1, 1})}),
               std::logic_error);
}

TEST_F(SelectOps, PathWalkFollowsTheChosenCandidate) {
  for (const int64_t k : {1, 2, 16}) {
    const vt::PathWalkArgs args = {.edges = t_.Random(kF32, {7, k, k}),
                                   .ids = t_.RandomInts({7, k}, 1000),
                                   .drafted = t_.Empty(kI32, {7})};
    // rounded: ties go to the candidate of lower rank
    HostTensors::ForEach(args.edges, [&](int64_t i) {
      args.edges.as<float>()[i] = std::round(args.edges.as<float>()[i] * 3);
    });
    Run(args);
    EXPECT_EQ(Ids(args.drafted), reference::PathWalk(args));
  }
}

class Accept : public CpuOps {
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
                                       .slot = t_.Ints({-1}),
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
    EXPECT_EQ(Ids(args.slot)[0], want.slot);
    EXPECT_EQ(Ids(args.newest)[0], want.newest);
    EXPECT_EQ(want.newest, tokens.back());
    EXPECT_EQ(want.slot, static_cast<int32_t>(tokens.size()) - 1);
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
  std::vector<int32_t> block(16);
  std::iota(block.begin(), block.end(), 0);
  std::vector<int32_t> target(16);
  std::iota(target.begin(), target.end(), 1);
  Check({block, target, {}, 0, 1000}, 15, target);
}

}  // namespace
}  // namespace testing_support
