// What only a device does: a kernel cannot throw, so a bad value leaves a mark that the host refuses later.
#include <cmath>

#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class DeviceRowOps : public DeviceOps {};

TEST_F(DeviceRowOps, AnIndexOutsideTheTableReadsAndWritesNothing) {
  for (const int32_t id : {-1, 11}) {
    const vt::EmbeddingArgs embedding = {
        .table = t_.Random(kBf16, {11, 4}), .ids = t_.Ints({id, 10}), .out = t_.Random(kF32, {2, 4})};
    Run(embedding);
    EXPECT_TRUE(std::isnan(embedding.out.as<float>()[0]));
    EXPECT_FALSE(std::isnan(embedding.out.as<float>()[4]));
    const vt::IndexSelectArgs select = {
        .src = t_.RandomInts({11, 3}, 9), .index = t_.Ints({id}), .out = t_.RandomInts({1, 3}, 9)};
    Run(select);
    EXPECT_EQ(Ids(select.out), (std::vector<int32_t>{-1, -1, -1}));
    const vt::IndexCopyArgs copy = {
        .src = t_.Random(kF32, {1, 3}), .index = t_.Ints({id}), .dst = t_.Random(kF32, {11, 3})};
    const vt::Tensor before = t_.Copy(copy.dst);
    Run(copy);
    EXPECT_TRUE(SameBits(before, copy.dst));
  }
}

}  // namespace
}  // namespace testing_support
