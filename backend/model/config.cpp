#include "backend/model/config.h"

#include <fmt/core.h>

#include <cmath>

#include "backend/model/config_fields.h"
#include "backend/model/parse_config.h"

namespace warmleg::model {

namespace {

using nlohmann::json;
constexpr const char* kNested = "Qwen3_5ForConditionalGeneration";
constexpr const char* kFlat = "Qwen3_5ForCausalLM";

void ReadLayers(const Fields& text, TargetConfig* c) {
  const int64_t n = text.NeedInt("num_hidden_layers", 1, kMaxLayers);
  const auto types = ReadLayerTypes(text, n, {LayerType::linear_attention, LayerType::full_attention});
  const std::optional<int64_t> interval = text.Int("full_attention_interval", 1, kMaxLayers);
  if (types) {
    c->layers = *types;
  } else if (interval) {
    for (int64_t i = 0; i < n; ++i)
      c->layers.push_back((i + 1) % *interval == 0 ? LayerType::full_attention : LayerType::linear_attention);
  } else {
    text.Wrong("neither layer_types nor full_attention_interval says which blocks are full attention");
  }
}

// Needed whatever the block types: a later block of the other type must not meet zeros.
void ReadAttention(const Fields& text, TargetConfig* c) {
  c->heads = text.NeedInt("num_attention_heads", 1, kMaxHeads);
  c->kv_heads = text.NeedInt("num_key_value_heads", 1, kMaxHeads);
  c->head_dim = text.NeedInt("head_dim", 1, kMaxHeadDim);
  if (c->heads % c->kv_heads != 0)
    text.Wrong(fmt::format("num_attention_heads is {}, not a multiple of num_key_value_heads {}", c->heads,
                           c->kv_heads));
  const RopeFields rope = ReadRope(text);
  c->rope_theta = rope.theta;
  if (!rope.partial) {
    text.Wrong("partial_rotary_factor is missing, in rope_parameters and beside it");
    return;
  }
  const double rotary = *rope.partial * static_cast<double>(c->head_dim);
  if (!(rotary >= 2 && rotary <= static_cast<double>(c->head_dim)) || rotary != std::floor(rotary) ||
      std::fmod(rotary, 2) != 0) {
    text.Wrong(fmt::format(
        "partial_rotary_factor {} of head_dim {} is {} rotating entries, expected an even number of 2..{}",
        *rope.partial, c->head_dim, rotary, c->head_dim));
    return;
  }
  c->rotary_dim = static_cast<int64_t>(rotary);
}

void ReadLinear(const Fields& text, TargetConfig* c) {
  c->lin_key_heads = text.NeedInt("linear_num_key_heads", 1, kMaxHeads);
  c->lin_value_heads = text.NeedInt("linear_num_value_heads", 1, kMaxHeads);
  c->lin_key_dim = text.NeedInt("linear_key_head_dim", 1, kMaxHeadDim);
  c->lin_value_dim = text.NeedInt("linear_value_head_dim", 1, kMaxHeadDim);
  c->conv_kernel = text.NeedInt("linear_conv_kernel_dim", 2, 64);
  if (c->lin_value_heads % c->lin_key_heads != 0)
    text.Wrong(fmt::format("linear_num_value_heads is {}, not a multiple of linear_num_key_heads {}",
                           c->lin_value_heads, c->lin_key_heads));
}

void RefuseTargetFeatures(const Fields& top, const Fields& text) {
  RefuseFeatures(text);
  if (text.where() != top.where() && top.Find("quantization_config") != nullptr) RefuseFeatures(top);
  if (text.Bool("attention_bias").value_or(false))
    text.Wrong("attention_bias is true, which is not supported");
  if (!text.Bool("attn_output_gate").value_or(true))
    text.Wrong("attn_output_gate is false, which is not supported");
  if (text.Bool("use_sliding_window").value_or(false))
    text.Wrong("use_sliding_window is true, which is not supported");
  if (const auto gate = text.String("output_gate_type"); gate && *gate != "silu" && *gate != "swish")
    text.Wrong(fmt::format("output_gate_type is \"{}\", only silu (swish) is supported", *gate));
  if (text.Int("num_experts", 0, INT32_MAX).value_or(0) > 0)
    text.Wrong("num_experts is set: mixture-of-experts models are not supported");
}

bool ReadTied(const Fields& top, const Fields& text) {
  const std::optional<bool> outer = top.Bool("tie_word_embeddings");
  const std::optional<bool> inner = text.Bool("tie_word_embeddings");
  return (outer || inner) && outer.value_or(true) && inner.value_or(true);
}

std::vector<int32_t> ReadStops(const Fields& top, const Fields& text,
                               std::optional<std::string_view> generation, int64_t vocab,
                               Findings* findings) {
  std::optional<std::vector<int32_t>> ids;
  std::string source = "generation_config.json";
  if (generation) {
    const json parsed = ParseJson(*generation, source);
    ids = ReadTokenIds(Fields(parsed, source + ": ", findings), "eos_token_id", vocab);
  }
  if (!ids) {
    source = "config.json";
    ids = ReadTokenIds(text, "eos_token_id", vocab);
    if (!ids) ids = ReadTokenIds(top, "eos_token_id", vocab);
  }
  if (!ids)
    findings->warned.push_back(
        "no eos_token_id in generation_config.json or config.json: only the length ends a generation");
  else
    findings->shown.push_back(fmt::format(
        "stop ids [{}] from {}",
        [&] {
          std::string list;
          for (const int32_t id : *ids) list += (list.empty() ? "" : ", ") + std::to_string(id);
          return list;
        }(),
        source));
  return ids.value_or(std::vector<int32_t>{});
}

}  // namespace

CheckpointKind KindOfConfig(std::string_view config) {
  const json parsed = ParseJson(config, "config.json");
  Findings findings;
  const Fields top(parsed, "config.json: ", &findings);
  findings.Raise();
  const bool draft = Architecture(top).starts_with("DFlash") || top.Find("dflash_config") != nullptr;
  return draft ? CheckpointKind::draft : CheckpointKind::target;
}

TargetConfig ParseTargetConfig(std::string_view config, std::optional<std::string_view> generation_config,
                               Findings* findings) {
  const json parsed = ParseJson(config, "config.json");
  const Fields top(parsed, "config.json: ", findings);
  TargetConfig c;
  c.architecture = Architecture(top);
  const bool nested = top.Find("text_config") != nullptr;
  if (c.architecture != kNested && c.architecture != kFlat)
    top.Wrong(fmt::format("architectures is [\"{}\"], only {} and {} are supported", c.architecture, kNested,
                          kFlat));
  if (c.architecture == kNested && !nested)
    top.Wrong(fmt::format("text_config is missing ({} has its fields there)", kNested));
  const Fields text = nested ? top.Object("text_config") : top;
  if (!findings->ok()) return c;
  c.tensor_prefix = c.architecture == kNested ? "model.language_model." : "model.";
  c.hidden = text.NeedInt("hidden_size", 1, kMaxWidth);
  c.mlp = text.NeedInt("intermediate_size", 1, kMaxWidth);
  c.vocab = text.NeedInt("vocab_size", 2, kMaxWidth);
  c.max_positions = text.NeedInt("max_position_embeddings", 1, kMaxPositions);
  c.rms_eps = ReadEps(text);
  c.tied_head = ReadTied(top, text);
  ReadLayers(text, &c);
  ReadAttention(text, &c);
  ReadLinear(text, &c);
  RefuseTargetFeatures(top, text);
  c.stop_ids = ReadStops(top, text, generation_config, c.vocab, findings);
  return c;
}

}  // namespace warmleg::model
