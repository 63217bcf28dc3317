#include "backend/model/counts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "backend/model/random_weights.h"

namespace warmleg::model {

namespace {

constexpr uint64_t kFloat = sizeof(float);

uint64_t U(int64_t n) { return static_cast<uint64_t>(n); }

// What a weight is for, by its first part's name.
std::string_view Label(const SizedItem& item) {
  constexpr std::array<std::array<std::string_view, 2>, 9> labels = {
      {{"in_proj_qkv", "qkv|z|b|a"},
       {"q_proj.weight", "q|k|v"},
       {"o_proj.weight", "attention out"},
       {"out_proj", "linear attention out"},
       {"gate_proj", "gate|up"},
       {"down_proj", "down"},
       {"kernel_projection", "convolution kernels"},
       {"lm_head", "head"},
       {"embed_tokens", "head"}}};
  for (const auto& [name, label] : labels)
    if (item.name.find(name) != std::string::npos) return label;
  return "norms and small";
}

class Counter {
 public:
  explicit Counter(Counted* out) : out_(out) {}

  void Add(std::string_view part, std::string_view what, uint64_t bytes, int64_t calls = 1) {
    if (bytes == 0) return;
    for (CountedOp& op : out_->ops) {
      if (op.part != part || op.what != what) continue;
      op.calls += calls, op.bytes += bytes;
      return;
    }
    out_->ops.push_back({part, what, calls, bytes});
  }

 private:
  Counted* out_;
};

// One sweep of the target over `rows` rows at `context` positions.
void CountTarget(const TargetConfig& c, const std::vector<SizedItem>& items, int64_t context, int64_t rows,
                 std::string_view part, Counter* counter) {
  for (const SizedItem& item : items) {
    if (item.use == WeightUse::embedding) {
      counter->Add(part, "embedding rows", U(rows) * item.bytes() / U(item.shape[0]));
      if (!c.tied_head) continue;
    }
    counter->Add(part, Label(item), item.bytes());
  }
  const uint64_t state =
      U(c.lin_value_heads * c.lin_key_dim * c.lin_value_dim + (c.conv_kernel - 1) * c.lin_channels()) *
      kFloat;
  // Of a token: the convolution's input, its keys, the changes and the decays.
  const uint64_t held_row =
      U(c.lin_channels() + c.lin_key_heads * c.lin_key_dim + c.lin_value_heads * (c.lin_value_dim + 1)) *
      kFloat;
  for (const LayerType type : c.layers) {
    if (type == LayerType::full_attention)
      counter->Add(part, "KV", U(2 * (context + rows) * c.kv_heads * c.head_dim) * kFloat);
    else if (rows == 1)
      counter->Add(part, "recurrent states", 2 * state);
    else {  // held: read alone, and what the rows do to it is kept until it is known which of them count
      counter->Add(part, "recurrent states", state);
      counter->Add(part, "held rows", U(rows) * held_row);
      counter->Add("commit", "recurrent states", 2 * state);
      counter->Add("commit", "held rows", U(rows) * held_row);
    }
  }
  counter->Add(part, "logits", 2 * U(rows) * U(c.vocab) * kFloat);  // written and read
}

void CountDraft(const TargetConfig& target, const std::vector<SizedItem>& target_items, const DraftConfig& d,
                const std::vector<SizedItem>& items, int64_t context, int64_t rows, Counter* counter) {
  const uint64_t kv_rows = U(2 * d.kv_heads * d.head_dim);
  uint64_t head = 0;
  for (const SizedItem& item : target_items) {
    if (item.use == WeightUse::embedding)
      counter->Add("draft", "embedding rows", U(rows) * item.bytes() / U(item.shape[0]));
    if (item.use == WeightUse::head || (item.use == WeightUse::embedding && target.tied_head))
      head = item.bytes();
  }
  const auto drafts = U(rows - 1);
  counter->Add("select", "head", head);
  counter->Add("select", "logits", 2 * drafts * U(target.vocab) * kFloat);
  for (const SizedItem& item : items) {
    if (item.use == WeightUse::codebook) {
      // Of predecessors the anchor is one, then the candidates of the row before; of successors every
      // candidate.
      const bool predecessor = item.name.find("predecessor") != std::string::npos;
      const uint64_t k = U(d.selector_top_k);
      const uint64_t gathered = predecessor ? 1 + (drafts - 1) * k : drafts * k;
      counter->Add("select", "codebook rows", gathered * item.bytes() / U(item.shape[0]));
    } else if (item.name.find("hidden_projection") != std::string::npos) {
      counter->Add("select", "selector projection", item.bytes());
    } else if (item.name == "fc.weight" || item.name == "hidden_norm.weight") {
      counter->Add("commit", "taps to context", item.bytes());
    } else {
      counter->Add("draft", Label(item), item.bytes());
      if (item.name.ends_with("q_proj.weight"))  // the rows of k and v once more, for the context
        counter->Add("commit", "context k|v", kv_rows * item.bytes() / U(item.shape[0]));
    }
  }
  for (size_t layer = 0; layer < d.layers.size(); ++layer) {
    const int64_t window = d.window(layer);
    const int64_t visible = window > 0 ? std::min(window, context) : context;
    counter->Add("draft", "KV", kv_rows * U(visible) * kFloat);
    counter->Add("commit", "KV", kv_rows * U(rows) * kFloat);
  }
}

double Microseconds(uint64_t bytes, double roof_gb_s) { return static_cast<double>(bytes) / roof_gb_s / 1e3; }

}  // namespace

uint64_t SizedItem::bytes() const {
  return std::accumulate(shape.begin(), shape.end(), U(vt::SizeOf(dtype)),
                         [](uint64_t n, int64_t d) { return n * U(d); });
}

std::vector<SizedItem> SizedItems(const std::vector<WeightItem>& plan, const TensorMatch& match) {
  std::vector<SizedItem> out;
  for (size_t i = 0; i < plan.size(); ++i) {
    const vt::DType dtype = match.parts.empty() ? PublishedDType(plan[i]) : DeviceDType(match.parts[i]);
    out.push_back({plan[i].parts.front().name, plan[i].shape, dtype, plan[i].use});
  }
  return out;
}

uint64_t Counted::Bytes(std::string_view part) const {
  uint64_t sum = 0;
  for (const CountedOp& op : ops) sum += op.part == part ? op.bytes : 0;
  return sum;
}

uint64_t Counted::RoundBytes() const {
  return Bytes("draft") + Bytes("select") + Bytes("verify") + Bytes("commit");
}

Counted Count(const TargetConfig& target, const std::vector<SizedItem>& target_items,
              const DraftConfig* draft, const std::vector<SizedItem>* draft_items, int64_t context,
              int64_t rows) {
  Counted out;
  out.context = context, out.rows = rows;
  Counter counter(&out);
  CountTarget(target, target_items, context, 1, "step", &counter);
  if (draft == nullptr || rows < 2) return out;
  CountDraft(target, target_items, *draft, *draft_items, context, rows, &counter);
  CountTarget(target, target_items, context, rows, "verify", &counter);
  // In the order of a round.
  constexpr std::array<std::string_view, 5> order = {"step", "draft", "select", "verify", "commit"};
  const auto at = [&](const CountedOp& op) { return std::find(order.begin(), order.end(), op.part); };
  std::stable_sort(out.ops.begin(), out.ops.end(),
                   [&](const auto& a, const auto& b) { return at(a) < at(b); });
  return out;
}

std::string CountsText(const Counted& counted, std::optional<double> roof_gb_s) {
  std::string out =
      fmt::format("least bytes at context {}{}{}\n", counted.context,
                  counted.RoundBytes() > 0 ? fmt::format(", rounds of {} rows", counted.rows) : "",
                  roof_gb_s ? fmt::format(", floors at {:.0f} GB/s", *roof_gb_s) : "");
  const auto line = [&](std::string_view part, std::string_view what, const std::string& calls,
                        uint64_t bytes) {
    out +=
        fmt::format("  {:<7} {:<21} {:>5} {:>10.3f} MB", part, what, calls, static_cast<double>(bytes) / 1e6);
    out += roof_gb_s ? fmt::format(" {:>10.1f} us\n", Microseconds(bytes, *roof_gb_s)) : "\n";
  };
  std::string_view part;
  for (const CountedOp& op : counted.ops) {
    if (op.part != part) line(op.part, "in all", "", counted.Bytes(op.part));
    part = op.part;
    line("", op.what, fmt::format("{}x", op.calls), op.bytes);
  }
  if (counted.RoundBytes() > 0) {
    line("round", "in all", "", counted.RoundBytes());
    out +=
        fmt::format("  a round moves {:.3f} plain steps\n",
                    static_cast<double>(counted.RoundBytes()) / static_cast<double>(counted.Bytes("step")));
  }
  return out;
}

nlohmann::json CountsJson(const Counted& counted, std::optional<double> roof_gb_s) {
  nlohmann::json ops = nlohmann::json::array();
  for (const CountedOp& op : counted.ops) {
    nlohmann::json entry = {{"part", op.part}, {"what", op.what}, {"calls", op.calls}, {"bytes", op.bytes}};
    if (roof_gb_s) entry["floor_us"] = Microseconds(op.bytes, *roof_gb_s);
    ops.push_back(std::move(entry));
  }
  return {{"context", counted.context},
          {"rows", counted.rows},
          {"roof_gb_s", roof_gb_s ? nlohmann::json(*roof_gb_s) : nlohmann::json()},
          {"step_bytes", counted.Bytes("step")},
          {"round_bytes", counted.RoundBytes()},
          {"ops", ops}};
}

}  // namespace warmleg::model
