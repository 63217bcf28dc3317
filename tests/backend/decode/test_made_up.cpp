// Made-up weights and acceptance on the device of WARMLEG_TEST_DEVICE: the bits that the formula says,
// activations that stay finite, and rounds that accept what was drawn.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "backend/backends.h"
#include "backend/decode/chain.h"
#include "backend/decode/generate.h"
#include "backend/decode/simulate.h"
#include "backend/model/counts.h"
#include "backend/model/random_weights.h"
#include "backend/model/target.h"
#include "backend/vt/made_up.h"
#include "backend/vt/random_bits.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

constexpr const char* kTarget = "scenarios/checkpoints/tiny-code/target";
constexpr const char* kDraft = "scenarios/checkpoints/tiny-code/draft";

vt::Backend& Device() {
  vt::RegisterBackends();
  return vt::GetBackend(test::TestDevice());
}

template <class T>
std::vector<T> Read(const vt::Tensor& t) {
  const auto queue = Device().CreateQueue();
  std::vector<T> host(static_cast<size_t>(t.count()));
  Device().CopyOut(*queue, host.data(), t.data, static_cast<size_t>(t.bytes()));
  return host;
}

TEST(MadeUp, FillHasTheBitsOfTheFormula) {
  const auto queue = Device().CreateQueue();
  vt::TensorPool pool(Device());
  // Not a multiple of a group, and a part that begins off the alignment of a group.
  const vt::Tensor all = pool.New(vt::DType::bf16, {2051});
  const vt::Tensor part = all.Rows(3, 2046);
  Device().Fill(*queue, all.data, 0x11, static_cast<size_t>(all.bytes()));
  vt::FillRandom(*queue, part, {.key = 77, .amplitude = 0.03125F, .centre = 0.3F});
  Device().Synchronize(*queue);  // Read has a queue of its own
  const auto halves = Read<uint16_t>(all);
  for (size_t i = 0; i < halves.size(); ++i) {
    if (i < 3 || i >= 2049) {
      EXPECT_EQ(halves[i], 0x1111) << i;
      continue;
    }
    const uint64_t word = vt::RandomWord(77, (i - 3) / 4);
    EXPECT_EQ(halves[i], vt::RoundToBf16(vt::FillValue(word, static_cast<int>((i - 3) % 4), 0.03125F, 0.3F)))
        << i;
  }
  const vt::Tensor wide = pool.New(vt::DType::f32, {1022});
  vt::FillRandom(*queue, wide, {.key = 5, .amplitude = 1, .centre = 0});
  Device().Synchronize(*queue);
  const auto values = Read<float>(wide);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], vt::FillValue(vt::RandomWord(5, i / 4), static_cast<int>(i % 4), 1, 0)) << i;
    sum += values[i], squares += values[i] * values[i];
  }
  EXPECT_NEAR(sum / 1022, 0, 0.06);
  EXPECT_NEAR(squares / 1022, 1.0 / 3, 0.03);
}

// Known values of the first words: a change of the formula changes every made-up workload.
TEST(MadeUp, TheStreamIsPinned) {
  EXPECT_EQ(vt::Mix64(0x9e3779b97f4a7c15U),
            0xe220a8397b1dcdafU);  // the first output of SplitMix64 from seed 0
  EXPECT_EQ(vt::RandomWord(0, 0), 0xe220a8397b1dcdafU);
  EXPECT_NE(vt::RandomWord(0, 1), vt::RandomWord(1, 0));
  EXPECT_EQ(vt::RoundToBf16(1.00390625F), 0x3f80);  // halfway: to even
  EXPECT_EQ(vt::RoundToBf16(1.01171875F), 0x3f82);
}

std::vector<int32_t> Forced(std::vector<int32_t> counts, int32_t round, std::vector<int32_t> block,
                            std::vector<int32_t> target) {
  const auto queue = Device().CreateQueue();
  vt::TensorPool pool(Device());
  const auto upload = [&](const std::vector<int32_t>& host) {
    const vt::Tensor t = pool.New(vt::DType::i32, {static_cast<int64_t>(host.size())});
    Device().CopyIn(*queue, t.data, host.data(), host.size() * sizeof(int32_t));
    return t;
  };
  const vt::Tensor at = upload({round});
  const vt::Tensor out = upload(target);
  vt::ForceAccept(*queue, {.counts = upload(counts), .round = at, .block = upload(block), .target = out});
  Device().Synchronize(*queue);
  EXPECT_EQ(Read<int32_t>(at).front(), round + 1);
  return Read<int32_t>(out);
}

TEST(MadeUp, ForcedAcceptanceMatchesSoManyDraftsAndNoMore) {
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(Forced({2, 0}, 0, {9, 1, 2, 3}, {50, 51, 52, 53}), (Ids{1, 2, 52, 53}));
  EXPECT_EQ(Forced({2, 0}, 1, {9, 1, 2, 3}, {50, 51, 52, 53}), (Ids{50, 51, 52, 53}));
  EXPECT_EQ(Forced({2, 0}, 2, {9, 1, 2, 3}, {50, 51, 52, 53}), (Ids{1, 2, 52, 53}));  // begins again
  EXPECT_EQ(Forced({7}, 0, {9, 1, 2, 3}, {50, 51, 52, 53}), (Ids{1, 2, 3, 53}));      // all there are
  EXPECT_EQ(Forced({1}, 0, {9, 1, 2, 3}, {1, 2, 3, 4}), (Ids{1, 1, 3, 4}));  // the target agreed: it must not
  EXPECT_EQ(Forced({0}, 0, {9, 0, 2}, {0, 2, 4}), (Ids{1, 2, 4}));
}

TEST(MadeUp, DrawnCountsAreFloorOrCeilingWithTheMean) {
  for (const double committed : {1.0, 2.5, 5.34, 8.0}) {
    const std::vector<int32_t> counts = decode::SimulatedAccepted(committed, 7, 1000);
    ASSERT_EQ(counts.size(), 1000U);
    for (const int32_t c : counts) {
      EXPECT_GE(c + 1, std::floor(committed));
      EXPECT_LE(c + 1, std::ceil(committed));
    }
    for (size_t from = 0; from < 1000; from += 100) {
      const auto first = counts.begin() + static_cast<std::ptrdiff_t>(from);
      EXPECT_NEAR(std::accumulate(first, first + 100, 0) / 100.0 + 1, committed, 0.011);
    }
  }
  EXPECT_EQ(decode::SimulatedAccepted(5.34, 7, 60), decode::SimulatedAccepted(5.34, 7, 60));
  EXPECT_NE(decode::SimulatedAccepted(5.34, 7, 60), decode::SimulatedAccepted(5.34, 8, 60));
}

TEST(MadeUp, WeightsAreThoseOfTheirNamesWhateverTheyAreFusedWith) {
  model::LoadReport report;
  const model::TargetWeights w = model::MakeRandomTarget(kTarget, 11, Device(), &report);
  EXPECT_EQ(report.bytes, w.pool->bytes());
  const model::TargetWeights again = model::MakeRandomTarget(kTarget, 11, Device());
  const model::TargetWeights other = model::MakeRandomTarget(kTarget, 12, Device());
  const vt::Tensor& fused = w.layers[0].linear.qkvzba;
  EXPECT_EQ(Read<uint16_t>(fused), Read<uint16_t>(again.layers[0].linear.qkvzba));
  EXPECT_NE(Read<uint16_t>(fused), Read<uint16_t>(other.layers[0].linear.qkvzba));
  EXPECT_NE(Read<uint16_t>(fused), Read<uint16_t>(w.layers[1].linear.qkvzba));
  EXPECT_EQ(w.layers[0].linear.a_log.dtype, vt::DType::f32);
  EXPECT_EQ(w.embedding.dtype, vt::DType::bf16);
  model::LoadReport second;
  model::MakeRandomTarget(kTarget, 12, Device(), &second);
  EXPECT_NE(report.hash, second.hash);
}

TEST(MadeUp, CountsAreWhatTheForwardPassSaysOfItself) {
  const model::TargetWeights target = model::MakeRandomTarget(kTarget, 11, Device());
  const model::CheckedTarget checked = model::CheckTargetConfig(kTarget);
  const model::CheckedDraft draft = model::CheckDraftConfig(kDraft, &target.config);
  const auto items = model::SizedItems(checked.plan, checked.match);
  const auto draft_items = model::SizedItems(draft.plan, draft.match);
  const model::Counted counted =
      model::Count(target.config, items, &draft.weights.config, &draft_items, 100, 8);
  const model::Target forward(target, 8);
  const uint64_t row = 192 * 2, new_kv = 2 * 2 * 2 * 64 * 4,
                 logits = 2 * 2048 * 4;  // 2 full blocks, 2 KV heads
  EXPECT_EQ(counted.Bytes("step"), forward.StepBytes(100) + row + new_kv + logits);
  // Of 8 rows: the weights once, the states read alone, 7 more rows of everything that is a row, and what the
  // commit needs of each row.
  const uint64_t channels = 2 * 2 * 32 + 6 * 32;
  const uint64_t states = 6 * (6 * 32 * 32 + 3 * channels) * 4;
  const uint64_t held = 6 * 8 * (channels + 2 * 32 + 6 * 32 + 6) * 4;
  EXPECT_EQ(counted.Bytes("verify"), counted.Bytes("step") - states + 7 * (row + new_kv + logits) + held);
  // 7 rows: of predecessors the anchor and 6 x 16 candidates, of successors 7 x 16.
  const uint64_t codebooks = (1 + 6 * 16 + 7 * 16) * 32 * 2;
  EXPECT_EQ(counted.Bytes("select"), 2048 * 192 * 2 + 7 * logits + codebooks + 32 * 192 * 2);
  EXPECT_EQ(counted.RoundBytes(), counted.Bytes("draft") + counted.Bytes("select") + counted.Bytes("verify") +
                                      counted.Bytes("commit"));
  // Three layers see the whole context of 100 but for their window of 96.
  const uint64_t kv = 3 * 2 * 2 * 64 * 4;
  uint64_t draft_bytes = 0;
  for (const model::SizedItem& item : draft_items)
    if (item.name.starts_with("layers.") || item.name == "norm.weight") draft_bytes += item.bytes();
  EXPECT_EQ(counted.Bytes("draft"), draft_bytes + 8 * row + 96 * kv);
  EXPECT_EQ(counted.Bytes("commit"),
            192 * 3 * 192 * 2 + 192 * 2 + 3 * 2 * 2 * 64 * 192 * 2 + 8 * kv + 2 * states + held);
}

TEST(MadeUp, RoundsAcceptWhatWasDrawnAndActivationsAreFinite) {
  const model::TargetWeights target = model::MakeRandomTarget(kTarget, 11, Device());
  const model::DraftWeights draft = model::MakeRandomDraft(kDraft, target.config, 11, Device());
  decode::Session session(target, &draft, 64);
  const std::vector<int32_t> counts = {3, 0, 2, 7};
  session.chain().SimulateAccepted(counts);
  decode::Options options;
  options.max_new_tokens = 20;
  options.ignore_eos = true;
  options.first_logits = 8;
  const std::vector<int32_t> prompt = {5, 900, 33, 1, 77};
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second one replays graphs where the device has them
    const decode::Generation g = session.DFlash2(prompt, options);
    ASSERT_GE(g.rounds.size(), 4U);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(g.rounds[i].accepted, counts[i]) << "round " << i;
      EXPECT_EQ(g.rounds[i].emitted, counts[i] + 1) << "round " << i;
      for (int j = 0; j < g.rounds[i].accepted; ++j) {
        const auto at =
            static_cast<size_t>(g.rounds[i].position) - prompt.size() + 1 + static_cast<size_t>(j);
        EXPECT_EQ(g.output_ids[at], g.rounds[i].drafted[static_cast<size_t>(j)]);
      }
    }
    EXPECT_FALSE(g.graph_replay_mismatch);
    for (const float logit : g.first_logits) EXPECT_TRUE(std::isfinite(logit));
    EXPECT_GT(g.first_logits.front(), g.first_logits.back());
  }
  for (const auto& [name, values] : session.chain().DumpStates().tensors)
    for (const float v : values) ASSERT_TRUE(std::isfinite(v)) << name;
}

}  // namespace
}  // namespace warmleg
