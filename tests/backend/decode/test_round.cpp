// The DFlash2 round: same output as plain decoding for every budget and accept pattern, and states that equal
// a fresh run's.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/decode/chain.h"
#include "backend/decode/sentinel.h"
#include "backend/vt/error.h"
#include "tests/support/identities.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

using decode::Options;
using decode::Session;
using test::ExpectIdentities;
using test::GoldenCase;
using test::Pair;

constexpr int64_t kCapacity = 256;

Pair& Tiny() {
  static Pair pair("tiny-code");
  return pair;
}

const GoldenCase& FirstCase() {
  static const GoldenCase c = test::LoadGoldens("tiny-code").front();
  return c;
}

Options Budget(int64_t n) {
  Options options;
  options.max_new_tokens = n;
  options.ignore_eos = true;
  return options;
}

TEST(Round, EveryBudgetGivesExactlyThatManyTokensAndPlainsOutput) {
  Pair& pair = Tiny();
  const int64_t block = pair.draft.config.block_size;
  Session session(pair.target, &pair.draft, kCapacity);
  for (int64_t n = 0; n <= 2 * block + 1; ++n) {
    SCOPED_TRACE("max_new_tokens " + std::to_string(n));
    const decode::Generation plain = session.Plain(FirstCase().prompt_ids, Budget(n));
    const decode::Generation drafted = session.DFlash2(FirstCase().prompt_ids, Budget(n));
    EXPECT_EQ(static_cast<int64_t>(plain.output_ids.size()), n);
    EXPECT_EQ(plain.output_ids, drafted.output_ids);
    ExpectIdentities(plain);
    ExpectIdentities(drafted);
    for (const decode::Round& r : drafted.rounds) {
      const int64_t remaining = static_cast<int64_t>(FirstCase().prompt_ids.size()) + n - 1 - r.position;
      EXPECT_EQ(static_cast<int64_t>(r.drafted.size()) + 1, std::min(block, remaining + 1));
    }
  }
}

TEST(Round, APromptInChunksLeavesTheStatesOfOnePass) {
  Pair& pair = Tiny();
  const std::vector<int32_t>& text = FirstCase().prompt_ids;
  std::vector<int32_t> prompt;
  while (prompt.size() < 2 * vt::kMaxRows + 3) prompt.push_back(text[prompt.size() % text.size()]);
  decode::Chain whole(pair.target, &pair.draft, kCapacity);
  decode::Chain chunked(pair.target, &pair.draft, kCapacity, vt::kMaxRows);
  for (decode::Chain* chain : {&whole, &chunked}) chain->Begin(kCapacity, {});
  EXPECT_EQ(whole.Prefill(prompt, vt::Precision::exact, true),
            chunked.Prefill(prompt, vt::Precision::exact, true));
  const decode::StateDump expected = whole.DumpStates();
  const decode::StateDump actual = chunked.DumpStates();
  EXPECT_EQ(actual.covered, expected.covered);
  ASSERT_EQ(actual.tensors.size(), expected.tensors.size());
  for (size_t t = 0; t < expected.tensors.size(); ++t) {
    SCOPED_TRACE(expected.tensors[t].first);
    const std::vector<float>& want = expected.tensors[t].second;
    ASSERT_EQ(actual.tensors[t].second.size(), want.size());
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      worst = std::max(worst, std::abs(actual.tensors[t].second[i] - want[i]) / (1.0 + std::abs(want[i])));
    }
    EXPECT_LT(worst, 2e-3);
  }
}

TEST(Round, SmallerBlocksGiveTheSameOutput) {
  Pair& pair = Tiny();
  Session session(pair.target, &pair.draft, kCapacity);
  for (int block = 1; block <= pair.draft.config.block_size; ++block) {
    Options options = Budget(40);
    options.block_size = block;
    const decode::Generation g = session.DFlash2(FirstCase().prompt_ids, options);
    EXPECT_EQ(g.output_ids, std::vector<int32_t>(FirstCase().greedy.begin(), FirstCase().greedy.begin() + 40))
        << block;
    ExpectIdentities(g);
  }
}

// Relative to the largest value of the tensor: single values may be near zero.
void ExpectClose(const decode::StateDump& got, const decode::StateDump& want, double tolerance,
                 const std::string& only = "") {
  ASSERT_EQ(got.covered, want.covered);
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  for (size_t i = 0; i < got.tensors.size(); ++i) {
    const auto& [name, values] = got.tensors[i];
    if (!name.starts_with(only)) continue;
    ASSERT_EQ(values.size(), want.tensors[i].second.size()) << name;
    double scale = 0;
    double worst = 0;
    for (size_t k = 0; k < values.size(); ++k) {
      scale = std::max(scale, std::abs(double{want.tensors[i].second[k]}));
      worst = std::max(worst, std::abs(double{values[k]} - double{want.tensors[i].second[k]}));
    }
    EXPECT_LE(worst, tolerance * scale) << name;
  }
}

// The states a plain run of single steps has when they cover `covered` tokens.
decode::StateDump SingleSteps(Pair& pair, const std::vector<int32_t>& prompt, int64_t covered) {
  decode::Chain chain(pair.target, nullptr, kCapacity);
  chain.Begin(kCapacity, {});
  chain.Prefill(prompt, vt::Precision::exact, false);
  for (auto at = static_cast<int64_t>(prompt.size()); at < covered; ++at) {
    chain.EnqueuePlainStep();
    chain.ReadResult(1);
  }
  return chain.DumpStates();
}

decode::StateDump OnePrefill(Pair& pair, std::vector<int32_t> tokens, int64_t covered) {
  tokens.resize(static_cast<size_t>(covered));
  decode::Chain chain(pair.target, &pair.draft, kCapacity);
  chain.Begin(kCapacity, {});
  chain.Prefill(tokens, vt::Precision::exact, true);
  return chain.DumpStates();
}

class ForcedPattern : public testing::TestWithParam<std::string> {};

TEST_P(ForcedPattern, StatesAfterEveryRoundEqualAFreshRun) {
  Pair pair(GetParam());
  const int k = static_cast<int>(pair.draft.config.block_size) - 1;
  const std::vector<int> pattern = {k, 0, 1, k - 1, 0, 0, k};
  const std::vector<int32_t> prompt = test::LoadGoldens(GetParam()).front().prompt_ids;
  int64_t total = 1;
  for (const int accepted : pattern) total += accepted + 1;

  Session session(pair.target, &pair.draft, kCapacity);
  const std::vector<int32_t> reference = session.Plain(prompt, Budget(total + k)).output_ids;
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), reference.begin(), reference.end());

  size_t made = 1;
  std::vector<decode::StateDump> dumps;  // before each round's verify: the states after the round before
  Options options = Budget(total + k);
  options.redraft = [&](int64_t round, std::span<int32_t> drafted) {
    dumps.push_back(session.chain().DumpStates());
    if (static_cast<size_t>(round) >= pattern.size()) return;
    const int accept = pattern[static_cast<size_t>(round)];
    for (size_t i = 0; i < drafted.size(); ++i) {
      const int32_t right = reference[made + i];
      drafted[i] = i < static_cast<size_t>(accept)
                       ? right
                       : (right + 1) % static_cast<int32_t>(pair.target.config.vocab);
    }
    made += static_cast<size_t>(accept) + 1;
  };
  const decode::Generation g = session.DFlash2(prompt, options);
  EXPECT_EQ(g.output_ids, reference);
  ASSERT_GT(dumps.size(), pattern.size());
  for (size_t r = 0; r < pattern.size(); ++r) {
    SCOPED_TRACE("round " + std::to_string(r));
    EXPECT_EQ(g.rounds[r].accepted, pattern[r]);
    const decode::StateDump& dump = dumps[r + 1];
    decode::StateDump target_only = dump;
    std::erase_if(target_only.tensors, [](const auto& t) { return t.first.starts_with("draft"); });
    ExpectClose(target_only, SingleSteps(pair, prompt, dump.covered), 0.0);
    ExpectClose(dump, OnePrefill(pair, all, dump.covered), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, ForcedPattern, testing::Values("tiny-code", "flat-tied"),
                         [](const auto& param) {
                           return param.param == "tiny-code" ? "tiny_code" : "flat_tied";
                         });

TEST(Round, StatesCoverEverythingButTheNewestTokenAfterEachCut) {
  Pair& pair = Tiny();
  const std::vector<int32_t>& prompt = FirstCase().prompt_ids;
  for (int64_t n = 1; n <= 20; ++n) {
    Session session(pair.target, &pair.draft, kCapacity);
    session.DFlash2(prompt, Budget(n));
    const decode::StateDump dump = session.chain().DumpStates();
    EXPECT_EQ(dump.covered, static_cast<int64_t>(prompt.size()) + n - 1);
    decode::StateDump target_only = dump;
    std::erase_if(target_only.tensors, [](const auto& t) { return t.first.starts_with("draft"); });
    ExpectClose(target_only, SingleSteps(pair, prompt, dump.covered), 0.0);
  }
}

TEST(Round, APlainStepAfterARoundAndTheReverseKeepTheOutput) {
  Pair& pair = Tiny();
  const std::vector<int32_t>& prompt = FirstCase().prompt_ids;
  decode::Chain chain(pair.target, &pair.draft, kCapacity);
  chain.Begin(kCapacity, {});
  std::vector<int32_t> output = {chain.Prefill(prompt, vt::Precision::exact, true)};
  for (const int width : {8, 1, 3, 1, 1, 5, 2, 8}) {
    if (width == 1) {
      // A round of one row drafts nothing; Commit appends its context row as any other round's.
      chain.EnqueueVerify(1);
      chain.EnqueueCommit(1);
    } else {
      chain.EnqueueDraft(width);
      chain.EnqueueSelect(width);
      chain.EnqueueVerify(width);
      chain.EnqueueCommit(width);
    }
    const decode::StepResult step = chain.ReadResult(width);
    output.insert(output.end(), step.tokens.begin(), step.tokens.end());
  }
  ASSERT_LE(output.size(), FirstCase().greedy.size());
  EXPECT_EQ(output, std::vector<int32_t>(FirstCase().greedy.begin(),
                                         FirstCase().greedy.begin() + static_cast<long>(output.size())));
}

TEST(Session, LongShortLongGiveTheirFreshResultsAndRoundCounts) {
  Pair& pair = Tiny();
  const std::vector<GoldenCase> cases = test::LoadGoldens("tiny-code");
  Session session(pair.target, &pair.draft, kCapacity);
  for (const size_t i : {size_t{3}, size_t{19}, size_t{3}, size_t{3}}) {
    const decode::Generation g = session.DFlash2(cases[i].prompt_ids, Budget(64));
    Session fresh(pair.target, &pair.draft, kCapacity);
    const decode::Generation f = fresh.DFlash2(cases[i].prompt_ids, Budget(64));
    EXPECT_EQ(g.output_ids, f.output_ids);
    ASSERT_EQ(g.rounds.size(), f.rounds.size());
    for (size_t r = 0; r < g.rounds.size(); ++r) {
      EXPECT_EQ(g.rounds[r].drafted, f.rounds[r].drafted);
      EXPECT_EQ(g.rounds[r].accepted, f.rounds[r].accepted);
    }
  }
}

TEST(Session, TimesAddUpAndMarginsMatchTheOutput) {
  Pair& pair = Tiny();
  Session session(pair.target, &pair.draft, kCapacity);
  Options options = Budget(32);
  options.record_margins = true;
  const decode::Generation plain = session.Plain(FirstCase().prompt_ids, options);
  EXPECT_EQ(plain.margins.size(), plain.output_ids.size());
  for (const float m : plain.margins) EXPECT_GE(m, 0.0F);

  const decode::Generation g = session.DFlash2(FirstCase().prompt_ids, Budget(64));
  const decode::Times& t = g.times;
  EXPECT_GT(t.prefill_s, 0);
  EXPECT_GT(t.draft_s, 0);
  EXPECT_GT(t.select_s, 0);
  EXPECT_GT(t.verify_s, 0);
  EXPECT_GT(t.commit_s, 0);
  EXPECT_LE(t.prefill_s + t.decode_s, t.e2e_s * (1 + 1e-9));
  EXPECT_NEAR(t.draft_s + t.select_s + t.verify_s + t.commit_s + t.host_s + t.unaccounted_s, t.decode_s,
              1e-9);
}

TEST(Session, BadInputIsRefusedWithTheValue) {
  Pair& pair = Tiny();
  Session session(pair.target, &pair.draft, 32);
  const auto message = [&](const std::vector<int32_t>& prompt, Options options) -> std::string {
    try {
      session.DFlash2(prompt, options);
    } catch (const vt::InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_NE(message({}, Budget(4)).find("prompt is empty"), std::string::npos);
  EXPECT_NE(message({1, 2048}, Budget(4)).find("2048 at index 1"), std::string::npos);
  EXPECT_NE(message({-1}, Budget(4)).find("-1 at index 0"), std::string::npos);
  EXPECT_NE(message({1}, Budget(5000)).find("max_position_embeddings 4096"), std::string::npos);
  EXPECT_NE(message({1}, Budget(32)).find("capacity 32"), std::string::npos);
  EXPECT_NE(message({1}, Budget(-1)).find("-1"), std::string::npos);
  Options wide = Budget(4);
  wide.block_size = 9;
  EXPECT_NE(message({1}, wide).find("block_size 9"), std::string::npos);
}

TEST(Sentinel, EveryRunStartsFromTheSameState) {
  Pair& pair = Tiny();
  decode::Sentinel sentinel(pair.target, FirstCase().prompt_ids, 6);
  EXPECT_GT(sentinel.Run(), 0);
  const std::vector<int32_t> first = sentinel.last_tokens();
  EXPECT_GT(sentinel.Run(), 0);
  EXPECT_EQ(sentinel.last_tokens(), first);
  EXPECT_EQ(first, std::vector<int32_t>(FirstCase().greedy.begin() + 1, FirstCase().greedy.begin() + 7));
}

}  // namespace
}  // namespace warmleg
