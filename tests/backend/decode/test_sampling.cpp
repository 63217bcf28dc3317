// Decoding at a temperature: the same tokens from the same seed on every device, and both arms alike in
// distribution. WARMLEG_TEST_TOKENS and WARMLEG_TEST_SEEDS bound what a slow device (sim) runs.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "backend/decode/chain.h"
#include "backend/vt/error.h"
#include "backend/vt/stats.h"
#include "tests/support/identities.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

using decode::Generation;
using decode::Options;
using decode::Session;
using test::Bound;
using test::ExpectIdentities;
using test::Pair;

constexpr int64_t kCapacity = 128;

const std::vector<int32_t>& Prompt() {
  static const std::vector<int32_t> ids = [] {
    std::vector<int32_t> start = test::LoadGoldens("tiny-code").front().prompt_ids;
    start.resize(9);
    return start;
  }();
  return ids;
}

Options Sampled(int64_t tokens, double temperature, uint64_t seed) {
  Options options;
  options.max_new_tokens = tokens;
  options.ignore_eos = true;
  options.sampling.temperature = temperature;
  options.sampling.seed = seed;
  return options;
}

void ExpectSame(const Generation& a, const Generation& b) {
  EXPECT_EQ(a.output_ids, b.output_ids);
  ASSERT_EQ(a.rounds.size(), b.rounds.size());
  for (size_t i = 0; i < a.rounds.size(); ++i) {
    EXPECT_EQ(a.rounds[i].drafted, b.rounds[i].drafted);
    EXPECT_EQ(a.rounds[i].accepted, b.rounds[i].accepted);
    EXPECT_EQ(a.rounds[i].emitted, b.rounds[i].emitted);
  }
}

TEST(Sampling, TheSameSeedGivesTheSameTokensOnTheCpuAndOnTheDevice) {
  const Pair cpu("tiny-code", vt::Device{});
  const Pair here("tiny-code");
  const int64_t tokens = Bound("WARMLEG_TEST_TOKENS", 64);
  Session on_cpu(cpu.target, &cpu.draft, kCapacity);
  Session on_device(here.target, &here.draft, kCapacity);
  for (int64_t seed = 1; seed <= Bound("WARMLEG_TEST_SEEDS", 8); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Options options = Sampled(tokens, 0.8, static_cast<uint64_t>(seed));
    if (seed % 2 == 0) options.sampling.top_k = 40, options.sampling.top_p = 0.95;
    const Generation plain = on_device.Plain(Prompt(), options);
    ExpectSame(plain, on_cpu.Plain(Prompt(), options));
    const Generation drafted = on_device.DFlash2(Prompt(), options);
    ExpectSame(drafted, on_cpu.DFlash2(Prompt(), options));
    for (const Generation* g : {&plain, &drafted}) {
      ExpectIdentities(*g);
      EXPECT_EQ(g->output_ids.size(), static_cast<size_t>(tokens));
      EXPECT_EQ(g->graph_refusal, "");
      EXPECT_FALSE(g->graph_replay_mismatch);
    }
  }
}

TEST(Sampling, SeedRequestAndTemperatureDecideAndNothingElse) {
  const Pair pair("tiny-code");
  const int64_t tokens = Bound("WARMLEG_TEST_TOKENS", 24);
  Session session(pair.target, &pair.draft, kCapacity);
  const Options first = Sampled(tokens, 3.0, 7);
  Options request = first;
  request.sampling.request = 1;
  const std::vector<int32_t> a = session.Plain(Prompt(), first).output_ids;
  const std::vector<int32_t> greedy = session.Plain(Prompt(), Sampled(tokens, 0, 7)).output_ids;
  EXPECT_NE(session.Plain(Prompt(), Sampled(tokens, 3.0, 8)).output_ids, a);
  EXPECT_NE(session.Plain(Prompt(), request).output_ids, a);
  EXPECT_NE(session.Plain(Prompt(), Sampled(tokens, 0.5, 7)).output_ids, a);
  EXPECT_EQ(session.Plain(Prompt(), first).output_ids, a);
  EXPECT_EQ(session.Plain(Prompt(), Sampled(tokens, 0, 8)).output_ids, greedy);
  const Generation drafted = session.DFlash2(Prompt(), first);
  ExpectSame(session.DFlash2(Prompt(), first), drafted);
  EXPECT_EQ(drafted.output_ids.front(), a.front()) << "the prefill's draw is the same in both arms";
}

TEST(Sampling, OneTokenLeftOrHardlyAnyTemperatureIsGreedy) {
  const Pair pair("tiny-code");
  const int64_t tokens = Bound("WARMLEG_TEST_TOKENS", 24);
  Session session(pair.target, &pair.draft, kCapacity);
  const std::vector<int32_t> greedy = session.Plain(Prompt(), Sampled(tokens, 0, 1)).output_ids;
  Options one = Sampled(tokens, 0.8, 1);
  one.sampling.top_k = 1;
  Options none = Sampled(tokens, 0.8, 2);
  none.sampling.top_p = 0;
  for (const Options& options : {one, none, Sampled(tokens, decode::kMinTemperature, 3)}) {
    EXPECT_EQ(session.Plain(Prompt(), options).output_ids, greedy);
  }
  EXPECT_EQ(session.DFlash2(Prompt(), one).output_ids, greedy);
}

// Three tokens of both arms over many seeds, as counts of what came out; rare outcomes are one cell.
TEST(Sampling, TheArmsAgreeInDistribution) {
  const Pair pair("tiny-code");
  Session session(pair.target, &pair.draft, kCapacity);
  const int64_t seeds = Bound("WARMLEG_TEST_SEEDS", 400);
  std::map<std::vector<int32_t>, std::array<double, 2>> seen;
  int64_t accepted = 0;
  int64_t drafted = 0;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    for (const bool drafting : {false, true}) {
      // other seeds, so that the arms' counts are independent
      Options options = Sampled(3, 2.0, static_cast<uint64_t>(2 * seed + (drafting ? 1 : 0)));
      options.sampling.top_k = 3;
      options.block_size = 3;
      const Generation g = drafting ? session.DFlash2(Prompt(), options) : session.Plain(Prompt(), options);
      ASSERT_EQ(g.output_ids.size(), 3U);
      seen[g.output_ids][drafting ? 1 : 0] += 1;
      accepted += g.counters.accepted;
      drafted += g.counters.drafted;
    }
  }
  if (seeds >= 100) {
    EXPECT_LT(accepted, drafted) << "nothing was ever rejected";
    EXPECT_GT(accepted, 0) << "nothing was ever accepted";
  }
  double statistic = 0;
  double cells = 0;
  std::array<double, 2> rare{};
  const auto add = [&](const std::array<double, 2>& counts) {
    if (counts[0] + counts[1] == 0) return;
    statistic += (counts[0] - counts[1]) * (counts[0] - counts[1]) / (counts[0] + counts[1]);
    cells += 1;
  };
  for (const auto& [ids, counts] : seen) {
    if (counts[0] + counts[1] >= 20) {
      add(counts);
    } else {
      rare[0] += counts[0], rare[1] += counts[1];
    }
  }
  add(rare);
  // the quantile 1 - 1e-5 by Wilson and Hilferty's approximation
  const double degrees = std::max(1.0, cells - 1);
  const double spread = 2 / (9 * degrees);
  EXPECT_LT(statistic, degrees * std::pow(1 - spread + 4.2649 * std::sqrt(spread), 3))
      << cells << " outcomes of " << seeds << " seeds";
  RecordProperty("outcomes", static_cast<int>(cells));
}

TEST(Sampling, MakesItsCallsOnce) {
  const Pair pair("tiny-code");
  Session session(pair.target, &pair.draft, kCapacity);
  Options options = Sampled(Bound("WARMLEG_TEST_TOKENS", 8), 0.8, 1);
  options.sampling.top_k = 40;
  const auto calls = [&](bool drafting) {
    const auto run = [&] {
      return drafting ? session.DFlash2(Prompt(), options) : session.Plain(Prompt(), options);
    };
    run();
    const std::vector<vt::OpTotals> before = vt::ProviderTotals();
    const Generation g = run();
    std::map<std::string, uint64_t> count;
    for (const vt::OpTotals& totals : vt::Difference(vt::ProviderTotals(), before)) {
      count[totals.op] += totals.calls;
    }
    count["rounds"] = static_cast<uint64_t>(g.counters.rounds);
    return count;
  };
  auto plain = calls(false);
  EXPECT_EQ(plain["RandomSample"], plain["rounds"] + 1);
  EXPECT_EQ(plain["ApplyTemperature"], plain["rounds"] + 1);
  EXPECT_EQ(plain["ApplyTopKTopP"], plain["rounds"] + 1);
  EXPECT_EQ(plain["ArgMax"] + plain["RejectionSample"] + plain["Softmax"], 0U);
  auto drafted = calls(true);
  EXPECT_EQ(drafted["RandomSample"], drafted["rounds"] + 1);
  EXPECT_EQ(drafted["RejectionSample"], drafted["rounds"]);
  EXPECT_EQ(drafted["Softmax"], drafted["rounds"]);
  EXPECT_EQ(drafted["PathWalk"], drafted["rounds"]);
  EXPECT_EQ(drafted["ArgMax"], 0U);
}

TEST(Sampling, ANanInTheLogitsIsRefusedByName) {
  Pair pair("tiny-code");
  vt::Backend& backend = pair.target.pool->backend();
  const auto queue = backend.CreateQueue();
  const std::vector<uint8_t> nans(static_cast<size_t>(pair.target.norm.bytes()), 0xff);
  backend.CopyIn(*queue, pair.target.norm.data, nans.data(), nans.size());
  backend.Synchronize(*queue);
  Session session(pair.target, nullptr, kCapacity);
  for (const double temperature : {0.0, 0.8}) {
    try {
      session.Plain(Prompt(), Sampled(2, temperature, 1));
      ADD_FAILURE() << "accepted";
    } catch (const vt::EnvironmentError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(temperature > 0 ? "op RandomSample" : "op ArgMax"));
      EXPECT_THAT(e.what(), testing::HasSubstr("holds a NaN"));
    }
  }
}

TEST(Sampling, BadSettingsAreRefusedWithTheValue) {
  const Pair pair("tiny-code");
  Session session(pair.target, nullptr, kCapacity);
  const auto message = [&](double temperature, int64_t top_k, double top_p) -> std::string {
    Options options = Sampled(2, temperature, 1);
    options.sampling.top_k = top_k, options.sampling.top_p = top_p;
    try {
      session.Plain(Prompt(), options);
    } catch (const vt::InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message(-1, 0, 1), "temperature is -1, it must be 0 (greedy) or in 0.001..100");
  EXPECT_THAT(message(0.0001, 0, 1), testing::HasSubstr("temperature is 0.0001"));
  EXPECT_THAT(message(101, 0, 1), testing::HasSubstr("temperature is 101"));
  EXPECT_THAT(message(std::numeric_limits<double>::quiet_NaN(), 0, 1),
              testing::HasSubstr("temperature is nan"));
  EXPECT_EQ(message(1, -2, 1), "top_k is -2, it must not be negative");
  EXPECT_EQ(message(1, 0, 1.5), "top_p is 1.5, it must be in 0..1");
  EXPECT_EQ(message(1, 10'000'000, 1), "accepted") << "more than there are: all";
}

}  // namespace
}  // namespace warmleg
