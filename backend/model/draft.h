// Forward pass of the DFlash2 draft: context rows from the target's taps, one block, the candidate selector.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/model/weights.h"
#include "backend/vt/backend.h"
#include "backend/vt/ops.h"

namespace warmleg::model {

// The draft's context: keys and values of every token but the newest, appended once per token.
struct DraftState {
  DraftState(const DraftConfig& config, int64_t capacity, vt::Backend& backend);
  int64_t capacity = 0;
  std::vector<vt::Tensor> k, v;  // [capacity, kv_heads, head_dim] a layer
  vt::TensorPool pool;
};

class Draft {
 public:
  // The embedding and the head are the target's. max_rows: rows of the longest Append; blocks have at most
  // vt::kMaxRows.
  Draft(const DraftWeights& weights, const TargetWeights& target, int64_t max_rows);

  // Context rows for the tokens at positions start[0] ..: taps [rows, tap_layers * hidden].
  void Append(vt::Queue& queue, DraftState& state, const vt::Tensor& taps, const vt::Tensor& start,
              vt::Precision precision);

  // The block [anchor, mask, ...] at positions start[0] .. -> hidden rows, kept for Select. ids [rows] i32.
  void Block(vt::Queue& queue, const DraftState& state, const vt::Tensor& ids, const vt::Tensor& start);
  // Candidates, edges and the walk over rows 1.. of the last Block: drafted [rows - 1] i32. anchor [1] i32.
  // Greedy at temperature 0, else sampled with `draws`, and q() holds what was drawn from.
  void Select(vt::Queue& queue, const vt::Tensor& anchor, const vt::Tensor& drafted, float temperature = 0,
              const vt::Draws& draws = {});

  const DraftWeights& weights() const { return weights_; }
  // What the last Select saw, for tests and traces: [rows - 1, top_k].
  vt::Tensor candidates(int64_t drafted) const { return ids_.Rows(0, drafted); }
  vt::Tensor q(int64_t drafted) const { return q_.Rows(0, drafted); }
  vt::Tensor edges(int64_t drafted) const { return edges_.Rows(0, drafted); }
  uint64_t RoundBytes(int64_t context) const;  // least bytes of Block + Select + Append of one block

 private:
  void AttentionHalf(vt::Queue& queue, const DraftLayerWeights& w, const DraftState& state, size_t layer,
                     int64_t rows, const vt::Tensor& start);
  void MlpHalf(vt::Queue& queue, const DraftLayerWeights& w, int64_t rows);
  void Conv(vt::Queue& queue, const vt::Tensor& y, const vt::Tensor& base, int64_t rows, int side,
            const vt::Tensor& residual, const vt::Tensor& out);

  const DraftWeights& weights_;
  const TargetWeights& target_;
  vt::TensorPool pool_;
  // block work, [kMaxRows, ...]
  vt::Tensor h_, x_, conv_, out_, delta_, qkv_, mixed_, act_, normed_;
  vt::Tensor positions_;                 // [max_rows] i32
  vt::Tensor ctx_, ctx_kv_;              // [max_rows, hidden], [max_rows, 2 * kv_heads * head_dim]
  vt::Tensor logits_, hidden_;           // [kMaxRows - 1, vocab], [kMaxRows - 1, rank]
  vt::Tensor values_, ids_, edges_, q_;  // [kMaxRows - 1, top_k (, top_k)]
  vt::Tensor inv_freq_;
};

}  // namespace warmleg::model
