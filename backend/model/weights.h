// Weights on a device, laid out as the forward pass reads them: projections that share their input are one
// matrix, so that a step sweeps them in one call. The loader (loader.h) fills these from a checked
// checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/model/config.h"
#include "backend/vt/backend.h"

namespace warmleg::model {

struct FullAttentionWeights {
  vt::Tensor
      qkv;  // [heads * 2 * head_dim + 2 * kv_heads * head_dim, hidden]: per head q | gate; then k; then v
  vt::Tensor q_norm;  // [head_dim], gain 1 + w
  vt::Tensor k_norm;  // [head_dim], gain 1 + w
  vt::Tensor o;       // [hidden, heads * head_dim]
};

struct LinearAttentionWeights {
  vt::Tensor
      qkvzba;  // [lin_channels + nv * dv + nv + nv, hidden]: in_proj_qkv; in_proj_z; in_proj_b; in_proj_a
  vt::Tensor conv;     // [lin_channels, conv_kernel]
  vt::Tensor a_log;    // [nv]
  vt::Tensor dt_bias;  // [nv]
  vt::Tensor norm;     // [dv], gain w
  vt::Tensor out;      // [hidden, nv * dv]
};

struct TargetLayerWeights {
  vt::Tensor norm1;               // input_layernorm [hidden], gain 1 + w
  vt::Tensor norm2;               // post_attention_layernorm [hidden], gain 1 + w
  vt::Tensor gate_up;             // [2 * mlp, hidden]: gate_proj; up_proj
  vt::Tensor down;                // [hidden, mlp]
  FullAttentionWeights full;      // of a full_attention block, else no data
  LinearAttentionWeights linear;  // of a linear_attention block, else no data
};

struct TargetWeights {
  TargetConfig config;
  vt::Tensor embedding;  // [vocab, hidden]
  vt::Tensor head;       // [vocab, hidden]; the embedding itself when tied
  vt::Tensor norm;       // [hidden], gain 1 + w
  std::vector<TargetLayerWeights> layers;
  std::unique_ptr<vt::TensorPool> pool;
};

// All norms of the draft have gain w.
struct DraftLayerWeights {
  vt::Tensor norm1, norm2;         // [hidden]
  vt::Tensor qkv;                  // [(heads + 2 * kv_heads) * head_dim, hidden]: q; k; v
  vt::Tensor qkv_bias;             // [(heads + 2 * kv_heads) * head_dim], or no data
  vt::Tensor q_norm, k_norm;       // [head_dim]
  vt::Tensor o;                    // [hidden, heads * head_dim]
  vt::Tensor o_bias;               // [hidden], or no data
  vt::Tensor gate_up, down;        // [2 * mlp, hidden], [hidden, mlp]
  vt::Tensor attention_base;       // attention_conv.base_kernel [2, taps, hidden]
  vt::Tensor attention_delta;      // attention_conv.kernel_projection [2 * taps * hidden / group, hidden]
  vt::Tensor mlp_base, mlp_delta;  // mlp_conv, the same shapes
};

struct DraftWeights {
  DraftConfig config;
  vt::Tensor fc;               // [hidden, taps * hidden]
  vt::Tensor hidden_norm;      // [hidden]
  vt::Tensor norm;             // [hidden]
  vt::Tensor selector_hidden;  // candidate_selector.hidden_projection [rank, hidden]
  vt::Tensor predecessor;      // [vocab, rank]
  vt::Tensor successor;        // [vocab, rank]
  std::vector<DraftLayerWeights> layers;
  std::unique_ptr<vt::TensorPool> pool;
};

}  // namespace warmleg::model
