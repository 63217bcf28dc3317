// What the cpu's kernels refuse by name; a device cannot (tests/backend/hip/test_ops_*.cpp).
#include <limits>
#include <stdexcept>

#include "backend/vt/error.h"
#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

class CpuRefuses : public DeviceOps {
 protected:
  vt::GatedDeltaRuleArgs Delta(int64_t rows) {
    return {.q = t_.Random(kF32, {rows, 1, 4}),
            .k = t_.Random(kF32, {rows, 1, 4}),
            .v = t_.Random(kF32, {rows, 1, 4}),
            .a = t_.Random(kF32, {rows, 1}),
            .b = t_.Random(kF32, {rows, 1}),
            .a_log = t_.Random(kF32, {1}),
            .dt_bias = t_.Random(kF32, {1}),
            .state = t_.Random(kF32, {1, 4, 4}),
            .out = t_.Empty(kF32, {rows, 1, 4}),
            .changes = {},
            .decays = {}};
  }
};

TEST_F(CpuRefuses, WeightsOfAnotherWidthByName) {
  try {
    Run(vt::MatMulArgs{.x = t_.Random(kF32, {2, 5}),
                       .w = t_.Random(kBf16, {3, 6}),
                       .bias = {},
                       .out = t_.Empty(kF32, {2, 4})});
    FAIL() << "accepted";
  } catch (const std::logic_error& e) {
    EXPECT_STREQ(
        e.what(),
        "op MatMul: w is [3, 6] bf16, expected [*, 5] f32 or bf16; out is [2, 4] f32, expected [2, 3] f32");
  }
}

TEST_F(CpuRefuses, AnIdOutsideTheTable) {
  for (const int32_t id : {-1, 11}) {
    EXPECT_THROW(Run(vt::EmbeddingArgs{
                     .table = t_.Random(kF32, {11, 4}), .ids = t_.Ints({id}), .out = t_.Empty(kF32, {1, 4})}),
                 std::logic_error);
  }
}

TEST_F(CpuRefuses, APositionBeyondTheCache) {
  EXPECT_THROW(Run(vt::AttentionArgs{.q = t_.Random(kF32, {1, 1, 4}),
                                     .k = t_.Random(kF32, {3, 1, 4}),
                                     .v = t_.Random(kF32, {3, 1, 4}),
                                     .positions = t_.Ints({3}),
                                     .out = t_.Empty(kF32, {1, 1, 4})}),
               std::logic_error);
}

TEST_F(CpuRefuses, AContextThatDoesNotFit) {
  vt::DFlashBlockAttnArgs args = {.q = t_.Random(kF32, {2, 6, 20}),
                                  .k_block = t_.Random(kF32, {2, 2, 20}),
                                  .v_block = t_.Random(kF32, {2, 2, 20}),
                                  .k_ctx = t_.Random(kF32, {13, 2, 20}),
                                  .v_ctx = t_.Random(kF32, {13, 2, 20}),
                                  .pages = {},
                                  .start = t_.Ints({14}),
                                  .out = t_.Empty(kF32, {2, 6, 20}),
                                  .scale = 0.2F};
  EXPECT_THROW(Run(args), std::logic_error);
  args.start = t_.Ints({8});
  args.k_ctx = t_.Random(kF32, {12, 2, 20});
  args.v_ctx = t_.Random(kF32, {12, 2, 20});
  args.page_size = 4;
  args.pages = t_.Ints({0, 3});
  EXPECT_THROW(Run(args), std::logic_error) << "physical page 3 of 3";
}

TEST_F(CpuRefuses, ToHoldMoreRowsThanABlockHas) {
  vt::GatedDeltaRuleArgs args = Delta(17);
  Run(args);
  args.changes = t_.Empty(kF32, {17, 1, 4});
  args.decays = t_.Empty(kF32, {17, 1});
  EXPECT_THROW(Run(args), std::logic_error);
}

TEST_F(CpuRefuses, ToCommitMoreRowsThanABlockHas) {
  try {
    Run(vt::CommitConvArgs{
        .x = t_.Random(kF32, {1, 3, 4}), .states = t_.Random(kF32, {1, 3, 4}), .last = t_.Ints({3})});
    FAIL() << "accepted";
  } catch (const std::logic_error& e) {
    EXPECT_STREQ(e.what(), "op CommitConv: last is 3 in a block of 3 rows");
  }
  EXPECT_THROW(Run(vt::CommitDeltaArgs{.k = t_.Random(kF32, {1, 3, 1, 4}),
                                       .changes = t_.Random(kF32, {1, 3, 1, 4}),
                                       .decays = t_.Random(kF32, {1, 3, 1}),
                                       .states = t_.Random(kF32, {1, 1, 4, 4}),
                                       .last = t_.Ints({3})}),
               std::logic_error);
}

TEST_F(CpuRefuses, AnUnknownTokenInSelectorEdges) {
  EXPECT_THROW(Run(vt::SelectorEdgesArgs{.values = t_.Random(kF32, {1, 1}),
                                         .ids = t_.Ints({3}).Reshape({1, 1}),
                                         .hidden = t_.Random(kF32, {1, 2}),
                                         .predecessor = t_.Random(kF32, {3, 2}),
                                         .successor = t_.Random(kF32, {3, 2}),
                                         .anchor = t_.Ints({0}),
                                         .edges = t_.Empty(kF32, {1, 1, 1})}),
               std::logic_error);
}

TEST_F(CpuRefuses, ANanByNameWhereverItStands) {
  for (const int64_t at : {0, 1, 40}) {
    const vt::Tensor x = t_.Random(kF32, {1, 41}, 1, 1);
    x.as<float>()[at] = std::numeric_limits<float>::quiet_NaN();
    try {
      Run(vt::ArgMaxArgs{.x = x, .out = t_.Empty(kI32, {1})});
      FAIL() << "accepted";
    } catch (const vt::EnvironmentError& e) {
      EXPECT_STREQ(e.what(), "op ArgMax: row 0 holds a NaN; the checkpoint or the device is broken");
    }
    EXPECT_THROW(
        Run(vt::TopKPairsArgs{.x = x, .values = t_.Empty(kF32, {1, 3}), .ids = t_.Empty(kI32, {1, 3})}),
        vt::EnvironmentError);
  }
}

}  // namespace
}  // namespace testing_support
