// What only a device does: a kernel cannot throw, so a bad value leaves a mark that the host refuses later.
#include <cmath>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class DeviceRecurrentOps : public DeviceOps {};

TEST_F(DeviceRecurrentOps, StatesAfterMoreRowsThanABlockHasAreNotANumber) {
  const vt::CommitConvArgs conv = {
      .x = t_.Random(kF32, {2, 3, 5}), .states = t_.Random(kF32, {2, 3, 5}), .last = t_.Ints({3})};
  Run(conv);
  const vt::CommitDeltaArgs delta = {.k = t_.Random(kF32, {2, 3, 1, 4}),
                                     .changes = t_.Random(kF32, {2, 3, 1, 4}),
                                     .decays = t_.Random(kF32, {2, 3, 1}),
                                     .states = t_.Random(kF32, {2, 1, 4, 4}),
                                     .last = t_.Ints({3})};
  Run(delta);
  for (const vt::Tensor& states : {conv.states, delta.states}) {
    for (int64_t layer = 0; layer < 2; ++layer) {
      EXPECT_TRUE(std::isnan(states.At(layer).as<float>()[0])) << layer;
    }
  }
}

}  // namespace
}  // namespace testing_support
