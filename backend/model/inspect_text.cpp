#include <fmt/core.h>
#include <fmt/ranges.h>

#include "backend/model/config_fields.h"
#include "backend/model/inspect.h"

namespace warmleg::model {

namespace {

using nlohmann::json;

constexpr const char* kTapConvention = "output of the 0-based target block, before the final norm";

template <class Map>
std::string BytesText(const Map& by_dtype) {
  std::string text;
  for (const auto& [dtype, bytes] : by_dtype)
    text += fmt::format("{}{} {:.6f} GB", text.empty() ? "" : ", ", dtype, static_cast<double>(bytes) / 1e9);
  return text;
}

std::string CausalText(const DraftConfig& d, size_t layer) {
  return fmt::format("{}{}", d.causal(layer) ? "causal" : "bidirectional in the block",
                     d.is_causal ? "" : " (is_causal absent)");
}

std::string TargetLines(const TargetConfig& t) {
  int64_t full = 0;
  for (const LayerType type : t.layers) full += type == LayerType::full_attention ? 1 : 0;
  std::string out = fmt::format(
      "  blocks        {} ({} linear, {} full attention), hidden {}, MLP {}, vocabulary {}, head {}\n",
      t.layers.size(), static_cast<int64_t>(t.layers.size()) - full, full, t.hidden, t.mlp, t.vocab,
      t.tied_head ? "tied" : "its own");
  out += fmt::format(
      "  attention     {} query / {} KV heads of {}, rope theta {} over {} entries, {} positions\n", t.heads,
      t.kv_heads, t.head_dim, t.rope_theta, t.rotary_dim, t.max_positions);
  out += fmt::format("  linear        {} key heads of {}, {} value heads of {}, convolution {}\n",
                     t.lin_key_heads, t.lin_key_dim, t.lin_value_heads, t.lin_value_dim, t.conv_kernel);
  out +=
      fmt::format("  names         {}*\n  stop ids      {}\n", t.tensor_prefix, fmt::join(t.stop_ids, ", "));
  return out;
}

std::string DraftLines(const DraftConfig& d) {
  std::string out =
      fmt::format("  layers        {}, hidden {}, MLP {}, vocabulary {}, {} query / {} KV heads of {}\n",
                  d.layers.size(), d.hidden, d.mlp, d.vocab, d.heads, d.kv_heads, d.head_dim);
  for (size_t i = 0; i < d.layers.size(); ++i)
    out +=
        fmt::format("    layer {:<5} {}, window {}, {}, rope theta {}, KV f32\n", i, Name(d.layers[i]),
                    d.window(i) > 0 ? std::to_string(d.window(i)) : "none", CausalText(d, i), d.rope_theta);
  out += fmt::format("  block         {} rows{}, mask token {}\n", d.block_size,
                     d.block_size == 1 ? " (plain decoding)" : "", d.mask_id);
  out += fmt::format("  convolution   {} taps, {} channels a group; selector rank {}, top {}\n", d.conv_taps,
                     d.conv_group, d.selector_rank, d.selector_top_k);
  out += fmt::format("  scales        output multiplier {}, soft cap {}, embedding scale {}{}\n",
                     d.output_multiplier, d.softcap > 0 ? fmt::format("{}", d.softcap) : "off",
                     d.embedding_scale, d.attention_bias ? ", attention biases" : "");
  out += fmt::format("  target taps   {} ({})\n", fmt::join(d.tap_layers, ", "), kTapConvention);
  return out;
}

std::string ModelText(const ModelReport& m) {
  const bool draft = m.kind == CheckpointKind::draft;
  std::string out = fmt::format("{}  {}\n", draft ? "draft " : "target", m.dir);
  if (m.checked) {
    out += draft ? DraftLines(m.draft) : TargetLines(m.target);
    const double parameters = static_cast<double>(m.parameters) / 1e9;
    if (m.tensors_used > 0)
      out += fmt::format("  used          {} tensors, {:.6f} G parameters\n  stored        {}\n",
                         m.tensors_used, parameters, BytesText(m.stored_bytes));
    else
      out += fmt::format("  from config   {:.6f} G parameters, no weights\n", parameters);
    out += fmt::format("  on the device {}\n", BytesText(m.compute_bytes));
    for (const auto& [group, skipped] : m.skipped)
      out += fmt::format("  skipped       {}* {} tensors, {} bytes\n", group, skipped.tensors, skipped.bytes);
  }
  for (const std::string& line : m.findings.shown) out += fmt::format("  note          {}\n", line);
  for (const std::string& line : m.findings.warned) out += fmt::format("  warning       {}\n", line);
  for (const std::string& line : m.findings.wrong) out += fmt::format("  wrong         {}\n", line);
  return out;
}

json TargetJson(const TargetConfig& t) {
  json layers = json::array();
  for (const LayerType type : t.layers) layers.push_back(Name(type));
  return {{"architecture", t.architecture},
          {"tensor_prefix", t.tensor_prefix},
          {"hidden", t.hidden},
          {"mlp", t.mlp},
          {"vocab", t.vocab},
          {"max_positions", t.max_positions},
          {"layer_types", layers},
          {"tied_head", t.tied_head},
          {"heads", t.heads},
          {"kv_heads", t.kv_heads},
          {"head_dim", t.head_dim},
          {"rotary_dim", t.rotary_dim},
          {"rope_theta", t.rope_theta},
          {"linear_key_heads", t.lin_key_heads},
          {"linear_value_heads", t.lin_value_heads},
          {"linear_key_dim", t.lin_key_dim},
          {"linear_value_dim", t.lin_value_dim},
          {"conv_kernel", t.conv_kernel},
          {"stop_ids", t.stop_ids}};
}

json DraftJson(const DraftConfig& d) {
  json layers = json::array();
  for (size_t i = 0; i < d.layers.size(); ++i)
    layers.push_back({{"type", Name(d.layers[i])},
                      {"window", d.window(i) > 0 ? json(d.window(i)) : json()},
                      {"causal", d.causal(i)},
                      {"rope_theta", d.rope_theta},
                      {"kv_dtype", "f32"}});
  return {{"architecture", d.architecture},
          {"hidden", d.hidden},
          {"mlp", d.mlp},
          {"vocab", d.vocab},
          {"heads", d.heads},
          {"kv_heads", d.kv_heads},
          {"head_dim", d.head_dim},
          {"layers", layers},
          {"is_causal", d.is_causal ? json(*d.is_causal) : json()},
          {"attention_bias", d.attention_bias},
          {"num_target_layers", d.num_target_layers},
          {"block_size", d.block_size},
          {"conv_kernel_size", d.conv_taps},
          {"conv_group_size", d.conv_group},
          {"mask_token_id", d.mask_id},
          {"selector_rank", d.selector_rank},
          {"selector_top_k", d.selector_top_k},
          {"target_layer_ids", d.tap_layers},
          {"tap_convention", kTapConvention},
          {"output_multiplier", d.output_multiplier},
          {"final_logit_softcapping", d.softcap > 0 ? json(d.softcap) : json()},
          {"input_embedding_scale", d.embedding_scale}};
}

json ModelJson(const ModelReport& m) {
  json out = {{"kind", m.kind == CheckpointKind::draft ? "draft" : "target"},
              {"dir", m.dir},
              {"ok", m.findings.ok()},
              {"wrong", m.findings.wrong},
              {"warned", m.findings.warned},
              {"shown", m.findings.shown}};
  if (!m.checked) return out;
  out["config"] = m.kind == CheckpointKind::draft ? DraftJson(m.draft) : TargetJson(m.target);
  out["tensors_used"] = m.tensors_used;
  out["parameters"] = m.parameters;
  out["stored_bytes"] = m.stored_bytes;
  out["compute_bytes"] = m.compute_bytes;
  out["skipped"] = json::object();
  for (const auto& [group, skipped] : m.skipped)
    out["skipped"][group] = {{"tensors", skipped.tensors}, {"bytes", skipped.bytes}};
  return out;
}

json BytesOrNull(uint64_t bytes) { return bytes > 0 ? json(bytes) : json(); }

}  // namespace

std::string InspectText(const InspectReport& report) {
  std::string out = ModelText(report.model);
  if (report.pair) out += ModelText(*report.pair);
  if (const uint64_t bytes = report.PlainStepBytes(); bytes > 0)
    out += fmt::format("bytes per token of a plain step   {} ({:.6f} GB)\n", bytes,
                       static_cast<double>(bytes) / 1e9);
  if (const uint64_t bytes = report.DraftRoundBytes(); bytes > 0)
    out += fmt::format("bytes of a draft and verify round {} ({:.6f} GB, {:.3f} plain steps)\n", bytes,
                       static_cast<double>(bytes) / 1e9,
                       static_cast<double>(bytes) / static_cast<double>(report.PlainStepBytes()));
  if (const auto counts = report.Counts(); counts && report.ok())
    out += CountsText(*counts, report.options.roof_gb_s);
  out += report.ok() ? "accepted\n" : fmt::format("refused: {} reasons\n", report.Reasons().size());
  return out;
}

json InspectJson(const InspectReport& report) {
  json out = {{"schema", "warmleg.inspect/1"},
              {"ok", report.ok()},
              {"wrong", report.Reasons()},
              {"plain_step_bytes", BytesOrNull(report.PlainStepBytes())},
              {"draft_round_bytes", BytesOrNull(report.DraftRoundBytes())}};
  const auto counts = report.Counts();
  out["counts"] = counts ? CountsJson(*counts, report.options.roof_gb_s) : json();
  out[report.model.kind == CheckpointKind::draft ? "draft" : "target"] = ModelJson(report.model);
  if (report.pair) out["target"] = ModelJson(*report.pair);
  return out;
}

}  // namespace warmleg::model
