// Forward pass of the Qwen3.5 text model over device state. Semantics: docs/models.md.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/model/weights.h"
#include "backend/vt/backend.h"
#include "backend/vt/ops.h"

namespace warmleg::model {

// Device state of one sequence. A block whose rows may be taken back is held: its pass leaves the recurrent
// states alone and keeps what its rows would do to them, which Commit does for those that count. Taking rows
// back is doing nothing.
struct TargetState {
  // held_rows: of the longest block that is held; 0: none is.
  TargetState(const TargetConfig& config, int64_t capacity, int64_t held_rows, vt::Backend& backend);

  int64_t capacity = 0;  // positions the KV cache holds
  // One entry a full-attention block; the others have no data.
  std::vector<vt::Tensor> k, v;  // [capacity, kv_heads, head_dim]
  // Of the linear-attention blocks, in their order; no data when there is none.
  vt::Tensor conv;      // [blocks, conv_kernel - 1, lin_channels]
  vt::Tensor delta;     // [blocks, lin_value_heads, lin_key_dim, lin_value_dim]
  vt::Tensor position;  // [1] i32: position of the next row 0
  // What held blocks leave for Commit: the fused projections, the convolution's output, and what
  // GatedDeltaRule says of its rows.
  vt::Tensor held_proj;     // [blocks, held_rows, projection width]
  vt::Tensor held_conv;     // [blocks, held_rows, lin_channels]
  vt::Tensor held_changes;  // [blocks, held_rows, lin_value_heads, lin_value_dim]
  vt::Tensor held_decays;   // [blocks, held_rows, lin_value_heads]
  vt::TensorPool pool;

  // Before the first token: position 0, states zero.
  void Reset(vt::Queue& queue);
};

class Target {
 public:
  // max_rows: rows of the longest Forward.
  Target(const TargetWeights& weights, int64_t max_rows);

  struct Pass {
    vt::Tensor ids;                   // [rows] i32
    bool hold = false;                // the recurrent states stay as they are until Commit; rows <= held_rows
    vt::Tensor taps;                  // [rows, tap_layers * hidden] f32 for the draft, or no data
    std::vector<int64_t> tap_layers;  // blocks whose output goes to taps, in that order
    vt::Tensor logits;                // [n, vocab] f32 for the last n rows, or no data
    vt::Precision precision = vt::Precision::exact;
  };
  // Rows at positions state.position ..; does not move the position.
  void Forward(vt::Queue& queue, TargetState& state, const Pass& pass);
  // The recurrent states after rows 0 .. last of the pass that was held last.
  void Commit(vt::Queue& queue, TargetState& state, const vt::Tensor& last) const;

  const TargetWeights& weights() const { return weights_; }
  // Bytes of one plain step that must be read or written at the least: weights once, states, the KV rows of
  // `context`.
  uint64_t StepBytes(int64_t context) const;

 private:
  // out = norm(h) w^T; h += x w^T
  void Project(vt::Queue& queue, const vt::Tensor& norm, const vt::Tensor& w, const vt::Tensor& out,
               vt::Precision precision);
  void AddProduct(vt::Queue& queue, const vt::Tensor& x, const vt::Tensor& w, vt::Precision precision);
  void FullAttention(vt::Queue& queue, const TargetLayerWeights& layer_weights, TargetState& state,
                     size_t layer, int64_t rows, vt::Precision precision);
  // block: which of the linear-attention blocks it is.
  void LinearAttention(vt::Queue& queue, const TargetLayerWeights& layer_weights, TargetState& state,
                       int64_t block, int64_t rows, bool hold, vt::Precision precision);
  void Mlp(vt::Queue& queue, const TargetLayerWeights& w, int64_t rows, vt::Precision precision);

  const TargetWeights& weights_;
  vt::TensorPool pool_;
  vt::Tensor h_;                    // [max_rows, hidden]: the residual stream
  vt::Tensor proj_, conv_, mixed_;  // flat: fused projections, convolution output, attention output
  vt::Tensor act_;                  // [max_rows, mlp]
  vt::Tensor positions_;            // [max_rows] i32
  vt::Tensor inv_freq_;             // [rotary_dim / 2]
};

// theta^(-2i / dim) for i < dim / 2, as float32 on the device.
vt::Tensor UploadInvFreq(vt::Queue& queue, vt::TensorPool& pool, double theta, int64_t dim);

// The first rows * width elements of a flat work buffer as [rows, width].
vt::Tensor WorkView(const vt::Tensor& flat, int64_t rows, int64_t width);

}  // namespace warmleg::model
