// Stored tensors against the model that the config describes.
#include "backend/model/checkpoint.h"

#include <gmock/gmock.h>

#include "backend/model/loader.h"
#include "backend/vt/error.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/plain_backend.h"

namespace warmleg::model {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using warmleg::testing::Bf16Bytes;
using warmleg::testing::CheckpointFixture;
using warmleg::testing::kFlatDraft;
using warmleg::testing::kFlatTarget;
using warmleg::testing::kTinyTarget;
using warmleg::testing::TempDir;

Findings Target(const CheckpointFixture& f) {
  const TempDir dir;
  f.Write(dir.path());
  return CheckTarget(dir.path()).findings;
}

Findings Draft(const CheckpointFixture& f) {
  const TempDir dir;
  f.Write(dir.path());
  const CheckedTarget target = CheckTarget(kFlatTarget);
  return CheckDraft(dir.path(), &target.weights.config).findings;
}

class TargetTensors : public ::testing::Test {
 protected:
  CheckpointFixture f_ = CheckpointFixture::Read(kFlatTarget);
};
class DraftTensors : public ::testing::Test {
 protected:
  CheckpointFixture f_ = CheckpointFixture::Read(kFlatDraft);
};

TEST_F(TargetTensors, EitherPrefixButNotBoth) {
  const auto longer = [](const std::string& name) {
    return name.starts_with("model.") ? "model.language_model." + name.substr(6) : name;
  };
  EXPECT_THAT(Target(f_).wrong, IsEmpty());
  CheckpointFixture renamed = f_;
  renamed.Rename(longer);
  EXPECT_THAT(Target(renamed).wrong, IsEmpty());
  CheckpointFixture mixed = f_;
  mixed.Rename([&](const std::string& name) {
    return name.find("layers.2.") != std::string::npos ? longer(name) : name;
  });
  EXPECT_THAT(Target(mixed).wrong,
              ElementsAre(AllOf(HasSubstr("mix the prefixes"), HasSubstr("\"model.language_model.\""))));
}

TEST_F(TargetTensors, ARepeatedPrefixNamesExpectedAndFound) {
  f_.Rename([](const std::string& name) {
    return "model.language_model.language_model.language_model." + name.substr(6);
  });
  EXPECT_THAT(Target(f_).wrong,
              ElementsAre(AllOf(HasSubstr("\"model.language_model.language_model.language_model.\""),
                                HasSubstr("expected \"model.\""))));
}

TEST_F(TargetTensors, ExtrasAreCountedAndOthersRefused) {
  f_.tensors.push_back({"model.visual.a", "F16", {2}, "abcd"});
  f_.tensors.push_back({"model.visual.blocks.layers.0.b", "BF16", {1}, "ab"});
  f_.tensors.push_back({"visual.c", "BF16", {1}, "ab"});
  f_.tensors.push_back({"mtp.layers.0.d", "BF16", {1}, "ab"});
  const TempDir dir;
  f_.Write(dir.path());
  const CheckedTarget checked = CheckTarget(dir.path());
  EXPECT_THAT(checked.findings.wrong, IsEmpty());
  EXPECT_EQ(checked.match.skipped.at("model.visual.").tensors, 2);
  EXPECT_EQ(checked.match.skipped.at("model.visual.").bytes, 6u);
  EXPECT_EQ(checked.match.skipped.at("visual.").tensors, 1);
  EXPECT_EQ(checked.match.skipped.at("mtp.").tensors, 1);
  f_.tensors.push_back({"model.layers.0.mlp.extra.weight", "BF16", {1}, "ab"});
  EXPECT_THAT(Target(f_).wrong,
              ElementsAre(HasSubstr("model.layers.0.mlp.extra.weight is not a tensor of this model")));
}

TEST_F(TargetTensors, ShapesAndMissingNamesComeTogether) {
  f_.Remove("model.layers.3.self_attn.o_proj.weight");
  f_.At("model.layers.0.self_attn.q_proj.weight").shape = {128, 256};
  EXPECT_THAT(Target(f_).wrong,
              ::testing::UnorderedElementsAre(HasSubstr("o_proj.weight is missing"),
                                              "target: model.layers.0.self_attn.q_proj.weight is [128, 256], "
                                              "expected [256, 128] (4 heads x (query, gate) x 32)"));
}

TEST_F(TargetTensors, TheConvolutionIsChannelsOneTaps) {
  f_.At("model.layers.1.linear_attn.conv1d.weight").shape = {192, 4, 1};
  EXPECT_THAT(Target(f_).wrong, ElementsAre(HasSubstr("conv1d.weight is [192, 4, 1], expected [192, 1, 4]")));
}

TEST_F(TargetTensors, Heads) {
  f_.tensors.push_back(f_.At("model.embed_tokens.weight"));
  f_.tensors.back().name = "lm_head.weight";
  const Findings same = Target(f_);
  EXPECT_THAT(same.wrong, IsEmpty());
  EXPECT_THAT(same.shown, Contains(HasSubstr("lm_head.weight equals the embedding")));
  f_.tensors.back().data[5] ^= 1;
  EXPECT_THAT(Target(f_).wrong, ElementsAre(HasSubstr("lm_head.weight differs from the embedding")));
  f_.config["tie_word_embeddings"] = false;
  EXPECT_THAT(Target(f_).wrong, IsEmpty());
  f_.Remove("lm_head.weight");
  EXPECT_THAT(Target(f_).wrong, ElementsAre(HasSubstr("lm_head.weight is missing")));
}

TEST_F(TargetTensors, DtypesByName) {
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  f_.At(name).dtype = "F16";
  EXPECT_THAT(Target(f_).wrong, ElementsAre(HasSubstr(name + " is F16, only BF16 and F32")));
  f_.At(name).dtype = "F8_E4M3";
  f_.At(name).data.resize(f_.At(name).data.size() / 2);
  EXPECT_THAT(Target(f_).wrong, ElementsAre(HasSubstr("its scale (" + name + "_scale_inv) is missing")));
  f_.tensors.push_back({name + "_scale_inv", "F32", {1}, "abcd"});
  EXPECT_THAT(Target(f_).wrong,
              ElementsAre(HasSubstr("scaled by " + name + "_scale_inv: fp8 weights are not supported")));
  f_ = CheckpointFixture::Read(kFlatTarget);
  f_.tensors.push_back({"model.layers.9.mlp.down_proj.weight_scale_inv", "F32", {1}, "abcd"});
  EXPECT_THAT(Target(f_).wrong, ElementsAre(HasSubstr("is a scale without its weight")));
}

TEST_F(TargetTensors, ShiftedNormGainsAreShownNotShifted) {
  EXPECT_THAT(Target(f_).warned, Not(Contains(HasSubstr("suspicious"))));
  const std::string shifted = Bf16Bytes(std::vector<float>(128, 1.03f));
  f_.At("model.norm.weight").data = shifted;
  f_.At("model.layers.2.input_layernorm.weight").data = shifted;
  const TempDir dir;
  f_.Write(dir.path());
  warmleg::testing::PlainBackend backend;
  const TargetWeights w = LoadTarget(dir.path(), backend);
  EXPECT_EQ(std::string(w.norm.as<char>(), 256), shifted);
  EXPECT_THAT(CheckTarget(dir.path()).findings.warned, Contains(HasSubstr("suspicious norm gains: 2 of")));
}

TEST_F(DraftTensors, FcFollowsTheTaps) {
  f_.config["dflash_config"]["target_layer_ids"] = {3, 0, 1};
  EXPECT_THAT(Draft(f_).wrong,
              ElementsAre("draft: fc.weight is [128, 256], expected [128, 384] (3 taps x 128)"));
}

TEST_F(DraftTensors, CodebooksWithOrWithoutWeight) {
  const std::string name = "candidate_selector.predecessor_codebook";
  f_.tensors.push_back(f_.At(name));
  f_.tensors.back().name = name + ".weight";
  EXPECT_THAT(Draft(f_).wrong, ElementsAre(HasSubstr("are both there")));
  f_.Remove(name);
  EXPECT_THAT(Draft(f_).wrong, IsEmpty());
}

TEST_F(DraftTensors, EveryTensorIsConsumedAndNoneIsMissing) {
  const size_t n = f_.tensors.size();
  for (size_t i = 0; i < n; i += 5) {
    CheckpointFixture less = f_;
    less.Remove(f_.tensors[i].name);
    EXPECT_THAT(Draft(less).wrong, ElementsAre("draft: " + f_.tensors[i].name + " is missing"));
  }
  for (const std::string extra : {"embed_tokens.weight", "layers.2.input_layernorm.weight", "mtp.norm.weight",
                                  "layers.0.self_attn.q_proj.bias"}) {
    CheckpointFixture more = f_;
    more.tensors.push_back({extra, "BF16", {1}, "ab"});
    EXPECT_THAT(Draft(more).wrong, ElementsAre(HasSubstr(extra + " is not a tensor of this model")));
  }
}

TEST_F(DraftTensors, RelabelledCheckpointsAreRefusedBothWays) {
  CheckpointFixture old = f_;
  old.config["architectures"] = {"DFlashDraftModel"};
  EXPECT_THAT(Draft(old).wrong, Contains(HasSubstr("was relabelled")));
  std::erase_if(f_.tensors, [](const auto& t) {
    return t.name.find("_conv.") != std::string::npos || t.name.starts_with("candidate_selector.");
  });
  EXPECT_THAT(Draft(f_).wrong, ElementsAre(HasSubstr("no *_conv or candidate_selector tensor")));
}

TEST_F(DraftTensors, OneErrorCarriesEveryReason) {
  f_.config["dflash_config"]["block_size"] = 99;
  f_.config["num_target_layers"] = 6;
  const TempDir dir;
  f_.Write(dir.path());
  warmleg::testing::PlainBackend backend;
  const TargetConfig target = CheckTarget(kFlatTarget).weights.config;
  try {
    LoadDraft(dir.path(), target, backend);
    FAIL() << "accepted";
  } catch (const vt::InputError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text,
                AllOf(HasSubstr("draft: config.json: dflash_config.block_size is 99"), HasSubstr("\ndraft: "),
                      HasSubstr("draft: config.json: num_target_layers is 6, the target has 5")));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  }
}

}  // namespace
}  // namespace warmleg::model
