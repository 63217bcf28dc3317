// The whole chain against token ids, logits and rounds of an independent float32 implementation.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "backend/decode/chain.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

using test::Bound;
using test::GoldenCase;
using test::Pair;

constexpr int64_t kCapacity = 1024;

Pair& ThePair(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Pair>> pairs;
  auto& slot = pairs[name];
  if (slot == nullptr) slot = std::make_unique<Pair>(name);
  return *slot;
}

void ExpectRounds(const std::vector<decode::Round>& got, const std::vector<decode::Round>& want) {
  ASSERT_GE(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE("round " + std::to_string(i));
    EXPECT_EQ(got[i].anchor, want[i].anchor);
    EXPECT_EQ(got[i].position, want[i].position);
    EXPECT_EQ(got[i].drafted, want[i].drafted);
    EXPECT_EQ(got[i].accepted, want[i].accepted);
    EXPECT_EQ(got[i].emitted, want[i].emitted);
  }
}

void ExpectLogits(const decode::Generation& g, const GoldenCase& c) {
  ASSERT_EQ(g.first_ids.size(), c.first_ids.size());
  std::map<int32_t, float> want;  // a near tie may order two ids differently: compare by id
  for (size_t i = 0; i < c.first_ids.size(); ++i) want[c.first_ids[i]] = c.first_values[i];
  EXPECT_EQ(g.first_ids[0], c.first_ids[0]);
  for (size_t i = 0; i < g.first_ids.size(); ++i) {
    ASSERT_TRUE(want.contains(g.first_ids[i])) << "id " << g.first_ids[i] << " is not among the golden top 8";
    EXPECT_NEAR(g.first_logits[i], want[g.first_ids[i]], 2e-3);
  }
}

// The case cut to `tokens`: output and rounds that a shorter limit does not change.
GoldenCase Cut(GoldenCase c, int64_t tokens, int64_t block) {
  if (tokens >= c.max_new_tokens) return c;
  c.max_new_tokens = tokens;
  c.greedy.resize(static_cast<size_t>(tokens));
  c.dflash2.resize(static_cast<size_t>(tokens));
  const int64_t limit = static_cast<int64_t>(c.prompt_ids.size()) + tokens;
  std::erase_if(c.rounds, [&](const decode::Round& r) { return r.position + block > limit; });
  return c;
}

class Goldens : public testing::TestWithParam<std::string> {};

TEST_P(Goldens, EveryCaseGivesTheGoldenIdsLogitsAndRounds) {
  const std::vector<GoldenCase> cases = test::LoadGoldens(GetParam());
  ASSERT_FALSE(cases.empty());
  const auto count = static_cast<size_t>(Bound("WARMLEG_TEST_CASES", static_cast<int64_t>(cases.size())));
  for (size_t i = 0; i < count; ++i) {
    Pair& pair = ThePair(cases[i].pair);
    const GoldenCase c =
        Cut(cases[i], Bound("WARMLEG_TEST_TOKENS", cases[i].max_new_tokens), pair.draft.config.block_size);
    SCOPED_TRACE(GetParam() + " case " + std::to_string(i) + " (" + c.pair + ")");
    const std::vector<int32_t> own_stops = pair.target.config.stop_ids;
    if (!c.stop_ids.empty()) pair.target.config.stop_ids = c.stop_ids;
    decode::Session session(pair.target, &pair.draft, kCapacity);
    decode::Options options;
    options.max_new_tokens = c.max_new_tokens;
    options.ignore_eos = c.ignore_eos;
    options.first_logits = 8;

    const decode::Generation plain = session.Plain(c.prompt_ids, options);
    EXPECT_EQ(plain.output_ids, c.greedy);
    EXPECT_TRUE(plain.rounds.empty());
    ExpectLogits(plain, c);

    const decode::Generation drafted = session.DFlash2(c.prompt_ids, options);
    EXPECT_EQ(drafted.output_ids, c.dflash2);
    ExpectLogits(drafted, c);
    if (c.max_new_tokens == cases[i].max_new_tokens) {
      EXPECT_EQ(drafted.rounds.size(), c.rounds.size());
    }
    ExpectRounds(drafted.rounds, c.rounds);
    EXPECT_EQ(drafted.finish, c.stop_ids.empty() || c.max_new_tokens < cases[i].max_new_tokens
                                  ? decode::Finish::length
                                  : decode::Finish::stop);
    pair.target.config.stop_ids = own_stops;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Goldens, testing::Values("tiny-code", "flat-tied", "extra"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(GoldenTaps, TheDraftIsFedTheOutputsOfTheConfiguredBlocks) {
  int checked = 0;
  std::vector<GoldenCase> cases = test::LoadGoldens("tiny-code");
  cases.resize(static_cast<size_t>(Bound("WARMLEG_TEST_CASES", static_cast<int64_t>(cases.size()))));
  for (const GoldenCase& c : cases) {
    Pair& pair = ThePair(c.pair);
    decode::Chain chain(pair.target, &pair.draft, kCapacity);
    chain.Begin(kCapacity, {});
    chain.Prefill(c.prompt_ids, vt::Precision::exact, true);
    const std::vector<float> row = chain.ReadTaps(static_cast<int64_t>(c.prompt_ids.size()) - 1);
    const auto hidden = static_cast<size_t>(pair.draft.config.hidden);
    for (size_t tap = 0; tap < c.taps_l2.size(); ++tap) {
      double sum = 0;
      for (size_t i = 0; i < hidden; ++i)
        sum += double{row[tap * hidden + i]} * double{row[tap * hidden + i]};
      EXPECT_NEAR(std::sqrt(sum), c.taps_l2[tap], 1e-4) << "tap " << tap;
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace warmleg
