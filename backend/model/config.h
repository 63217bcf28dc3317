// The two models in one look: every number a forward pass needs, as the configs state it. Parsing and
// refusals are in config.cpp; the semantics are in docs/models.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace warmleg::model {

enum class LayerType : uint8_t { linear_attention, full_attention, sliding_attention };

// Qwen3.5 text model (hybrid of gated delta rule and gated full attention).
struct TargetConfig {
  std::string architecture;       // Qwen3_5ForCausalLM or Qwen3_5ForConditionalGeneration
  std::string tensor_prefix;      // "model." or "model.language_model."
  int64_t hidden = 0;             // width of the residual stream
  int64_t mlp = 0;                // intermediate_size
  int64_t vocab = 0;              // rows of the embedding and the head
  int64_t max_positions = 0;      // max_position_embeddings
  std::vector<LayerType> layers;  // linear_attention or full_attention, one a block
  float rms_eps = 0;
  bool tied_head = false;  // the head is the embedding

  int64_t heads = 0;  // query heads of full attention
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;  // entries of a head that rotate: partial_rotary_factor * head_dim
  double rope_theta = 0;

  int64_t lin_key_heads = 0;    // gated delta rule: nk
  int64_t lin_value_heads = 0;  // nv
  int64_t lin_key_dim = 0;      // dk
  int64_t lin_value_dim = 0;    // dv
  int64_t conv_kernel = 0;      // taps of the causal convolution

  std::vector<int32_t> stop_ids;  // generation_config.json, else config.json; may be empty

  int64_t lin_channels() const { return 2 * lin_key_heads * lin_key_dim + lin_value_heads * lin_value_dim; }
};

// DFlash2 block-diffusion draft.
struct DraftConfig {
  std::string architecture;  // DFlash2DraftModel
  int64_t hidden = 0;
  int64_t mlp = 0;
  int64_t vocab = 0;              // rows of the codebooks
  int64_t max_positions = 0;      // 0: not stated
  std::vector<LayerType> layers;  // full_attention or sliding_attention
  float rms_eps = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  double rope_theta = 0;
  int64_t sliding_window = 0;     // 0: none
  std::optional<bool> is_causal;  // absent: sliding layers causal, full layers not
  bool attention_bias = false;
  int64_t num_target_layers = 0;

  int64_t block_size = 0;  // rows of a draft block, the anchor included
  int64_t conv_taps = 0;   // conv_kernel_size
  int64_t conv_group = 0;  // channels a group
  int32_t mask_id = -1;
  int64_t selector_rank = 0;
  int64_t selector_top_k = 0;
  std::vector<int64_t> tap_layers;  // target blocks whose output feeds the draft, in config order
  float output_multiplier = 1;
  float softcap = 0;          // final_logit_softcapping; 0: off
  float embedding_scale = 1;  // input_embedding_scale

  bool causal(size_t layer) const {
    return is_causal.value_or(layers[layer] == LayerType::sliding_attention);
  }
  int64_t window(size_t layer) const {  // 0: the whole context
    return layers[layer] == LayerType::sliding_attention ? sliding_window : 0;
  }
};

}  // namespace warmleg::model
