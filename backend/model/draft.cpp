#include "backend/model/draft.h"

#include <cmath>

#include "backend/model/target.h"
#include "backend/vt/dispatch.h"

namespace warmleg::model {

using vt::DType;
using vt::kMaxRows;
using vt::Queue;
using vt::Run;
using vt::Tensor;

DraftState::DraftState(const DraftConfig& c, int64_t capacity_rows, vt::Backend& backend)
    : capacity(capacity_rows), pool(backend) {
  for (size_t i = 0; i < c.layers.size(); ++i) {
    k.push_back(pool.New(DType::f32, {capacity, c.kv_heads, c.head_dim}));
    v.push_back(pool.New(DType::f32, {capacity, c.kv_heads, c.head_dim}));
  }
}

Draft::Draft(const DraftWeights& weights, const TargetWeights& target, int64_t max_rows)
    : weights_(weights), target_(target), pool_(weights.pool->backend()) {
  const DraftConfig& c = weights.config;
  const int64_t q_width = c.heads * c.head_dim;
  const int64_t kv_width = c.kv_heads * c.head_dim;
  const int64_t drafts = kMaxRows - 1;
  for (Tensor* t : {&h_, &x_, &conv_, &out_, &normed_}) *t = pool_.New(DType::f32, {kMaxRows, c.hidden});
  delta_ = pool_.New(DType::f32, {kMaxRows, 2 * c.conv_taps * (c.hidden / c.conv_group)});
  qkv_ = pool_.New(DType::f32, {kMaxRows, q_width + 2 * kv_width});
  mixed_ = pool_.New(DType::f32, {kMaxRows, q_width});
  act_ = pool_.New(DType::f32, {kMaxRows, c.mlp});
  positions_ = pool_.New(DType::i32, {max_rows});
  ctx_ = pool_.New(DType::f32, {max_rows, c.hidden});
  ctx_kv_ = pool_.New(DType::f32, {max_rows, 2 * kv_width});
  logits_ = pool_.New(DType::f32, {drafts, target.config.vocab});
  hidden_ = pool_.New(DType::f32, {drafts, c.selector_rank});
  values_ = pool_.New(DType::f32, {drafts, c.selector_top_k});
  ids_ = pool_.New(DType::i32, {drafts, c.selector_top_k});
  edges_ = pool_.New(DType::f32, {drafts, c.selector_top_k, c.selector_top_k});
  q_ = pool_.New(DType::f32, {drafts, c.selector_top_k});
  const auto queue = pool_.backend().CreateQueue();
  inv_freq_ = UploadInvFreq(*queue, pool_, c.rope_theta, c.head_dim);
  pool_.backend().Synchronize(*queue);
}

void Draft::Append(Queue& queue, DraftState& state, const Tensor& taps, const Tensor& start,
                   vt::Precision precision) {
  const DraftConfig& c = weights_.config;
  const int64_t rows = taps.dim(0);
  const int64_t q_width = c.heads * c.head_dim;
  const int64_t kv_width = c.kv_heads * c.head_dim;
  const Tensor ctx = ctx_.Rows(0, rows);
  const Tensor kv = ctx_kv_.Rows(0, rows);
  const Tensor positions = positions_.Rows(0, rows);
  Run(queue, vt::PositionsArgs{start, positions});
  Run(queue, vt::MatMulArgs{taps, weights_.fc, {}, ctx, precision});
  Run(queue, vt::RmsNormArgs{ctx, weights_.hidden_norm, ctx, c.rms_eps});
  for (size_t layer = 0; layer < c.layers.size(); ++layer) {
    const DraftLayerWeights& w = weights_.layers[layer];
    const Tensor bias = w.qkv_bias ? w.qkv_bias.Rows(q_width, 2 * kv_width) : Tensor{};
    Run(queue, vt::MatMulArgs{ctx, w.qkv.Rows(q_width, 2 * kv_width), bias, kv, precision});
    vt::PrepareHeadsArgs prepare;
    prepare.k = kv.Cols(0, kv_width).SplitLast(c.kv_heads, c.head_dim);
    prepare.k_norm = w.k_norm;
    prepare.positions = positions;
    prepare.inv_freq = inv_freq_;
    prepare.eps = c.rms_eps;
    Run(queue, prepare);
    Run(queue, vt::IndexCopyArgs{kv.Cols(0, kv_width), positions,
                                 state.k[layer].Reshape({state.capacity, kv_width})});
    Run(queue, vt::IndexCopyArgs{kv.Cols(kv_width, kv_width), positions,
                                 state.v[layer].Reshape({state.capacity, kv_width})});
  }
}

void Draft::Conv(Queue& queue, const Tensor& y, const Tensor& base, int64_t rows, int side,
                 const Tensor& residual, const Tensor& out) {
  const DraftConfig& c = weights_.config;
  const Tensor delta = delta_.Rows(0, rows).Reshape({rows, 2, c.conv_taps, c.hidden / c.conv_group});
  Run(queue, vt::DFlashGroupedConvArgs{y, base, delta, residual, out, side});
}

void Draft::AttentionHalf(Queue& queue, const DraftLayerWeights& w, const DraftState& state, size_t layer,
                          int64_t rows, const Tensor& start) {
  const DraftConfig& c = weights_.config;
  const int64_t q_width = c.heads * c.head_dim;
  const int64_t kv_width = c.kv_heads * c.head_dim;
  const Tensor h = h_.Rows(0, rows);
  const Tensor x = x_.Rows(0, rows);
  const Tensor convolved = conv_.Rows(0, rows);
  const Tensor qkv = qkv_.Rows(0, rows);
  const Tensor positions = positions_.Rows(0, rows);
  Run(queue, vt::RmsNormArgs{h, w.norm1, x, c.rms_eps});
  Run(queue, vt::MatMulArgs{x, w.attention_delta, {}, delta_.Rows(0, rows)});
  Conv(queue, x, w.attention_base, rows, 0, {}, convolved);
  Run(queue, vt::MatMulArgs{convolved, w.qkv, w.qkv_bias, qkv});

  vt::DFlashBlockAttnArgs attention;
  attention.q = qkv.Cols(0, q_width).SplitLast(c.heads, c.head_dim);
  attention.k_block = qkv.Cols(q_width, kv_width).SplitLast(c.kv_heads, c.head_dim);
  attention.v_block = qkv.Cols(q_width + kv_width, kv_width).SplitLast(c.kv_heads, c.head_dim);
  vt::PrepareHeadsArgs prepare;
  prepare.q = attention.q;
  prepare.k = attention.k_block;
  prepare.q_norm = w.q_norm;
  prepare.k_norm = w.k_norm;
  prepare.positions = positions;
  prepare.inv_freq = inv_freq_;
  prepare.eps = c.rms_eps;
  Run(queue, prepare);
  const Tensor mixed = mixed_.Rows(0, rows);
  attention.k_ctx = state.k[layer];
  attention.v_ctx = state.v[layer];
  attention.start = start;
  attention.out = mixed.SplitLast(c.heads, c.head_dim);
  attention.scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  attention.causal = c.causal(layer);
  attention.window = static_cast<int>(c.window(layer));
  Run(queue, attention);
  Run(queue, vt::MatMulArgs{mixed, w.o, w.o_bias, out_.Rows(0, rows)});
  Conv(queue, out_.Rows(0, rows), w.attention_base, rows, 1, h, h);
}

void Draft::MlpHalf(Queue& queue, const DraftLayerWeights& w, int64_t rows) {
  const Tensor h = h_.Rows(0, rows);
  const Tensor x = x_.Rows(0, rows);
  const Tensor convolved = conv_.Rows(0, rows);
  Run(queue, vt::RmsNormArgs{h, w.norm2, x, weights_.config.rms_eps});
  Run(queue, vt::MatMulArgs{x, w.mlp_delta, {}, delta_.Rows(0, rows)});
  Conv(queue, x, w.mlp_base, rows, 0, {}, convolved);
  vt::MatMulArgs gate_up = {convolved, w.gate_up, {}, act_.Rows(0, rows)};
  gate_up.silu_mul = true;
  Run(queue, gate_up);
  Run(queue, vt::MatMulArgs{act_.Rows(0, rows), w.down, {}, out_.Rows(0, rows)});
  Conv(queue, out_.Rows(0, rows), w.mlp_base, rows, 1, h, h);
}

void Draft::Block(Queue& queue, const DraftState& state, const Tensor& ids, const Tensor& start) {
  const DraftConfig& c = weights_.config;
  const int64_t rows = ids.dim(0);
  const Tensor h = h_.Rows(0, rows);
  Run(queue, vt::EmbeddingArgs{target_.embedding, ids, h, c.embedding_scale});
  Run(queue, vt::PositionsArgs{start, positions_.Rows(0, rows)});
  for (size_t layer = 0; layer < c.layers.size(); ++layer) {
    AttentionHalf(queue, weights_.layers[layer], state, layer, rows, start);
    MlpHalf(queue, weights_.layers[layer], rows);
  }
  Run(queue, vt::RmsNormArgs{h, weights_.norm, normed_.Rows(0, rows), c.rms_eps});
}

void Draft::Select(Queue& queue, const Tensor& anchor, const Tensor& drafted, float temperature,
                   const vt::Draws& draws) {
  const DraftConfig& c = weights_.config;
  const int64_t n = drafted.dim(0);
  const Tensor rows = normed_.Rows(1, n);  // row 0 is the anchor: nothing is drafted for it
  const Tensor logits = logits_.Rows(0, n);
  const Tensor hidden = hidden_.Rows(0, n);
  const Tensor values = values_.Rows(0, n);
  const Tensor ids = ids_.Rows(0, n);
  const Tensor edges = edges_.Rows(0, n);
  Run(queue, vt::MatMulArgs{rows, target_.head, {}, logits});
  Run(queue, vt::TopKPairsArgs{logits, values, ids, c.output_multiplier, c.softcap});
  Run(queue, vt::MatMulArgs{rows, weights_.selector_hidden, {}, hidden});
  Run(queue,
      vt::SelectorEdgesArgs{values, ids, hidden, weights_.predecessor, weights_.successor, anchor, edges});
  Run(queue,
      vt::PathWalkArgs{edges, ids, drafted, temperature > 0 ? q_.Rows(0, n) : Tensor{}, draws, temperature});
}

uint64_t Draft::RoundBytes(int64_t context) const {
  const DraftConfig& c = weights_.config;
  uint64_t bytes = weights_.pool->bytes();
  // of the codebooks only the candidates' rows are read
  bytes -= static_cast<uint64_t>(weights_.predecessor.bytes() + weights_.successor.bytes());
  bytes += static_cast<uint64_t>(target_.head.bytes());
  for (size_t layer = 0; layer < c.layers.size(); ++layer) {
    const int64_t window = c.window(layer);
    const int64_t visible = window > 0 && window < context ? window : context;
    bytes += static_cast<uint64_t>(2 * visible * c.kv_heads * c.head_dim) * sizeof(float);
  }
  return bytes;
}

}  // namespace warmleg::model
