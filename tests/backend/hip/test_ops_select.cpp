// What only a device does: a kernel cannot throw, so a bad value leaves a mark that the host refuses later.
#include <limits>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class DeviceSelectOps : public DeviceOps {};

TEST_F(DeviceSelectOps, ANanAnywhereGivesNoToken) {
  for (const int64_t at : {0, 1, 40, 4000}) {
    const vt::Tensor x = t_.Random(kF32, {1, 5000}, 1, 1);
    x.as<float>()[at] = std::numeric_limits<float>::quiet_NaN();
    const vt::ArgMaxArgs args = {.x = x, .out = t_.Ints({7})};
    Run(args);
    EXPECT_EQ(Ids(args.out)[0], -1);
    const vt::TopKPairsArgs top = {.x = x, .values = t_.Empty(kF32, {1, 3}), .ids = t_.Empty(kI32, {1, 3})};
    Run(top);
    EXPECT_EQ(Ids(top.ids)[0], -1);
  }
}

}  // namespace
}  // namespace testing_support
