// Whether everything a draft checkpoint holds reaches the drafted block (D9 and every tensor), and whether a
// run makes the calls it must, no more and no fewer (W11).
#include <gtest/gtest.h>

#include <map>

#include "backend/decode/chain.h"
#include "backend/vt/stats.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

using test::Pair;

constexpr int64_t kCapacity = 256;
constexpr int64_t kTokens = 12;  // three rounds or more, the last one short

struct Drafted {
  std::vector<int32_t> ids;
  std::vector<float> edges;
  bool operator==(const Drafted&) const = default;
};

std::vector<int32_t> Prompt(const std::string& pair) { return test::LoadGoldens(pair).front().prompt_ids; }

// The first block after the prompt: tokens and every edge of the selector.
Drafted FirstBlock(const Pair& pair, const std::vector<int32_t>& prompt) {
  decode::Chain chain(pair.target, &pair.draft, kCapacity);
  const int width = static_cast<int>(pair.draft.config.block_size);
  chain.Begin(kCapacity, {});
  chain.Prefill(prompt, vt::Precision::exact, true);
  chain.EnqueueDraft(width);
  chain.EnqueueSelect(width);
  Drafted block;
  block.ids = chain.ReadDrafted(width);
  const vt::Tensor edges = chain.draft()->edges(width - 1);
  block.edges.resize(static_cast<size_t>(edges.count()));
  chain.backend().CopyOut(chain.queue(), block.edges.data(), edges.data, static_cast<size_t>(edges.bytes()));
  // Of the first row only the anchor's edges are written.
  const auto k = static_cast<size_t>(edges.dim(2));
  std::fill(block.edges.begin() + static_cast<long>(k), block.edges.begin() + static_cast<long>(k * k), 0.0F);
  return block;
}

std::vector<decode::Round> AllRounds(const Pair& pair, const std::vector<int32_t>& prompt) {
  decode::Session session(pair.target, &pair.draft, kCapacity);
  decode::Options options;
  options.max_new_tokens = kTokens;
  options.ignore_eos = true;
  return session.DFlash2(prompt, options).rounds;
}

bool SameDrafts(const std::vector<decode::Round>& a, const std::vector<decode::Round>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const decode::Round& x, const decode::Round& y) { return x.drafted == y.drafted; });
}

TEST(D9, TheSelectorsScalarsChangeTheDraftedBlocks) {
  Pair pair("flat-tied");
  const std::vector<int32_t> prompt = Prompt("flat-tied");
  const std::vector<decode::Round> before = AllRounds(pair, prompt);
  pair.draft.config.output_multiplier = 4.0F;
  EXPECT_FALSE(SameDrafts(before, AllRounds(pair, prompt))) << "output_multiplier is not applied";
  pair.draft.config.output_multiplier = 0.25F;
  EXPECT_TRUE(SameDrafts(before, AllRounds(pair, prompt)));
  pair.draft.config.softcap = 0.5F;
  EXPECT_FALSE(SameDrafts(before, AllRounds(pair, prompt))) << "final_logit_softcapping is not applied";
  pair.draft.config.softcap = 20.0F;
  pair.draft.config.embedding_scale = 0.1F;
  EXPECT_FALSE(SameDrafts(before, AllRounds(pair, prompt))) << "input_embedding_scale is not applied";
}

// Every tensor of the draft, by the name it has in weights.h.
std::map<std::string, vt::Tensor> Tensors(const model::DraftWeights& w) {
  std::map<std::string, vt::Tensor> all = {{"fc", w.fc},
                                           {"hidden_norm", w.hidden_norm},
                                           {"norm", w.norm},
                                           {"selector_hidden", w.selector_hidden},
                                           {"predecessor", w.predecessor},
                                           {"successor", w.successor}};
  for (size_t i = 0; i < w.layers.size(); ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    const model::DraftLayerWeights& l = w.layers[i];
    const std::vector<std::pair<const char*, vt::Tensor>> own = {{"norm1", l.norm1},
                                                                 {"norm2", l.norm2},
                                                                 {"qkv", l.qkv},
                                                                 {"qkv_bias", l.qkv_bias},
                                                                 {"q_norm", l.q_norm},
                                                                 {"k_norm", l.k_norm},
                                                                 {"o", l.o},
                                                                 {"o_bias", l.o_bias},
                                                                 {"gate_up", l.gate_up},
                                                                 {"down", l.down},
                                                                 {"attention_base", l.attention_base},
                                                                 {"attention_delta", l.attention_delta},
                                                                 {"mlp_base", l.mlp_base},
                                                                 {"mlp_delta", l.mlp_delta}};
    for (const auto& [name, tensor] : own) {
      if (tensor) all[at + name] = tensor;
    }
  }
  return all;
}

TEST(D9, EveryTensorOfTheDraftReachesTheSelectorsEdges) {
  for (const std::string name : {"flat-tied", "interval-bias"}) {
    const Pair pair(name);
    const std::vector<int32_t> prompt =
        name == "flat-tied" ? Prompt(name) : std::vector<int32_t>{5, 9, 200, 31, 7, 7, 120, 3};
    vt::Backend& backend = pair.draft.pool->backend();
    const auto queue = backend.CreateQueue();
    const Drafted before = FirstBlock(pair, prompt);
    size_t changed = 0;
    for (const auto& [tensor_name, tensor] : Tensors(pair.draft)) {
      const auto bytes = static_cast<size_t>(tensor.bytes());
      std::vector<std::byte> kept(bytes);
      backend.CopyOut(*queue, kept.data(), tensor.data, bytes);
      backend.Fill(*queue, tensor.data, 0, bytes);
      backend.Synchronize(*queue);
      EXPECT_NE(FirstBlock(pair, prompt).edges, before.edges)
          << name << ": " << tensor_name << " is loaded but unused";
      backend.CopyIn(*queue, tensor.data, kept.data(), bytes);
      backend.Synchronize(*queue);
      ++changed;
    }
    EXPECT_EQ(FirstBlock(pair, prompt), before);
    EXPECT_GE(changed, 6 + 12 * pair.draft.layers.size());
  }
}

std::map<std::string, uint64_t> Calls(const std::vector<vt::OpTotals>& totals) {
  std::map<std::string, uint64_t> calls;
  for (const vt::OpTotals& t : totals) {
    EXPECT_EQ(t.provider, "vt-native") << t.op;
    EXPECT_EQ(t.fallbacks, 0U) << t.op;
    calls[t.op] += t.calls;
  }
  return calls;
}

// Calls of one target pass: with logits, `taps` tap copies.
void AddTarget(std::map<std::string, uint64_t>& n, const model::TargetConfig& c, uint64_t taps) {
  const uint64_t layers = c.layers.size();
  uint64_t full = 0;
  for (const model::LayerType t : c.layers) full += t == model::LayerType::full_attention ? 1 : 0;
  const uint64_t linear = layers - full;
  n["Embedding"] += 1;
  n["Positions"] += 1;
  n["MatMul"] += 4 * layers + 1;
  n["PrepareHeads"] += full;
  n["IndexCopy"] += 2 * full;
  n["Attention"] += full;
  n["SigmoidGate"] += full;
  n["CausalConv1d"] += linear;
  n["GatedDeltaRule"] += linear;
  n["GatedRmsNorm"] += linear;
  n["CopyRows"] += taps;
}

void AddAppend(std::map<std::string, uint64_t>& n, uint64_t layers) {
  n["Positions"] += 1;
  n["MatMul"] += 1 + layers;
  n["RmsNorm"] += 1;
  n["PrepareHeads"] += layers;
  n["IndexCopy"] += 2 * layers;
}

void AddDraftBlock(std::map<std::string, uint64_t>& n, uint64_t layers) {
  n["CopyRows"] += 1;  // the anchor into the masked block
  n["Embedding"] += 1;
  n["Positions"] += 1;
  n["RmsNorm"] += 2 * layers + 1;
  n["MatMul"] += 6 * layers + 2;
  n["DFlashGroupedConv"] += 4 * layers;
  n["PrepareHeads"] += layers;
  n["DFlashBlockAttn"] += layers;
  n["TopKPairs"] += 1;
  n["SelectorEdges"] += 1;
  n["PathWalk"] += 1;
}

TEST(W11, ARunMakesExactlyTheCallsOfItsRounds) {
  const Pair pair("tiny-code");
  const auto layers = static_cast<uint64_t>(pair.draft.layers.size());
  decode::Session session(pair.target, &pair.draft, kCapacity);
  decode::Options options;
  options.max_new_tokens = kTokens;
  options.ignore_eos = true;
  session.DFlash2(Prompt("tiny-code"), options);  // first use of every width

  const std::vector<vt::OpTotals> before = vt::ProviderTotals();
  const decode::Generation g = session.DFlash2(Prompt("tiny-code"), options);
  const std::map<std::string, uint64_t> got = Calls(vt::Difference(vt::ProviderTotals(), before));

  std::map<std::string, uint64_t> want;
  AddTarget(want, pair.target.config, pair.draft.config.tap_layers.size());
  AddAppend(want, layers);
  want["ArgMax"] += 1;
  want["CopyRows"] += 1;
  for (size_t r = 0; r < g.rounds.size(); ++r) {
    AddDraftBlock(want, layers);
    AddTarget(want, pair.target.config, pair.draft.config.tap_layers.size());
    AddAppend(want, layers);
    want["ArgMax"] += 1;
    want["CopyRows"] += 1;  // the round's first position
    want["AcceptGreedy"] += 1;
    want["CommitConv"] += 1;
    want["CommitDelta"] += 1;
  }
  EXPECT_EQ(got, want);
  EXPECT_EQ(g.output_ids.size(), static_cast<size_t>(kTokens));
  ASSERT_FALSE(g.rounds.empty());
  EXPECT_EQ(g.rounds.front().drafted.size() + 1, static_cast<size_t>(pair.draft.config.block_size));
}

TEST(W11, APlainRunMakesExactlyTheCallsOfItsSteps) {
  const Pair pair("tiny-code");
  decode::Session session(pair.target, nullptr, kCapacity);
  decode::Options options;
  options.max_new_tokens = 10;
  options.ignore_eos = true;
  session.Plain(Prompt("tiny-code"), options);
  const std::vector<vt::OpTotals> before = vt::ProviderTotals();
  const decode::Generation g = session.Plain(Prompt("tiny-code"), options);
  const std::map<std::string, uint64_t> got = Calls(vt::Difference(vt::ProviderTotals(), before));
  std::map<std::string, uint64_t> want;
  for (int64_t pass = 0; pass < 1 + g.counters.rounds; ++pass) AddTarget(want, pair.target.config, 0);
  want.erase("CopyRows");
  want["CopyRows"] = 1;
  want["ArgMax"] = 1 + static_cast<uint64_t>(g.counters.rounds);
  want["AcceptGreedy"] = static_cast<uint64_t>(g.counters.rounds);
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace warmleg
