#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class SelectOps : public DeviceOps {
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
  const vt::ArgMaxArgs args = {.x = t_.Strided({17, 5203}), .out = t_.Empty(kI32, {17})};
  for (int64_t r = 0; r < 17; ++r) {
    for (const int64_t i : {r + 3, r + 60, int64_t{5202}}) args.x.as<float>()[r * args.x.step(0) + i] = 2;
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

TEST_F(SelectOps, TopKAgreesWithAFullSort) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{1, 300},
                             {16, 2048},
                             {16, 2049},
                             {16, 40000},
                             {40, 300},
                             {64, 5000},
                             {64, 70001}}) {
    for (const float multiplier : {1.0F, -1.5F}) {
      vt::TopKPairsArgs args = TopK(t_.Strided({5, n}), k);
      // many equal values: a coarse grid
      HostTensors::ForEach(
          args.x, [&](int64_t i) { args.x.as<float>()[i] = std::round(args.x.as<float>()[i] * 2000); });
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

}  // namespace
}  // namespace testing_support
