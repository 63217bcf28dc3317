#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "backend/model/config.h"
#include "backend/model/config_fields.h"
#include "backend/model/parse_config.h"
#include "backend/vt/ops.h"

namespace warmleg::model {

namespace {

using nlohmann::json;

// Fields that stand in dflash_config or at the top level; both and different: refused.
class DFlashFields {
 public:
  explicit DFlashFields(const Fields& top) : top_(top), nested_(top.Object("dflash_config")) {}

  // The object that holds the key; the nested one when neither does.
  const Fields& Holder(const char* key) const {
    const json* inner = nested_.Find(key);
    const json* outer = top_.Find(key);
    if (inner != nullptr && outer != nullptr && *inner != *outer)
      top_.Wrong(fmt::format("{} is {}, but dflash_config.{} is {}; remove one", key, ShortText(*outer), key,
                             ShortText(*inner)));
    return inner == nullptr && outer != nullptr ? top_ : nested_;
  }
  int64_t NeedInt(const char* key, int64_t low, int64_t high) const {
    return Holder(key).NeedInt(key, low, high);
  }
  std::optional<double> Number(const char* key) const { return Holder(key).Number(key); }

 private:
  Fields top_, nested_;
};

float Scale(const DFlashFields& fields, const char* key) {
  const double value = fields.Number(key).value_or(1.0);
  if (!(std::fabs(value) >= 1e-6 && std::fabs(value) <= 1e6))
    fields.Holder(key).Wrong(fmt::format("{} is {}, expected a factor of 1e-6..1e6", key, value));
  return static_cast<float>(value);
}

void ReadTaps(const DFlashFields& fields, int64_t num_target_layers, DraftConfig* c) {
  const Fields& holder = fields.Holder("target_layer_ids");
  const json* list = holder.Find("target_layer_ids");
  if (list == nullptr || !list->is_array() || list->empty() ||
      list->size() > static_cast<size_t>(kMaxLayers)) {
    holder.Wrong(fmt::format("target_layer_ids is {}, expected a list of target blocks",
                             list != nullptr ? ShortText(*list) : "missing"));
    return;
  }
  for (const json& id : *list) {
    const bool fits = id.is_number_integer() && (!id.is_number_unsigned() || id.get<uint64_t>() <= INT32_MAX);
    const int64_t i = fits ? id.get<int64_t>() : -1;
    if (i < 0 || i >= num_target_layers) {
      holder.Wrong(fmt::format("target_layer_ids holds {}, expected target blocks 0..{}", ShortText(id),
                               num_target_layers - 2));
    } else if (i == num_target_layers - 1) {
      holder.Wrong(fmt::format(
          "target_layer_ids holds {}: a tap on the last block is refused, implementations differ on whether "
          "it is taken before or after the final norm",
          i));
    } else {
      c->tap_layers.push_back(i);
    }
  }
}

void ReadMask(const DFlashFields& fields, const TargetConfig* target, DraftConfig* c, Findings* findings) {
  const Fields& holder = fields.Holder("mask_token_id");
  const json* value = holder.Find("mask_token_id");
  if (value == nullptr) return holder.Wrong("mask_token_id is missing");
  const int64_t rows = target != nullptr ? target->vocab : c->vocab;
  const bool fits =
      value->is_number_integer() && (!value->is_number_unsigned() || value->get<uint64_t>() <= INT32_MAX);
  const int64_t id = fits ? value->get<int64_t>() : -1;
  if (!fits || id < 0 || id >= rows)
    return holder.Wrong(fmt::format("mask_token_id is {}, outside the target's embedding of {} rows",
                                    ShortText(*value), rows));
  c->mask_id = static_cast<int32_t>(id);
  if (target != nullptr &&
      std::find(target->stop_ids.begin(), target->stop_ids.end(), c->mask_id) != target->stop_ids.end())
    findings->warned.push_back(fmt::format("mask_token_id {} is also a stop token of the target", id));
}

void ReadDFlash(const DFlashFields& fields, DraftConfig* c) {
  const Fields& holder = fields.Holder("block_size");
  c->block_size = holder.NeedInt("block_size", 1, kMaxWidth);
  if (c->block_size > vt::kMaxRows)
    holder.Wrong(
        fmt::format("block_size is {}, at most {} rows are verified at once", c->block_size, vt::kMaxRows));
  c->conv_taps = fields.NeedInt("conv_kernel_size", 1, 64);
  c->conv_group = fields.NeedInt("conv_group_size", 1, kMaxWidth);
  if (c->hidden % c->conv_group != 0)
    fields.Holder("conv_group_size")
        .Wrong(fmt::format("conv_group_size is {}, which does not divide hidden_size {}", c->conv_group,
                           c->hidden));
  c->selector_rank = fields.NeedInt("selector_rank", 1, 65536);
  c->selector_top_k = fields.NeedInt("selector_top_k", 1, 256);
  if (c->selector_top_k > c->vocab)
    fields.Holder("selector_top_k")
        .Wrong(fmt::format("selector_top_k is {}, the vocabulary has {}", c->selector_top_k, c->vocab));
  c->output_multiplier = Scale(fields, "output_multiplier");
  c->embedding_scale = Scale(fields, "input_embedding_scale");
  const double cap = fields.Number("final_logit_softcapping").value_or(0.0);
  if (cap != 0 && !(cap >= 1e-6 && cap <= 1e6))
    fields.Holder("final_logit_softcapping")
        .Wrong(fmt::format("final_logit_softcapping is {}, expected 0 (off) or 1e-6..1e6", cap));
  c->softcap = static_cast<float>(cap);
}

void ReadShape(const Fields& top, const TargetConfig* target, DraftConfig* c) {
  c->hidden = top.NeedInt("hidden_size", 1, kMaxWidth);
  if (target != nullptr && c->hidden != target->hidden)
    top.Wrong(fmt::format("hidden_size is {}, the target's is {}", c->hidden, target->hidden));
  c->mlp = top.NeedInt("intermediate_size", 1, kMaxWidth);
  const std::optional<int64_t> vocab = top.Int("vocab_size", 2, kMaxWidth);
  if (!vocab && target == nullptr) top.Wrong("vocab_size is missing");
  if (vocab && target != nullptr && *vocab != target->vocab)
    top.Wrong(fmt::format("vocab_size is {}, the target's is {}", *vocab, target->vocab));
  c->vocab = vocab ? *vocab : target != nullptr ? target->vocab : 2;
  c->max_positions = top.Int("max_position_embeddings", 1, kMaxPositions).value_or(0);
  c->heads = top.NeedInt("num_attention_heads", 1, kMaxHeads);
  c->kv_heads = top.NeedInt("num_key_value_heads", 1, kMaxHeads);
  c->head_dim = top.NeedInt("head_dim", 2, kMaxHeadDim);
  if (c->heads % c->kv_heads != 0)
    top.Wrong(fmt::format("num_attention_heads is {}, not a multiple of num_key_value_heads {}", c->heads,
                          c->kv_heads));
  if (c->head_dim % 2 != 0) top.Wrong(fmt::format("head_dim is {}, rope needs an even number", c->head_dim));
}

void ReadRegime(const Fields& top, DraftConfig* c) {
  const int64_t n = top.NeedInt("num_hidden_layers", 1, kMaxLayers);
  const auto types = ReadLayerTypes(top, n, {LayerType::full_attention, LayerType::sliding_attention});
  c->layers = types.value_or(std::vector<LayerType>(static_cast<size_t>(n), LayerType::full_attention));
  c->sliding_window = top.Int("sliding_window", 1, kMaxPositions).value_or(0);
  const bool sliding =
      std::find(c->layers.begin(), c->layers.end(), LayerType::sliding_attention) != c->layers.end();
  if (sliding && c->sliding_window == 0)
    top.Wrong("layer_types has sliding_attention, but sliding_window is missing");
  c->is_causal = top.Bool("is_causal");
  c->attention_bias = top.Bool("attention_bias").value_or(false);
  const RopeFields rope = ReadRope(top);
  c->rope_theta = rope.theta;
  if (rope.partial && *rope.partial != 1.0)
    top.Wrong(fmt::format("partial_rotary_factor is {}, a draft rotates whole heads", *rope.partial));
}

}  // namespace

DraftConfig ParseDraftConfig(std::string_view config, const TargetConfig* target, Findings* findings) {
  const json parsed = ParseJson(config, "config.json");
  const Fields top(parsed, "config.json: ", findings);
  DraftConfig c;
  c.architecture = Architecture(top);
  if (c.architecture == "DFlashDraftModel")
    top.Wrong(
        "architectures is [\"DFlashDraftModel\"], only DFlash2DraftModel is supported; a DFlash2 checkpoint "
        "must not be relabelled");
  else if (c.architecture != "DFlash2DraftModel")
    top.Wrong(fmt::format("architectures is [\"{}\"], only DFlash2DraftModel is supported", c.architecture));
  ReadShape(top, target, &c);
  ReadRegime(top, &c);
  c.rms_eps = ReadEps(top);
  RefuseFeatures(top);
  c.num_target_layers = top.NeedInt("num_target_layers", 1, kMaxLayers);
  const auto target_layers =
      target != nullptr ? static_cast<int64_t>(target->layers.size()) : c.num_target_layers;
  if (c.num_target_layers != target_layers)
    top.Wrong(fmt::format("num_target_layers is {}, the target has {}", c.num_target_layers, target_layers));
  const DFlashFields fields(top);
  ReadDFlash(fields, &c);
  ReadTaps(fields, target_layers, &c);
  ReadMask(fields, target, &c, findings);
  return c;
}

}  // namespace warmleg::model
