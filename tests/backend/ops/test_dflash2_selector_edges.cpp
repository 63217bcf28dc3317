#include <cmath>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class SelectorEdges : public DeviceOps {};

TEST_F(SelectorEdges, SelectorEdgesOfEveryDtype) {
  for (const vt::DType p : {kF32, kBf16}) {
    for (const vt::DType s : {kF32, kBf16}) {
      for (const int64_t rank : {1, 19, 32, 256, 1100}) {
        const vt::SelectorEdgesArgs args = {.values = t_.Random(kF32, {5, 6}),
                                            .ids = t_.RandomInts({5, 6}, 50),
                                            .hidden = t_.Random(kF32, {5, rank}),
                                            .predecessor = t_.Random(p, {50, rank}),
                                            .successor = t_.Random(s, {50, rank}),
                                            .anchor = t_.Ints({49}),
                                            .edges = t_.Empty(kF32, {5, 6, 6})};
        Run(args);
        EXPECT_TRUE(Near(args.edges, reference::SelectorEdges(args), 5e-6));
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

}  // namespace
}  // namespace testing_support
