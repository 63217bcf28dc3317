#include "backend/model/loader.h"

#include <gmock/gmock.h>

#include <fstream>

#include "backend/vt/error.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/plain_backend.h"

namespace warmleg::model {
namespace {

using ::testing::ElementsAre;
using warmleg::testing::CheckpointFixture;
using warmleg::testing::kFlatDraft;
using warmleg::testing::kFlatTarget;
using warmleg::testing::kTinyDraft;
using warmleg::testing::kTinyTarget;
using warmleg::testing::PlainBackend;
using warmleg::testing::TempDir;

std::string Bytes(const vt::Tensor& t) { return {t.as<char>(), static_cast<size_t>(t.bytes())}; }
std::vector<int64_t> Shape(const vt::Tensor& t) { return {t.shape.begin(), t.shape.begin() + t.rank}; }

TEST(LoadTarget, FusesTheProjectionsOfTheShippedPair) {
  PlainBackend backend;
  LoadReport report;
  uint64_t last = 0, total = 0;
  const TargetWeights w = LoadTarget(kTinyTarget, backend, &report, [&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  });
  CheckpointFixture f = CheckpointFixture::Read(kTinyTarget);
  const std::string p = "model.language_model.layers.";
  const auto data = [&](const std::string& name) { return f.At(name).data; };
  ASSERT_EQ(w.layers.size(), 8u);
  const LinearAttentionWeights& linear = w.layers[1].linear;
  EXPECT_EQ(Bytes(linear.qkvzba),
            data(p + "1.linear_attn.in_proj_qkv.weight") + data(p + "1.linear_attn.in_proj_z.weight") +
                data(p + "1.linear_attn.in_proj_b.weight") + data(p + "1.linear_attn.in_proj_a.weight"));
  EXPECT_THAT(Shape(linear.qkvzba), ElementsAre(320 + 192 + 6 + 6, 192));
  EXPECT_THAT(Shape(linear.conv), ElementsAre(320, 4));
  EXPECT_EQ(Bytes(linear.conv), data(p + "1.linear_attn.conv1d.weight"));
  const FullAttentionWeights& full = w.layers[7].full;
  EXPECT_EQ(Bytes(full.qkv), data(p + "7.self_attn.q_proj.weight") + data(p + "7.self_attn.k_proj.weight") +
                                 data(p + "7.self_attn.v_proj.weight"));
  EXPECT_EQ(Bytes(full.k_norm), data(p + "7.self_attn.k_norm.weight"));
  EXPECT_FALSE(w.layers[7].linear.qkvzba);
  EXPECT_FALSE(w.layers[1].full.qkv);
  EXPECT_EQ(Bytes(w.layers[4].gate_up),
            data(p + "4.mlp.gate_proj.weight") + data(p + "4.mlp.up_proj.weight"));
  EXPECT_EQ(Bytes(w.head), data("lm_head.weight"));
  EXPECT_EQ(Bytes(w.embedding), data("model.language_model.embed_tokens.weight"));
  EXPECT_EQ(w.head.dtype, vt::DType::bf16);
  EXPECT_THAT(w.config.stop_ids, ElementsAre(2044));
  EXPECT_EQ(report.bytes, w.pool->bytes());
  EXPECT_EQ(report.hash.size(), 32u);
  EXPECT_GT(report.seconds, 0);
  EXPECT_EQ(last, total);
}

TEST(LoadTarget, ATiedHeadIsTheEmbedding) {
  PlainBackend backend;
  const TargetWeights w = LoadTarget(kFlatTarget, backend);
  EXPECT_EQ(w.head.data, w.embedding.data);
  EXPECT_EQ(w.config.tensor_prefix, "model.");
  EXPECT_EQ(w.config.rotary_dim, 16);
}

TEST(LoadDraft, LoadsTheShippedPairs) {
  PlainBackend backend;
  for (const auto& [target_dir, draft_dir] :
       {std::pair(kTinyTarget, kTinyDraft), std::pair(kFlatTarget, kFlatDraft)}) {
    const TargetWeights target = LoadTarget(target_dir, backend);
    const DraftWeights w = LoadDraft(draft_dir, target.config, backend);
    CheckpointFixture f = CheckpointFixture::Read(draft_dir);
    EXPECT_EQ(Bytes(w.layers[1].qkv), f.At("layers.1.self_attn.q_proj.weight").data +
                                          f.At("layers.1.self_attn.k_proj.weight").data +
                                          f.At("layers.1.self_attn.v_proj.weight").data);
    EXPECT_FALSE(w.layers[1].qkv_bias);
    EXPECT_EQ(Bytes(w.predecessor), f.At("candidate_selector.predecessor_codebook").data);
    EXPECT_EQ(Bytes(w.layers[0].mlp_delta), f.At("layers.0.mlp_conv.kernel_projection.weight").data);
    EXPECT_EQ(w.layers[0].mlp_base.rank, 3);
  }
}

TEST(LoadTarget, PartsOfDifferentDtypesAreWidened) {
  const TempDir dir;
  CheckpointFixture f = CheckpointFixture::Read(kFlatTarget);
  f.Widen("model.layers.0.mlp.up_proj.weight");
  f.Widen("model.layers.1.linear_attn.A_log");
  f.Write(dir.path());
  PlainBackend backend;
  const TargetWeights w = LoadTarget(dir.path(), backend);
  ASSERT_EQ(w.layers[0].gate_up.dtype, vt::DType::f32);
  EXPECT_EQ(Bytes(w.layers[0].gate_up),
            warmleg::testing::F32Bytes(FloatsOf(f.At("model.layers.0.mlp.gate_proj.weight"))) +
                f.At("model.layers.0.mlp.up_proj.weight").data);
  EXPECT_EQ(w.layers[1].linear.a_log.dtype, vt::DType::f32);  // kept, not rounded
  EXPECT_EQ(w.layers[1].linear.dt_bias.dtype, vt::DType::bf16);
}

TEST(LoadDraft, BiasesAreFusedAsTheirMatrices) {
  const TempDir dir;
  CheckpointFixture f = CheckpointFixture::Read(kFlatDraft);
  f.config["attention_bias"] = true;
  std::string q_bias;
  for (const std::string layer : {"0", "1"}) {
    for (const auto& [part, n] :
         {std::pair("q", 128), std::pair("k", 32), std::pair("v", 32), std::pair("o", 128)}) {
      const std::string bias = warmleg::testing::Bf16Bytes(
          std::vector<float>(static_cast<size_t>(n), part[0] == 'k' ? 2.0f : 1.0f));
      f.tensors.push_back({"layers." + layer + ".self_attn." + part + "_proj.bias", "BF16", {n}, bias});
    }
  }
  f.Write(dir.path());
  PlainBackend backend;
  const TargetWeights target = LoadTarget(kFlatTarget, backend);
  const DraftWeights w = LoadDraft(dir.path(), target.config, backend);
  std::vector<float> expect(192, 1.0f);
  std::fill(expect.begin() + 128, expect.begin() + 160, 2.0f);
  EXPECT_EQ(Bytes(w.layers[1].qkv_bias), warmleg::testing::Bf16Bytes(expect));
  EXPECT_THAT(Shape(w.layers[0].o_bias), ElementsAre(128));
}

TEST(LoadTarget, TheHashFollowsTheWeightsAndNotTheFiles) {
  const TempDir one, three, changed;
  CheckpointFixture f = CheckpointFixture::Read(kFlatTarget);
  f.Write(one.path());
  f.Write(three.path(), 3);
  f.At("model.norm.weight").data[0] ^= 1;
  f.Write(changed.path());
  PlainBackend backend;
  LoadReport a, b, c;
  LoadTarget(one.path(), backend, &a);
  LoadTarget(three.path(), backend, &b);
  LoadTarget(changed.path(), backend, &c);
  EXPECT_EQ(a.hash, b.hash);
  EXPECT_NE(a.hash, c.hash);
}

// Copying straight from a mapping is what stalls for minutes on some kernels.
TEST(LoadTarget, TheCopyCallNeverSeesAMappedPage) {
  PlainBackend backend;
  int calls = 0;
  backend.on_copy_in = [&](const void* host, size_t) {
    ++calls;
    std::ifstream maps("/proc/self/maps");
    const auto at = reinterpret_cast<uintptr_t>(host);
    for (std::string line; std::getline(maps, line);) {
      uintptr_t begin = 0, end = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && begin <= at && at < end) {
        EXPECT_EQ(line.find(".safetensors"), std::string::npos) << line;
      }
    }
  };
  LoadTarget(kFlatTarget, backend);
  EXPECT_GT(calls, 50);
}

}  // namespace
}  // namespace warmleg::model
