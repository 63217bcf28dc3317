#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "harness/judge/leg_rules.h"

namespace warmleg::judge {
namespace {

using ::testing::HasSubstr;

record::Counters Good() {
  record::Counters c;
  c.rounds = 87, c.bonus = 87, c.drafted = 259, c.accepted = 167, c.committed = 254;
  c.prefill_made = 1, c.output_tokens = 255, c.prompt_tokens = 40;
  c.accepted_at = {70, 50, 30, 17};
  return c;
}

record::Times GoodTimes() {
  record::Times t;
  t.prefill_s = 0.3, t.ttft_s = 0.31, t.decode_s = 2.0, t.e2e_s = 2.4;
  return t;
}

TEST(LegRules, AcceptanceNumbersOfL27) {
  const record::Rates r = DeriveRates(Good(), GoodTimes());
  EXPECT_NEAR(*r.accepted_per_drafted, 0.6448, 5e-5);
  EXPECT_NEAR(*r.accepted_per_round, 1.9195, 5e-5);
  EXPECT_NEAR(*r.committed_per_round, 2.9195, 5e-5);
}

TEST(LegRules, SpeedNumbersOfL28) {
  record::Counters c;
  c.committed = 255, c.output_tokens = 256, c.rounds = 255, c.bonus = 255, c.prefill_made = 1;
  record::Times t;
  t.ttft_s = 0.30011, t.prefill_s = 0.30011, t.e2e_s = 2.59683, t.decode_s = 2.59683 - 0.30011;
  const record::Rates r = DeriveRates(c, t);
  EXPECT_NEAR(*r.decode_tok_s, 111.03, 0.005);
  EXPECT_NEAR(*r.e2e_tok_s, 98.58, 0.005);
  EXPECT_EQ(r.accepted_per_drafted, std::nullopt);
  EXPECT_EQ(r.prefill_tok_s, std::nullopt);
}

TEST(LegRules, NothingCommittedIsNoRate) {
  record::Counters c;
  c.output_tokens = 1, c.prefill_made = 1;
  const record::Rates r = DeriveRates(c, GoodTimes());
  EXPECT_EQ(r.decode_tok_s, std::nullopt);
  EXPECT_TRUE(r.e2e_tok_s);
  EXPECT_EQ(r.accepted_per_round, std::nullopt);
  EXPECT_EQ(r.committed_per_round, std::nullopt);
  EXPECT_EQ(DeriveRates(Good(), {}).decode_tok_s, std::nullopt);
}

TEST(LegRules, CountersThatAgree) {
  EXPECT_TRUE(CheckCounters(Good(), false).empty());
  record::Counters trimmed = Good();
  trimmed.stop_trimmed = 2, trimmed.budget_trimmed = 3, trimmed.committed -= 5, trimmed.output_tokens -= 5;
  EXPECT_TRUE(CheckCounters(trimmed, false).empty());
  EXPECT_TRUE(CheckCounters({}, true).empty());
}

TEST(LegRules, EachCounterChangedAloneIsFound) {
  using Member = int64_t record::Counters::*;
  for (const Member member :
       {&record::Counters::rounds, &record::Counters::accepted, &record::Counters::bonus,
        &record::Counters::committed, &record::Counters::stop_trimmed, &record::Counters::budget_trimmed,
        &record::Counters::prefill_made, &record::Counters::output_tokens}) {
    for (const int64_t by : {-1, 1}) {
      record::Counters c = Good();
      c.*member += by;
      EXPECT_FALSE(CheckCounters(c, false).empty());
    }
  }
  record::Counters c = Good();
  c.accepted_at[3] += 1;
  EXPECT_EQ(CheckCounters(c, false).size(), 1U);
  c = Good(), c.drafted = 166;
  ASSERT_EQ(CheckCounters(c, false).size(), 1U);
  EXPECT_THAT(CheckCounters(c, false)[0].text, HasSubstr("accepted <= drafted"));
  EXPECT_FALSE(CheckCounters(Good(), true).empty());
}

// Any sequence of rounds that a decoder can make satisfies the identities.
TEST(LegRules, RandomDecodesAgree) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    record::Counters c;
    c.accepted_at.assign(8, 0);
    int64_t left = static_cast<int64_t>(random() % 40) + 1;
    c.prefill_made = 1, c.output_tokens = 1, --left;
    while (left > 0) {
      const int64_t drafts = std::min<int64_t>(7, left);
      const auto accepted = static_cast<int64_t>(random() % static_cast<uint32_t>(drafts + 1));
      ++c.rounds, ++c.bonus, c.drafted += drafts, c.accepted += accepted;
      for (int64_t j = 0; j < accepted; ++j) ++c.accepted_at[static_cast<size_t>(j)];
      const int64_t kept = std::min(accepted + 1, left);
      c.budget_trimmed += accepted + 1 - kept;
      c.committed += kept, c.output_tokens += kept, left -= kept;
    }
    EXPECT_TRUE(CheckCounters(c, false).empty());
  }
}

TEST(LegRules, Times) {
  EXPECT_TRUE(CheckTimes(Good(), GoodTimes()).empty());
  record::Times t = GoodTimes();
  t.decode_s = 2.2;
  ASSERT_EQ(CheckTimes(Good(), t).size(), 1U);
  EXPECT_THAT(CheckTimes(Good(), t)[0].text, HasSubstr("prefill_s + decode_s <= e2e_s"));
  for (const auto member : {&record::Times::prefill_s, &record::Times::ttft_s, &record::Times::decode_s,
                            &record::Times::e2e_s, &record::Times::draft_s, &record::Times::host_s}) {
    t = GoodTimes();
    t.*member = -0.001;
    EXPECT_FALSE(CheckTimes(Good(), t).empty());
    t.*member = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(CheckTimes(Good(), t).empty());
  }
  t = GoodTimes(), t.ttft_s.reset();
  EXPECT_FALSE(CheckTimes(Good(), t).empty());
  t = GoodTimes(), t.decode_s = 0;
  EXPECT_FALSE(CheckTimes(Good(), t).empty());
  t = GoodTimes(), t.unaccounted_s = -0.05;
  EXPECT_TRUE(CheckTimes(Good(), t).empty());
  t.unaccounted_s = -0.2;
  EXPECT_FALSE(CheckTimes(Good(), t).empty());
}

record::Provider Calls(const char* op, const char* provider, int64_t calls) {
  record::Provider p;
  p.op = op, p.device = "rocm:0", p.asked = "vt-native", p.provider = provider, p.calls = calls;
  return p;
}

TEST(LegRules, ReferenceTierOnADeviceOnly) {
  Leg leg;
  leg.providers.push_back(Calls("MatMul", "vt-native", 9));
  EXPECT_TRUE(CheckProviders(leg).empty());
  leg.providers.push_back(Calls("TopK", "vt-cpu-ref", 3));
  ASSERT_EQ(CheckProviders(leg).size(), 1U);
  EXPECT_EQ(CheckProviders(leg)[0].value, 3);
  EXPECT_THAT(CheckProviders(leg)[0].text, HasSubstr("TopK on rocm:0"));
  leg.providers[1].device = "cpu";
  EXPECT_TRUE(CheckProviders(leg).empty());
}

TEST(LegRules, ImplausibleRate) {
  Leg leg;
  leg.counters = Good(), leg.times = GoodTimes();
  leg.read_bytes_per_round = 2e9;  // 87 rounds in 2 s: 87 GB/s
  EXPECT_TRUE(CheckPlausible(leg, 87 / 1.19).empty());
  EXPECT_EQ(CheckPlausible(leg, 87 / 1.21).size(), 1U);
  EXPECT_TRUE(CheckPlausible(leg, std::nullopt).empty());
  EXPECT_NEAR(*ReadRateGbS(leg), 87, 1e-9);
}

}  // namespace
}  // namespace warmleg::judge
