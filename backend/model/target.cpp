#include "backend/model/target.h"

#include <algorithm>
#include <cmath>

#include "backend/vt/dispatch.h"

namespace warmleg::model {

using vt::DType;
using vt::Queue;
using vt::Run;
using vt::Tensor;

namespace {

constexpr bool kOnePlus = true;  // every norm of the target but the gated one has gain 1 + w

int64_t ProjectionWidth(const TargetConfig& c, LayerType type) {
  if (type == LayerType::full_attention) return 2 * c.heads * c.head_dim + 2 * c.kv_heads * c.head_dim;
  return c.lin_channels() + c.lin_value_heads * c.lin_value_dim + 2 * c.lin_value_heads;
}

}  // namespace

Tensor WorkView(const Tensor& flat, int64_t rows, int64_t width) {
  return flat.Rows(0, rows * width).Reshape({rows, width});
}

Tensor UploadInvFreq(Queue& queue, vt::TensorPool& pool, double theta, int64_t dim) {
  std::vector<float> host;
  for (int64_t i = 0; i < dim / 2; ++i) {
    // float32 in the exponent and the power, as the reference implementation computes it
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    host.push_back(1.0F / std::pow(static_cast<float>(theta), exponent));
  }
  const Tensor t = pool.New(DType::f32, {dim / 2});
  pool.backend().CopyIn(queue, t.data, host.data(), host.size() * sizeof(float));
  return t;
}

TargetState::TargetState(const TargetConfig& c, int64_t capacity_rows, int64_t held_rows,
                         vt::Backend& backend)
    : capacity(capacity_rows), pool(backend) {
  int64_t blocks = 0;
  for (const LayerType type : c.layers) {
    const bool full = type == LayerType::full_attention;
    k.push_back(full ? pool.New(DType::f32, {capacity, c.kv_heads, c.head_dim}) : Tensor{});
    v.push_back(full ? pool.New(DType::f32, {capacity, c.kv_heads, c.head_dim}) : Tensor{});
    blocks += full ? 0 : 1;
  }
  position = pool.New(DType::i32, {1});
  if (blocks == 0) return;
  conv = pool.New(DType::f32, {blocks, c.conv_kernel - 1, c.lin_channels()});
  delta = pool.New(DType::f32, {blocks, c.lin_value_heads, c.lin_key_dim, c.lin_value_dim});
  if (held_rows == 0) return;
  held_proj = pool.New(DType::f32, {blocks, held_rows, ProjectionWidth(c, LayerType::linear_attention)});
  held_conv = pool.New(DType::f32, {blocks, held_rows, c.lin_channels()});
  held_changes = pool.New(DType::f32, {blocks, held_rows, c.lin_value_heads, c.lin_value_dim});
  held_decays = pool.New(DType::f32, {blocks, held_rows, c.lin_value_heads});
}

void TargetState::Reset(Queue& queue) {
  const auto zero = [&](const Tensor& t) {
    if (t) pool.backend().Fill(queue, t.data, 0, static_cast<size_t>(t.bytes()));
  };
  zero(conv);
  zero(delta);
  zero(position);
}

Target::Target(const TargetWeights& weights, int64_t max_rows)
    : weights_(weights), pool_(weights.pool->backend()) {
  const TargetConfig& c = weights.config;
  int64_t proj = 0;
  for (const LayerType type : c.layers) proj = std::max(proj, ProjectionWidth(c, type));
  const int64_t mixed = std::max(c.heads * c.head_dim, c.lin_value_heads * c.lin_value_dim);
  h_ = pool_.New(DType::f32, {max_rows, c.hidden});
  proj_ = pool_.New(DType::f32, {max_rows * proj});
  conv_ = pool_.New(DType::f32, {max_rows * c.lin_channels()});
  mixed_ = pool_.New(DType::f32, {max_rows * mixed});
  act_ = pool_.New(DType::f32, {max_rows, c.mlp});
  positions_ = pool_.New(DType::i32, {max_rows});
  const auto queue = pool_.backend().CreateQueue();
  inv_freq_ = UploadInvFreq(*queue, pool_, c.rope_theta, c.rotary_dim);
  pool_.backend().Synchronize(*queue);
}

void Target::Project(Queue& queue, const Tensor& norm, const Tensor& w, const Tensor& out,
                     vt::Precision precision) {
  Run(queue,
      vt::MatMulArgs{h_.Rows(0, out.dim(0)), w, {}, out, precision, norm, weights_.config.rms_eps, kOnePlus});
}

void Target::AddProduct(Queue& queue, const Tensor& x, const Tensor& w, vt::Precision precision) {
  vt::MatMulArgs args = {x, w, {}, h_.Rows(0, x.dim(0)), precision};
  args.residual = args.out;
  Run(queue, args);
}

void Target::FullAttention(Queue& queue, const TargetLayerWeights& layer_weights, TargetState& state,
                           size_t layer, int64_t rows, vt::Precision precision) {
  const FullAttentionWeights& w = layer_weights.full;
  const TargetConfig& c = weights_.config;
  const int64_t q_width = c.heads * c.head_dim;
  const int64_t kv_width = c.kv_heads * c.head_dim;
  const Tensor qkv = WorkView(proj_, rows, 2 * q_width + 2 * kv_width);
  Project(queue, layer_weights.norm1, w.qkv, qkv, precision);

  const Tensor q_gate = qkv.Cols(0, 2 * q_width).SplitLast(c.heads, 2 * c.head_dim);
  const Tensor q = q_gate.Cols(0, c.head_dim);
  const Tensor gate = q_gate.Cols(c.head_dim, c.head_dim);
  const Tensor k = qkv.Cols(2 * q_width, kv_width).SplitLast(c.kv_heads, c.head_dim);
  const Tensor positions = positions_.Rows(0, rows);
  vt::PrepareHeadsArgs prepare;
  prepare.q = q;
  prepare.k = k;
  prepare.q_norm = w.q_norm;
  prepare.k_norm = w.k_norm;
  prepare.positions = positions;
  prepare.inv_freq = inv_freq_;
  prepare.eps = c.rms_eps;
  prepare.one_plus = kOnePlus;
  Run(queue, prepare);
  Run(queue, vt::IndexCopyArgs{qkv.Cols(2 * q_width, kv_width), positions,
                               state.k[layer].Reshape({state.capacity, kv_width})});
  Run(queue, vt::IndexCopyArgs{qkv.Cols(2 * q_width + kv_width, kv_width), positions,
                               state.v[layer].Reshape({state.capacity, kv_width})});

  const Tensor mixed = WorkView(mixed_, rows, q_width);
  const Tensor heads = mixed.SplitLast(c.heads, c.head_dim);
  const float scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  Run(queue, vt::AttentionArgs{q, state.k[layer], state.v[layer], positions, heads, scale});
  Run(queue, vt::SigmoidGateArgs{heads, gate});
  AddProduct(queue, mixed, w.o, precision);
}

void Target::LinearAttention(Queue& queue, const TargetLayerWeights& layer_weights, TargetState& state,
                             int64_t block, int64_t rows, bool hold, vt::Precision precision) {
  const LinearAttentionWeights& w = layer_weights.linear;
  const TargetConfig& c = weights_.config;
  const int64_t key_width = c.lin_key_heads * c.lin_key_dim;
  const int64_t value_width = c.lin_value_heads * c.lin_value_dim;
  const int64_t channels = c.lin_channels();
  const Tensor proj = hold ? state.held_proj.At(block).Rows(0, rows)
                           : WorkView(proj_, rows, ProjectionWidth(c, LayerType::linear_attention));
  Project(queue, layer_weights.norm1, w.qkvzba, proj, precision);

  const Tensor mixed_in = hold ? state.held_conv.At(block).Rows(0, rows) : WorkView(conv_, rows, channels);
  Run(queue, vt::CausalConv1dArgs{proj.Cols(0, channels), w.conv, state.conv.At(block), mixed_in, hold});

  const Tensor mixed = WorkView(mixed_, rows, value_width);
  const Tensor heads = mixed.SplitLast(c.lin_value_heads, c.lin_value_dim);
  vt::GatedDeltaRuleArgs rule;
  rule.q = mixed_in.Cols(0, key_width).SplitLast(c.lin_key_heads, c.lin_key_dim);
  rule.k = mixed_in.Cols(key_width, key_width).SplitLast(c.lin_key_heads, c.lin_key_dim);
  rule.v = mixed_in.Cols(2 * key_width, value_width).SplitLast(c.lin_value_heads, c.lin_value_dim);
  rule.b = proj.Cols(channels + value_width, c.lin_value_heads);
  rule.a = proj.Cols(channels + value_width + c.lin_value_heads, c.lin_value_heads);
  rule.a_log = w.a_log;
  rule.dt_bias = w.dt_bias;
  rule.state = state.delta.At(block);
  rule.out = heads;
  if (hold) {
    rule.changes = state.held_changes.At(block).Rows(0, rows);
    rule.decays = state.held_decays.At(block).Rows(0, rows);
  }
  Run(queue, rule);

  const Tensor z = proj.Cols(channels, value_width).SplitLast(c.lin_value_heads, c.lin_value_dim);
  Run(queue, vt::GatedRmsNormArgs{heads, z, w.norm, heads, c.rms_eps});
  AddProduct(queue, mixed, w.out, precision);
}

void Target::Commit(Queue& queue, TargetState& state, const Tensor& last) const {
  if (!state.conv) return;
  const TargetConfig& c = weights_.config;
  const int64_t key_width = c.lin_key_heads * c.lin_key_dim;
  Run(queue, vt::CommitConvArgs{state.held_proj.Cols(0, c.lin_channels()), state.conv, last});
  const Tensor k = state.held_conv.Cols(key_width, key_width).SplitLast(c.lin_key_heads, c.lin_key_dim);
  Run(queue, vt::CommitDeltaArgs{k, state.held_changes, state.held_decays, state.delta, last});
}

void Target::Mlp(Queue& queue, const TargetLayerWeights& w, int64_t rows, vt::Precision precision) {
  const Tensor act = act_.Rows(0, rows);
  vt::MatMulArgs gate_up = {h_.Rows(0, rows),        w.gate_up, {}, act, precision, w.norm2,
                            weights_.config.rms_eps, kOnePlus};
  gate_up.silu_mul = true;
  Run(queue, gate_up);
  AddProduct(queue, act, w.down, precision);
}

void Target::Forward(Queue& queue, TargetState& state, const Pass& pass) {
  const TargetConfig& c = weights_.config;
  const int64_t rows = pass.ids.dim(0);
  const Tensor h = h_.Rows(0, rows);

  Run(queue, vt::EmbeddingArgs{weights_.embedding, pass.ids, h});
  Run(queue, vt::PositionsArgs{state.position, positions_.Rows(0, rows)});
  int64_t linear_blocks = 0;
  for (size_t layer = 0; layer < c.layers.size(); ++layer) {
    const TargetLayerWeights& w = weights_.layers[layer];
    if (c.layers[layer] == LayerType::full_attention) {
      FullAttention(queue, w, state, layer, rows, pass.precision);
    } else {
      LinearAttention(queue, w, state, linear_blocks++, rows, pass.hold, pass.precision);
    }
    Mlp(queue, w, rows, pass.precision);
    for (size_t i = 0; pass.taps && i < pass.tap_layers.size(); ++i) {
      if (pass.tap_layers[i] != static_cast<int64_t>(layer)) continue;
      Run(queue, vt::CopyRowsArgs{h, pass.taps.Cols(static_cast<int64_t>(i) * c.hidden, c.hidden)});
    }
  }
  if (pass.logits) {
    const int64_t n = pass.logits.dim(0);
    Run(queue, vt::MatMulArgs{h.Rows(rows - n, n),
                              weights_.head,
                              {},
                              pass.logits,
                              vt::Precision::exact,
                              weights_.norm,
                              c.rms_eps,
                              kOnePlus});
  }
}

uint64_t Target::StepBytes(int64_t context) const {
  const TargetConfig& c = weights_.config;
  uint64_t bytes = weights_.pool->bytes();
  // one row of the embedding is read, not the table; a tied one is read whole as the head
  if (!c.tied_head) bytes -= static_cast<uint64_t>(weights_.embedding.bytes());
  for (const LayerType type : c.layers) {
    if (type == LayerType::full_attention) {
      bytes += static_cast<uint64_t>(2 * context * c.kv_heads * c.head_dim) * sizeof(float);
    } else {
      const int64_t state =
          c.lin_value_heads * c.lin_key_dim * c.lin_value_dim + (c.conv_kernel - 1) * c.lin_channels();
      bytes += static_cast<uint64_t>(2 * state) * sizeof(float);
    }
  }
  return bytes;
}

}  // namespace warmleg::model
