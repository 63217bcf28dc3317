// What only a device does: a kernel cannot throw, so a bad value leaves a mark that the host refuses later.
#include <limits>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class DevicePathWalk : public DeviceOps {};

TEST_F(DevicePathWalk, ANanOnThePathGivesNoTokenFromThereOn) {
  const vt::PathWalkArgs args = {.edges = t_.Random(kF32, {3, 1, 1}),
                                 .ids = t_.Ints({7, 8, 9}).Reshape({3, 1}),
                                 .drafted = t_.Empty(kI32, {3})};
  args.edges.as<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  Run(args);
  EXPECT_EQ(Ids(args.drafted), (std::vector<int32_t>{7, -1, -1}));
}

}  // namespace
}  // namespace testing_support
