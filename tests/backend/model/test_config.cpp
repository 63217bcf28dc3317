#include "backend/model/config.h"

#include <gmock/gmock.h>

#include "backend/model/parse_config.h"
#include "tests/support/checkpoint_fixture.h"

namespace warmleg::model {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using warmleg::testing::ReadFile;

json Read(const std::string& dir) { return json::parse(ReadFile(dir + "/config.json")); }

TargetConfig ParseTarget(const json& config, Findings* findings, const char* generation = nullptr) {
  return ParseTargetConfig(config.dump(),
                           generation == nullptr ? std::nullopt : std::optional<std::string_view>(generation),
                           findings);
}

// The flat config with one field set (null: removed).
std::vector<std::string> TargetWrong(const char* pointer, const json& value) {
  json config = Read(warmleg::testing::kFlatTarget);
  config[json::json_pointer(pointer)] = value;
  Findings findings;
  ParseTarget(config, &findings);
  return findings.wrong;
}

std::vector<std::string> DraftWrong(const std::function<void(json&)>& edit, Findings* out = nullptr) {
  Findings target_findings, findings;
  const TargetConfig target = ParseTarget(Read(warmleg::testing::kFlatTarget), &target_findings);
  json config = Read(warmleg::testing::kFlatDraft);
  edit(config);
  ParseDraftConfig(config.dump(), &target, &findings);
  if (out != nullptr) *out = findings;
  return findings.wrong;
}

TEST(TargetConfig, NestedAndFlat) {
  Findings findings;
  const TargetConfig nested =
      ParseTarget(Read(warmleg::testing::kTinyTarget), &findings, "{\"eos_token_id\": [5, 6]}");
  EXPECT_THAT(findings.wrong, IsEmpty());
  EXPECT_EQ(nested.tensor_prefix, "model.language_model.");
  EXPECT_EQ(nested.rotary_dim, 16);
  EXPECT_EQ(nested.rope_theta, 1e7);
  EXPECT_FALSE(nested.tied_head);
  EXPECT_THAT(nested.stop_ids, ElementsAre(5, 6));
  const TargetConfig flat = ParseTarget(Read(warmleg::testing::kFlatTarget), &findings);
  EXPECT_EQ(flat.tensor_prefix, "model.");
  EXPECT_TRUE(flat.tied_head);
  EXPECT_THAT(flat.stop_ids, ElementsAre(0));
}

TEST(TargetConfig, TiedOnlyWhenEveryStatementSaysSo) {
  const auto tied = [](const json& outer, const json& inner) {
    json config = Read(warmleg::testing::kTinyTarget);
    config["tie_word_embeddings"] = outer;
    config["text_config"]["tie_word_embeddings"] = inner;
    Findings findings;
    return ParseTarget(config, &findings).tied_head;
  };
  EXPECT_TRUE(tied(true, true));
  EXPECT_TRUE(tied(true, nullptr));
  EXPECT_TRUE(tied(nullptr, true));
  EXPECT_FALSE(tied(true, false));
  EXPECT_FALSE(tied(false, true));
  EXPECT_FALSE(tied(nullptr, nullptr));
}

TEST(TargetConfig, LayerTypesWinOverTheInterval) {
  json config = Read(warmleg::testing::kFlatTarget);
  config["full_attention_interval"] = 2;
  Findings findings;
  EXPECT_EQ(ParseTarget(config, &findings).layers[0], LayerType::full_attention);
  config["layer_types"] = nullptr;
  const auto layers = ParseTarget(config, &findings).layers;
  const auto full = LayerType::full_attention, linear = LayerType::linear_attention;
  EXPECT_THAT(layers, ElementsAre(linear, full, linear, full, linear));
  EXPECT_THAT(findings.wrong, IsEmpty());
  config.erase("full_attention_interval");
  ParseTarget(config, &findings);
  EXPECT_THAT(findings.wrong, ElementsAre(HasSubstr("neither layer_types nor full_attention_interval")));
}

TEST(TargetConfig, RopeFieldsNestedFlatBothAndDifferent) {
  const auto wrong = [](const json& nested, const json& flat, TargetConfig* out = nullptr) {
    json config = Read(warmleg::testing::kFlatTarget);
    config["rope_parameters"] = nested;
    for (const char* key : {"rope_theta", "partial_rotary_factor", "mrope_section"})
      config[key] = flat.contains(key) ? flat[key] : json();
    Findings findings;
    const TargetConfig c = ParseTarget(config, &findings);
    if (out != nullptr) *out = c;
    return findings.wrong;
  };
  const json all = {{"rope_theta", 500.0}, {"partial_rotary_factor", 0.25}, {"mrope_section", {1, 2, 3}}};
  TargetConfig c;
  EXPECT_THAT(wrong(all, json::object(), &c), IsEmpty());
  EXPECT_EQ(c.rotary_dim, 8);
  EXPECT_EQ(c.rope_theta, 500);
  EXPECT_THAT(wrong(nullptr, all, &c), IsEmpty());
  EXPECT_EQ(c.rotary_dim, 8);
  EXPECT_THAT(wrong(all, all), IsEmpty());
  const json changes = {{"rope_theta", 501}, {"partial_rotary_factor", 0.5}, {"mrope_section", {3, 2, 1}}};
  for (const auto& [key, value] : changes.items()) {
    json other = all;
    other[key] = value;
    EXPECT_THAT(wrong(all, other), ElementsAre(HasSubstr(key + " is")));
  }
  EXPECT_THAT(wrong({{"partial_rotary_factor", 0.25}}, json::object()),
              ElementsAre(HasSubstr("rope_theta is missing")));
  EXPECT_THAT(wrong({{"rope_theta", 500}}, json::object()),
              ElementsAre(HasSubstr("partial_rotary_factor is missing")));
}

TEST(TargetConfig, RefusesByName) {
  for (const auto& [pointer, value, text] : std::vector<std::tuple<const char*, json, const char*>>{
           {"/attention_bias", true, "attention_bias"},
           {"/attn_output_gate", false, "attn_output_gate"},
           {"/rope_parameters/rope_type", "yarn", "yarn"},
           {"/output_gate_type", "gelu", "gelu"},
           {"/hidden_act", "gelu", "hidden_act"},
           {"/quantization_config", {{"quant_method", "fp8"}}, "fp8"},
           {"/architectures", {"LlamaForCausalLM"}, "LlamaForCausalLM"},
           {"/architectures", {"Qwen3_5ForConditionalGeneration"}, "text_config is missing"},
           {"/num_experts", 8, "num_experts"},
           {"/layer_types/1", "sliding_attention", "sliding_attention"},
           {"/hidden_size", 0, "hidden_size is 0"},
           {"/hidden_size", -5, "hidden_size is -5"},
           {"/hidden_size", 1e30, "hidden_size"},
           {"/hidden_size", "128", "hidden_size is \"128\""},
           {"/vocab_size", nullptr, "vocab_size is missing"},
           {"/num_hidden_layers", 1000000000, "num_hidden_layers"},
           {"/num_hidden_layers", 4, "layer_types has 5 entries"},
           {"/num_key_value_heads", 3, "not a multiple of num_key_value_heads 3"},
           {"/num_key_value_heads", 0, "num_key_value_heads is 0"},
           {"/linear_num_value_heads", 3, "linear_num_value_heads is 3"},
           {"/linear_conv_kernel_dim", 0, "linear_conv_kernel_dim"},
           {"/rms_norm_eps", 0, "rms_norm_eps"},
           {"/eos_token_id", 600, "eos_token_id holds 600"},
           {"/eos_token_id", {1, -1}, "eos_token_id holds -1"}})
    EXPECT_THAT(TargetWrong(pointer, value), Contains(HasSubstr(text))) << pointer << " " << value;
  json config = Read(warmleg::testing::kFlatTarget);
  for (const double factor : {0.0, 0.03, 1.5, -0.5}) {
    config["rope_parameters"]["partial_rotary_factor"] = config["partial_rotary_factor"] = factor;
    Findings findings;
    ParseTarget(config, &findings);
    EXPECT_THAT(findings.wrong, ElementsAre(HasSubstr("rotating entries"))) << factor;
  }
  EXPECT_THAT(TargetWrong("/output_gate_type", "swish"), IsEmpty());
}

TEST(TargetConfig, AllReasonsComeTogether) {
  json config = Read(warmleg::testing::kFlatTarget);
  config["attention_bias"] = true;
  config["hidden_size"] = -1;
  config["rms_norm_eps"] = nullptr;
  Findings findings;
  ParseTarget(config, &findings);
  EXPECT_EQ(findings.wrong.size(), 3u);
}

TEST(TargetConfig, StopIds) {
  const auto stops = [](const json& eos, const char* generation) {
    json config = Read(warmleg::testing::kFlatTarget);
    config["eos_token_id"] = eos;
    Findings findings;
    const auto ids = ParseTarget(config, &findings, generation).stop_ids;
    EXPECT_THAT(findings.wrong, IsEmpty());
    return ids;
  };
  EXPECT_THAT(stops(7, nullptr), ElementsAre(7));
  EXPECT_THAT(stops({7, 8}, nullptr), ElementsAre(7, 8));
  EXPECT_THAT(stops(7, "{\"eos_token_id\": 9}"), ElementsAre(9));
  EXPECT_THAT(stops(7, "{\"eos_token_id\": [9, 3]}"), ElementsAre(9, 3));
  EXPECT_THAT(stops(7, "{\"do_sample\": false}"), ElementsAre(7));
  EXPECT_THAT(stops(nullptr, nullptr), IsEmpty());
}

TEST(DraftConfig, NestedFirstThenTopLevelAndConflicts) {
  EXPECT_THAT(DraftWrong([](json&) {}), IsEmpty());
  for (const char* key : {"block_size", "conv_kernel_size", "conv_group_size", "mask_token_id",
                          "selector_rank", "selector_top_k", "target_layer_ids"}) {
    EXPECT_THAT(DraftWrong([&](json& c) {
                  c[key] = c["dflash_config"][key];
                  c["dflash_config"].erase(key);
                }),
                IsEmpty())
        << key;
    EXPECT_THAT(DraftWrong([&](json& c) { c[key] = c["dflash_config"][key]; }), IsEmpty()) << key;
    EXPECT_THAT(DraftWrong([&](json& c) { c[key] = 1; }),
                Contains(HasSubstr(std::string("but dflash_config.") + key)))
        << key;
    EXPECT_THAT(DraftWrong([&](json& c) { c["dflash_config"].erase(key); }),
                Contains(HasSubstr(std::string(key) + " is missing")))
        << key;
  }
}

TEST(DraftConfig, RefusesByName) {
  const auto nested = [](const char* key, const json& value) {
    return DraftWrong([&](json& c) { c["dflash_config"][key] = value; });
  };
  const auto top = [](const char* key, const json& value) {
    return DraftWrong([&](json& c) { c[key] = value; });
  };
  EXPECT_THAT(nested("target_layer_ids", {0, 4}), ElementsAre(HasSubstr("tap on the last block")));
  EXPECT_THAT(nested("target_layer_ids", {0, 5}), ElementsAre(HasSubstr("holds 5")));
  EXPECT_THAT(nested("target_layer_ids", {-1}), ElementsAre(HasSubstr("holds -1")));
  EXPECT_THAT(nested("mask_token_id", 600),
              ElementsAre(HasSubstr("mask_token_id is 600, outside the target's embedding of 600 rows")));
  EXPECT_THAT(nested("mask_token_id", -1), ElementsAre(HasSubstr("mask_token_id is -1")));
  EXPECT_THAT(nested("block_size", 17), ElementsAre(HasSubstr("block_size is 17")));
  EXPECT_THAT(nested("block_size", 0), ElementsAre(HasSubstr("block_size is 0")));
  EXPECT_THAT(nested("block_size", 1), IsEmpty());
  EXPECT_THAT(nested("conv_group_size", 7), ElementsAre(HasSubstr("conv_group_size is 7")));
  EXPECT_THAT(nested("conv_group_size", 0), ElementsAre(HasSubstr("conv_group_size is 0")));
  EXPECT_THAT(nested("selector_top_k", 0), ElementsAre(HasSubstr("selector_top_k is 0")));
  EXPECT_THAT(nested("final_logit_softcapping", nullptr), IsEmpty());
  EXPECT_THAT(nested("final_logit_softcapping", -1), ElementsAre(HasSubstr("final_logit_softcapping")));
  EXPECT_THAT(top("hidden_size", 64), Contains(HasSubstr("hidden_size is 64, the target's is 128")));
  EXPECT_THAT(top("num_target_layers", 6),
              ElementsAre(HasSubstr("num_target_layers is 6, the target has 5")));
  EXPECT_THAT(top("vocab_size", 601), ElementsAre(HasSubstr("vocab_size is 601")));
  EXPECT_THAT(top("layer_types", {"full_attention", "sliding_attention"}),
              ElementsAre(HasSubstr("sliding_window is missing")));
  EXPECT_THAT(top("rope_parameters", nullptr), ElementsAre(HasSubstr("rope_theta is missing")));
  EXPECT_THAT(top("rope_theta", 5), ElementsAre(HasSubstr("rope_theta is 5")));
  EXPECT_THAT(top("architectures", {"DFlashDraftModel"}), ElementsAre(HasSubstr("DFlashDraftModel")));
  EXPECT_THAT(top("quantization_config", {{"quant_method", "awq"}}), ElementsAre(HasSubstr("awq")));
  EXPECT_THAT(top("head_dim", 31), ElementsAre(HasSubstr("head_dim is 31")));
  EXPECT_THAT(top("is_causal", 1), ElementsAre(HasSubstr("is_causal is 1")));
}

TEST(DraftConfig, AMaskThatStopsIsAWarning) {
  Findings findings;
  EXPECT_THAT(DraftWrong([](json& c) { c["dflash_config"]["mask_token_id"] = 0; }, &findings), IsEmpty());
  EXPECT_THAT(findings.warned, ElementsAre(HasSubstr("also a stop token")));
}

TEST(DraftConfig, CausalityAndWindowPerLayer) {
  const auto parse = [](const json& causal) {
    json config = Read(warmleg::testing::kFlatDraft);
    config["is_causal"] = causal;
    config["layer_types"] = {"sliding_attention", "full_attention"};
    config["sliding_window"] = 9;
    Findings findings;
    const DraftConfig c = ParseDraftConfig(config.dump(), nullptr, &findings);
    EXPECT_THAT(findings.wrong, IsEmpty());
    return c;
  };
  const DraftConfig absent = parse(nullptr);
  EXPECT_TRUE(absent.causal(0));
  EXPECT_FALSE(absent.causal(1));
  EXPECT_EQ(absent.window(0), 9);
  EXPECT_EQ(absent.window(1), 0);
  for (const size_t layer : {0u, 1u}) {
    EXPECT_TRUE(parse(true).causal(layer));
    EXPECT_FALSE(parse(false).causal(layer));
  }
}

}  // namespace
}  // namespace warmleg::model
