#include <cmath>

#include "tests/backend/hip/device_ops.h"

namespace testing_support {
namespace {

class SelectorEdges : public DeviceOps {};

TEST_F(SelectorEdges, SelectorEdgesOfEveryDtype) {
  for (const vt::DType p : {kF32, kBf16}) {
    for (const vt::DType s : {kF32, kBf16}) {
      for (const int64_t rank : {1, 19, 256, 1100}) {
        const vt::SelectorEdgesArgs args = {.values = t_.Random(kF32, {5, 6}),
                                            .ids = t_.RandomInts({5, 6}, 50),
                                            .hidden = t_.Random(kF32, {5, rank}),
                                            .predecessor = t_.Random(p, {50, rank}),
                                            .successor = t_.Random(s, {50, rank}),
                                            .anchor = t_.Ints({49}),
                                            .edges = t_.Empty(kF32, {5, 6, 6})};
        Run(args);
        EXPECT_TRUE(Near(args.edges, reference::SelectorEdges(args), 3e-6));
        EXPECT_TRUE(std::isnan(args.edges.as<float>()[6])) << "only the anchor's edges of row 0 are written";
      }
    }
  }
}

TEST_F(SelectorEdges, ManyCandidates) {
  for (const int64_t k : {1, 16, 17, 64}) {
    const vt::SelectorEdgesArgs args = {.values = t_.Random(kF32, {3, k}),
                                        .ids = t_.RandomInts({3, k}, 90),
                                        .hidden = t_.Random(kF32, {3, 40}),
                                        .predecessor = t_.Random(kBf16, {90, 40}),
                                        .successor = t_.Random(kBf16, {90, 40}),
                                        .anchor = t_.Ints({5}),
                                        .edges = t_.Empty(kF32, {3, k, k})};
    Run(args);
    EXPECT_TRUE(Near(args.edges, reference::SelectorEdges(args), 3e-6)) << k;
  }
}

// Row t's edges start from row t - 1's candidates, not from its own, and use row t's hidden.
TEST_F(SelectorEdges, AnUnknownTokenGivesNanEdgesOfItsOwnAlone) {
  const vt::SelectorEdgesArgs args = {.values = t_.Random(kF32, {2, 2}),
                                      .ids = t_.Ints({3, 1, 0, 2}).Reshape({2, 2}),
                                      .hidden = t_.Random(kF32, {2, 5}),
                                      .predecessor = t_.Random(kF32, {3, 5}),
                                      .successor = t_.Random(kF32, {3, 5}),
                                      .anchor = t_.Ints({0}),
                                      .edges = t_.Random(kF32, {2, 2, 2})};
  Run(args);
  const auto* edges = args.edges.as<float>();
  EXPECT_TRUE(std::isnan(edges[0]));   // anchor to token 3
  EXPECT_FALSE(std::isnan(edges[1]));  // anchor to token 1
  EXPECT_TRUE(std::isnan(edges[4]));   // from token 3
  EXPECT_FALSE(std::isnan(edges[6]));  // from token 1
}

}  // namespace
}  // namespace testing_support
