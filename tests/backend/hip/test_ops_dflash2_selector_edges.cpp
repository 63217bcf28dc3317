// What only a device does: a kernel cannot throw, so a bad value leaves a mark that the host refuses later.
#include <cmath>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class DeviceSelectorEdges : public DeviceOps {};

// Row t's edges start from row t - 1's candidates, not from its own, and use row t's hidden.
TEST_F(DeviceSelectorEdges, AnUnknownTokenGivesNanEdgesOfItsOwnAlone) {
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
