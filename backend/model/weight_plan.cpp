#include "backend/model/weight_plan.h"

#include <fmt/core.h>

namespace warmleg::model {

namespace {

// Collects items under one layer's prefix.
class Plan {
 public:
  std::vector<WeightItem> items;
  std::string prefix;

  WeightItem& Add(vt::Tensor* to, std::vector<int64_t> shape, std::vector<WeightPart> parts) {
    for (WeightPart& part : parts) {
      part.name = prefix + part.name;
      if (!part.other_name.empty()) part.other_name = prefix + part.other_name;
    }
    items.push_back({to, std::move(shape), std::move(parts)});
    return items.back();
  }
  WeightItem& One(vt::Tensor* to, const std::string& name, const std::vector<int64_t>& shape,
                  const std::string& why = {}) {
    return Add(to, shape, {{name, shape, why, {}}});
  }
  void Norm(vt::Tensor* to, const std::string& name, int64_t n, bool one_plus) {
    One(to, name, {n}).one_plus = one_plus;
  }
};

void PlanFull(Plan* plan, const TargetConfig& c, FullAttentionWeights* w) {
  const int64_t q = c.heads * 2 * c.head_dim;
  const int64_t kv = c.kv_heads * c.head_dim;
  plan->Add(&w->qkv, {q + 2 * kv, c.hidden},
            {{"self_attn.q_proj.weight",
              {q, c.hidden},
              fmt::format("{} heads x (query, gate) x {}", c.heads, c.head_dim),
              {}},
             {"self_attn.k_proj.weight",
              {kv, c.hidden},
              fmt::format("{} KV heads x {}", c.kv_heads, c.head_dim),
              {}},
             {"self_attn.v_proj.weight",
              {kv, c.hidden},
              fmt::format("{} KV heads x {}", c.kv_heads, c.head_dim),
              {}}});
  plan->Norm(&w->q_norm, "self_attn.q_norm.weight", c.head_dim, true);
  plan->Norm(&w->k_norm, "self_attn.k_norm.weight", c.head_dim, true);
  plan->One(&w->o, "self_attn.o_proj.weight", {c.hidden, c.heads * c.head_dim},
            fmt::format("{} heads x {}", c.heads, c.head_dim));
}

void PlanLinear(Plan* plan, const TargetConfig& c, LinearAttentionWeights* w) {
  const int64_t channels = c.lin_channels();
  const int64_t nv = c.lin_value_heads;
  const int64_t z = nv * c.lin_value_dim;
  const std::string values = fmt::format("{} value heads", nv);
  const std::string mixed =
      fmt::format("2 x {} key heads x {} + {} x {}", c.lin_key_heads, c.lin_key_dim, values, c.lin_value_dim);
  plan->Add(
      &w->qkvzba, {channels + z + 2 * nv, c.hidden},
      {{"linear_attn.in_proj_qkv.weight", {channels, c.hidden}, mixed, {}},
       {"linear_attn.in_proj_z.weight", {z, c.hidden}, fmt::format("{} x {}", values, c.lin_value_dim), {}},
       {"linear_attn.in_proj_b.weight", {nv, c.hidden}, values, {}},
       {"linear_attn.in_proj_a.weight", {nv, c.hidden}, values, {}}});
  plan->Add(&w->conv, {channels, c.conv_kernel},
            {{"linear_attn.conv1d.weight", {channels, 1, c.conv_kernel}, "channels, 1, taps", {}}});
  plan->One(&w->a_log, "linear_attn.A_log", {nv}, values);
  plan->One(&w->dt_bias, "linear_attn.dt_bias", {nv}, values);
  plan->Norm(&w->norm, "linear_attn.norm.weight", c.lin_value_dim, false);
  plan->One(&w->out, "linear_attn.out_proj.weight", {c.hidden, z},
            fmt::format("{} x {}", values, c.lin_value_dim));
}

void PlanMlp(Plan* plan, int64_t hidden, int64_t mlp, vt::Tensor* gate_up, vt::Tensor* down) {
  plan->Add(gate_up, {2 * mlp, hidden},
            {{"mlp.gate_proj.weight", {mlp, hidden}, {}, {}}, {"mlp.up_proj.weight", {mlp, hidden}, {}, {}}});
  plan->One(down, "mlp.down_proj.weight", {hidden, mlp});
}

void PlanDraftLayer(Plan* plan, const DraftConfig& c, DraftLayerWeights* w) {
  const int64_t h = c.hidden;
  const int64_t q = c.heads * c.head_dim;
  const int64_t kv = c.kv_heads * c.head_dim;
  const std::string q_why = fmt::format("{} heads x {}", c.heads, c.head_dim);
  const std::string kv_why = fmt::format("{} KV heads x {}", c.kv_heads, c.head_dim);
  plan->Norm(&w->norm1, "input_layernorm.weight", h, false);
  plan->Norm(&w->norm2, "post_attention_layernorm.weight", h, false);
  plan->Add(&w->qkv, {q + 2 * kv, h},
            {{"self_attn.q_proj.weight", {q, h}, q_why, {}},
             {"self_attn.k_proj.weight", {kv, h}, kv_why, {}},
             {"self_attn.v_proj.weight", {kv, h}, kv_why, {}}});
  plan->Norm(&w->q_norm, "self_attn.q_norm.weight", c.head_dim, false);
  plan->Norm(&w->k_norm, "self_attn.k_norm.weight", c.head_dim, false);
  plan->One(&w->o, "self_attn.o_proj.weight", {h, q}, q_why);
  if (c.attention_bias) {
    plan->Add(&w->qkv_bias, {q + 2 * kv},
              {{"self_attn.q_proj.bias", {q}, q_why, {}},
               {"self_attn.k_proj.bias", {kv}, kv_why, {}},
               {"self_attn.v_proj.bias", {kv}, kv_why, {}}});
    plan->One(&w->o_bias, "self_attn.o_proj.bias", {h});
  }
  PlanMlp(plan, h, c.mlp, &w->gate_up, &w->down);
  const std::string base_why = fmt::format("2 sides, {} taps", c.conv_taps);
  const std::string delta_why = fmt::format("2 sides x {} taps x {} groups", c.conv_taps, h / c.conv_group);
  const int64_t delta = 2 * c.conv_taps * (h / c.conv_group);
  plan->One(&w->attention_base, "attention_conv.base_kernel", {2, c.conv_taps, h}, base_why);
  plan->One(&w->attention_delta, "attention_conv.kernel_projection.weight", {delta, h}, delta_why);
  plan->One(&w->mlp_base, "mlp_conv.base_kernel", {2, c.conv_taps, h}, base_why);
  plan->One(&w->mlp_delta, "mlp_conv.kernel_projection.weight", {delta, h}, delta_why);
}

}  // namespace

std::vector<WeightItem> PlanTarget(TargetWeights* weights, const std::string& prefix) {
  const TargetConfig& c = weights->config;
  weights->layers.resize(c.layers.size());
  Plan plan;
  plan.prefix = prefix;
  plan.One(&weights->embedding, "embed_tokens.weight", {c.vocab, c.hidden}).use = WeightUse::embedding;
  plan.Norm(&weights->norm, "norm.weight", c.hidden, true);
  for (size_t i = 0; i < c.layers.size(); ++i) {
    TargetLayerWeights& w = weights->layers[i];
    plan.prefix = fmt::format("{}layers.{}.", prefix, i);
    plan.Norm(&w.norm1, "input_layernorm.weight", c.hidden, true);
    plan.Norm(&w.norm2, "post_attention_layernorm.weight", c.hidden, true);
    if (c.layers[i] == LayerType::full_attention)
      PlanFull(&plan, c, &w.full);
    else
      PlanLinear(&plan, c, &w.linear);
    PlanMlp(&plan, c.hidden, c.mlp, &w.gate_up, &w.down);
  }
  plan.prefix.clear();
  if (!c.tied_head) plan.One(&weights->head, "lm_head.weight", {c.vocab, c.hidden}).use = WeightUse::head;
  return std::move(plan.items);
}

std::vector<WeightItem> PlanDraft(DraftWeights* weights) {
  const DraftConfig& c = weights->config;
  weights->layers.resize(c.layers.size());
  Plan plan;
  const auto taps = static_cast<int64_t>(c.tap_layers.size());
  plan.One(&weights->fc, "fc.weight", {c.hidden, taps * c.hidden},
           fmt::format("{} taps x {}", taps, c.hidden));
  plan.Norm(&weights->hidden_norm, "hidden_norm.weight", c.hidden, false);
  plan.Norm(&weights->norm, "norm.weight", c.hidden, false);
  const std::string selector = "candidate_selector.";
  plan.One(&weights->selector_hidden, selector + "hidden_projection.weight", {c.selector_rank, c.hidden},
           "rank, hidden");
  for (const auto& [to, name] : {std::pair(&weights->predecessor, "predecessor_codebook"),
                                 std::pair(&weights->successor, "successor_codebook")}) {
    WeightItem& item = plan.One(to, selector + name, {c.vocab, c.selector_rank}, "vocabulary, rank");
    item.use = WeightUse::codebook;
    item.parts[0].other_name = item.parts[0].name + ".weight";
  }
  for (size_t i = 0; i < c.layers.size(); ++i) {
    plan.prefix = fmt::format("layers.{}.", i);
    PlanDraftLayer(&plan, c, &weights->layers[i]);
  }
  return std::move(plan.items);
}

}  // namespace warmleg::model
