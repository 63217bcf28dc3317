#include <cmath>
#include <limits>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class PathWalk : public DeviceOps {};

TEST_F(PathWalk, PathWalkFollowsTheChosenCandidate) {
  for (const int64_t k : {1, 2, 16, 64}) {
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

TEST_F(PathWalk, OnlyTheAnchorsEdgesOfRowZeroAreRead) {
  const vt::PathWalkArgs args = {.edges = t_.Random(kF32, {3, 4, 4}),
                                 .ids = t_.RandomInts({3, 4}, 1000),
                                 .drafted = t_.Empty(kI32, {3})};
  const vt::Tensor unwritten = args.edges.At(0).Rows(1, 3);
  std::fill_n(unwritten.as<float>(), 12, std::numeric_limits<float>::quiet_NaN());
  Run(args);
  EXPECT_EQ(Ids(args.drafted), reference::PathWalk(args));
}

}  // namespace
}  // namespace testing_support
