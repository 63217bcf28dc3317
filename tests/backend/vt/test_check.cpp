#include "backend/vt/check.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace {

std::byte memory[64];  // never read: a check looks at shapes only

vt::Tensor T(std::initializer_list<int64_t> shape, vt::DType type = vt::DType::f32) {
  return vt::MakeTensor(memory, type, shape);
}
vt::Tensor I(std::initializer_list<int64_t> shape) { return T(shape, vt::DType::i32); }

template <class Args>
std::string Refusal(const Args& args) {
  try {
    vt::Check(args);
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return "";
}

TEST(Check, NamesTheOpAndEveryWrongTensorAtOnce) {
  EXPECT_EQ(Refusal(vt::EmbeddingArgs{.table = T({9, 4}), .ids = T({2}), .out = T({2, 5})}),
            "op Embedding: ids is [2] f32, expected [*] i32; out is [2, 5] f32, expected [2, 4] f32");
  EXPECT_EQ(Refusal(vt::ArgMaxArgs{.x = {}, .out = I({1})}).substr(0, 30), "op ArgMax: x has no data; out ");
}

TEST(Check, StridedTensorsPassOnlyWhereTheContractSaysSo) {
  const vt::Tensor strided = T({4, 12}).Cols(0, 6);
  EXPECT_EQ(Refusal(vt::MatMulArgs{.x = strided, .w = T({3, 6}), .bias = {}, .out = T({4, 9}).Cols(1, 3)}),
            "");
  EXPECT_EQ(Refusal(vt::MatMulArgs{.x = T({4, 6}), .w = T({3, 12}).Cols(0, 6), .bias = {}, .out = T({4, 3})}),
            "op MatMul: w [3, 6] f32 is not contiguous");
  EXPECT_EQ(Refusal(vt::SiluMulArgs{.gate_up = strided, .out = T({4, 3})}),
            "op SiluMul: gate_up [4, 6] f32 is not contiguous");
}

TEST(Check, OptionalTensorsMayBeAbsentOnlyWhereTheContractSaysSo) {
  vt::AddRmsNormArgs add = {.h = T({2, 4}), .delta = T({2, 4}), .weight = {}, .out = {}};
  EXPECT_EQ(Refusal(add), "");
  add.out = T({2, 4});
  EXPECT_EQ(Refusal(add), "op AddRmsNorm: weight has no data; out must be neither h nor delta");
  EXPECT_EQ(Refusal(vt::SigmoidGateArgs{.x = T({1, 2, 3}), .gate = {}}), "op SigmoidGate: gate has no data");
}

TEST(Check, GroupsHeadsBlocksAndLimits) {
  vt::AttentionArgs attention = {
      .q = T({2, 6, 8}), .k = T({9, 4, 8}), .v = T({9, 4, 8}), .positions = I({2}), .out = T({2, 6, 8})};
  EXPECT_EQ(Refusal(attention), "op Attention: query heads are not a multiple of KV heads");
  attention.k = attention.v = T({9, 3, 8});
  EXPECT_EQ(Refusal(attention), "");
  vt::CausalConv1dArgs conv = {.x = T({17, 5}), .weight = T({5, 4}), .state = T({3, 5}), .out = T({17, 5})};
  conv.out.data += 16;
  EXPECT_EQ(Refusal(conv), "");
  conv.hold = true;
  EXPECT_EQ(Refusal(conv), "op CausalConv1d: a block has more than 16 rows");
  EXPECT_EQ(Refusal(vt::CommitConvArgs{.x = T({2, 17, 5}), .states = T({2, 3, 4}), .last = I({1})}),
            "op CommitConv: states is [2, 3, 4] f32, expected [2, *, 5] f32; a block has more than 16 rows");
  EXPECT_EQ(Refusal(vt::CommitDeltaArgs{.k = T({2, 3, 2, 8}),
                                        .changes = T({2, 3, 5, 4}),
                                        .decays = T({2, 3, 5}),
                                        .states = T({2, 5, 8, 4}),
                                        .last = I({1})}),
            "op CommitDelta: value heads are not a multiple of key heads");
  EXPECT_EQ(Refusal(vt::TopKPairsArgs{.x = T({1, 9}), .values = T({1, 10}), .ids = I({1, 10})}),
            "op TopKPairs: k is larger than the vocabulary or than 64");
  EXPECT_EQ(Refusal(vt::GatedRmsNormArgs{
                .x = T({2, 1, 513}), .z = T({2, 1, 513}), .weight = T({513}), .out = T({2, 1, 513})}),
            "op GatedRmsNorm: a head of x is larger than 512");
  EXPECT_EQ(Refusal(vt::RopeArgs{.x = T({1, 2, 6}), .positions = I({1}), .inv_freq = T({4})}),
            "op Rope: inv_freq is longer than half a head");
}

TEST(Check, ADraftBlockHasItsPagesAndItsRows) {
  vt::DFlashBlockAttnArgs args = {.q = T({2, 4, 8}),
                                  .k_block = T({2, 2, 8}),
                                  .v_block = T({2, 2, 8}),
                                  .k_ctx = T({10, 2, 8}),
                                  .v_ctx = T({10, 2, 8}),
                                  .pages = {},
                                  .start = I({1}),
                                  .out = T({2, 4, 8})};
  EXPECT_EQ(Refusal(args), "");
  args.pages = I({3});
  args.page_size = 4;
  EXPECT_EQ(Refusal(args), "op DFlashBlockAttn: k_ctx is not a whole number of pages");
  args.page_size = 5;
  EXPECT_EQ(Refusal(args), "");
  args.window = -1;
  EXPECT_EQ(Refusal(args), "op DFlashBlockAttn: window is negative");
}

TEST(Check, SamplingNeedsItsNumbers) {
  const vt::Draws draws = {.seed = I({3}), .position = I({1})};
  vt::RandomSampleArgs sample = {.x = T({2, 9}).Cols(0, 5), .out = I({2}), .draws = draws};
  EXPECT_EQ(Refusal(sample), "");
  sample.blocks = 2000;
  EXPECT_EQ(Refusal(sample), "op RandomSample: blocks is not in 0..1024");
  sample.draws = {};
  EXPECT_EQ(Refusal(sample),
            "op RandomSample: draws.seed has no data; draws.position has no data; blocks is not in 0..1024");
  EXPECT_EQ(Refusal(vt::ApplyTemperatureArgs{.x = T({2, 5}), .out = T({2, 5}), .temperature = 0}),
            "op ApplyTemperature: temperature is not above 0");
  EXPECT_EQ(Refusal(vt::ApplyTopKTopPArgs{.x = T({2, 5}), .top_k = -1, .top_p = 1.5F}),
            "op ApplyTopKTopP: top_k is negative; top_p is not in 0..1");
  EXPECT_EQ(Refusal(vt::SoftmaxArgs{.x = T({1, 300000}), .out = T({1, 300000})}),
            "op Softmax: a row is larger than 2^18");
  vt::PathWalkArgs walk = {.edges = T({2, 4, 4}), .ids = I({2, 4}), .drafted = I({2})};
  EXPECT_EQ(Refusal(walk), "") << "greedy";
  walk.q = T({2, 4});
  walk.draws = draws;
  EXPECT_EQ(Refusal(walk), "op PathWalk: temperature is not above 0");
  vt::RejectionSampleArgs reject = {.block = I({3}),
                                    .p = T({2, 9}),
                                    .q = T({2, 4}),
                                    .ids = I({2, 4}),
                                    .bonus = I({1}),
                                    .target = I({3}),
                                    .draws = draws};
  EXPECT_EQ(Refusal(reject), "");
  reject.p = T({3, 9});
  EXPECT_EQ(Refusal(reject), "op RejectionSample: p is [3, 9] f32, expected [2, *] f32");
  reject.block = I({1});
  EXPECT_NE(Refusal(reject).find("a block has less than two rows"), std::string::npos);
}

}  // namespace
