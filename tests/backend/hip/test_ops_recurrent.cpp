// What only a device does: a kernel cannot throw, so a bad value leaves a mark that the host refuses later.
#include <cmath>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class DeviceRecurrentOps : public DeviceOps {};

TEST_F(DeviceRecurrentOps, ChunksOfAnUnknownSlotAreNotANumber) {
  const vt::GatedDeltaRuleArgs args = {.q = t_.Random(kF32, {20, 1, 16}),
                                       .k = t_.Random(kF32, {20, 1, 16}),
                                       .v = t_.Random(kF32, {20, 1, 16}),
                                       .a = t_.Random(kF32, {20, 1}),
                                       .b = t_.Random(kF32, {20, 1}),
                                       .a_log = t_.Random(kF32, {1}),
                                       .dt_bias = t_.Random(kF32, {1}),
                                       .states = t_.Random(kF32, {17, 1, 16, 16}),
                                       .slot = t_.Ints({17}),
                                       .out = t_.Random(kF32, {20, 1, 16})};
  Run(args);
  EXPECT_TRUE(std::isnan(args.out.as<float>()[0]));
  EXPECT_TRUE(std::isnan(args.states.as<float>()[0]));
}

}  // namespace
}  // namespace testing_support
