#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/judge/pairs.h"
#include "harness/record/json.h"
#include "tests/harness/judge/campaign_fixture.h"

namespace warmleg::judge {
namespace {

using record::Code;
using record::MakeReason;
using record::Result;
using record::State;
using record::Verdict;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

double Rate(const Result& r, const char* arm, const char* name = "decode_tok_s") {
  return r.summary.at(arm).at(name).value.value();
}

TEST(Campaign, GoodOneIsVerified) {
  Result r = MakeCampaign();
  Judge(r, DevicePolicy());
  EXPECT_EQ(r.verdict, Verdict::verified);
  EXPECT_THAT(r.reasons, IsEmpty());
  EXPECT_THAT(r.warnings, IsEmpty());
  EXPECT_EQ(ExitCode(r), 0);
  EXPECT_NEAR(Rate(r, "plain"), 100, 1e-9);
  EXPECT_NEAR(Rate(r, "dflash2"), 200, 1e-9);
  EXPECT_NEAR(*r.speedup->decode->value, 2, 1e-12);
  EXPECT_NEAR(*r.speedup->decode->all_pairs_value, 2, 1e-12);
  EXPECT_EQ(r.speedup->decode->n, 4);
  EXPECT_EQ(r.speedup->decode->pairs, 16);
  EXPECT_NEAR(*r.speedup->break_even_committed_per_round, 1.5, 1e-12);
  EXPECT_NEAR(Rate(r, "dflash2", "committed_per_round"), 3, 1e-12);
  EXPECT_EQ(r.summary["plain"]["decode_tok_s"].unit, "tok/s");
  EXPECT_EQ(r.summary["plain"]["decode_tok_s"].better, "higher");
  EXPECT_EQ(r.processes[0].ratio_to_best, 1);
}

TEST(Campaign, ColdLegsKeepTheirRatesAndEnterNothing) {
  Result r = MakeCampaign();
  Slow(LegOf(r, 0, 0, "plain"), 10);
  Judge(r, DevicePolicy());
  const record::Leg& cold = LegOf(r, 0, 0, "plain");
  EXPECT_TRUE(cold.valid);
  EXPECT_FALSE(cold.counted);
  EXPECT_NEAR(*cold.rates.decode_tok_s, 10, 1e-9);
  EXPECT_NEAR(Rate(r, "plain"), 100, 1e-9);
}

TEST(Campaign, SpeedupIsTheQuotientOfTheRatesBesideIt) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.1);
  for (int trial = 0; trial < 30; ++trial) {
    Result r = MakeCampaign();
    for (record::Leg& leg : r.legs) {
      Slow(leg, std::exp(noise(random)));
      if (random() % 8 == 0) leg.reasons.push_back(MakeReason(Code::crashed));
    }
    Judge(r, DevicePolicy());
    ASSERT_TRUE(r.speedup);
    EXPECT_NEAR(*r.speedup->decode->value, Rate(r, "dflash2") / Rate(r, "plain"), 1e-9);
    EXPECT_NEAR(*r.speedup->e2e->value, Rate(r, "dflash2", "e2e_tok_s") / Rate(r, "plain", "e2e_tok_s"),
                1e-9);
    // The tie point times the measured ratio is what was committed.
    EXPECT_NEAR(*r.speedup->break_even_committed_per_round * *r.speedup->decode->value,
                Rate(r, "dflash2", "committed_per_round"), 1e-6);
  }
}

TEST(Campaign, OrderOfLegsDoesNotMatter) {
  Result r = MakeCampaign();
  std::mt19937 random(1);
  for (record::Leg& leg : r.legs) Slow(leg, 1 + 0.001 * static_cast<double>(random() % 10));
  Result shuffled = r;
  std::shuffle(shuffled.legs.begin(), shuffled.legs.end(), random);
  Judge(r, DevicePolicy());
  Judge(shuffled, DevicePolicy());
  EXPECT_NEAR(*r.speedup->decode->value, *shuffled.speedup->decode->value, 1e-12);
  EXPECT_NEAR(Rate(r, "plain"), Rate(shuffled, "plain"), 1e-9);
}

TEST(Campaign, JudgingTwiceChangesNothing) {
  Result r = MakeCampaign();
  LegOf(r, 1, 2, "plain").clocks.thermal_throttle = true;
  LegOf(r, 1, 3, "plain").clocks.sclk_mhz.last_third = 3000;
  LegOf(r, 2, 1, "dflash2").output_sha256 = "x";
  r.processes[2].sentinel_s.values[3] = 0.8;
  r.processes[3].sentinel_s.values.assign(6, 0.75);
  LegOf(r, 3, 1, "dflash2").prompt = "p2", LegOf(r, 3, 1, "dflash2").output_sha256 = "y";
  Judge(r, DevicePolicy());
  const record::Json once = record::ToJson(r);
  Judge(r, DevicePolicy());
  EXPECT_EQ(record::ToJson(r), once);
}

TEST(Campaign, SlowerIsAResult) {
  Shape shape;
  shape.drafting_round_s = 0.040;
  Result r = MakeCampaign(shape);
  Judge(r, DevicePolicy());
  EXPECT_NEAR(*r.speedup->decode->value, 0.75, 1e-12);
  EXPECT_NEAR(*r.speedup->break_even_committed_per_round, 4, 1e-12);
  EXPECT_EQ(r.verdict, Verdict::verified);
  EXPECT_EQ(ExitCode(r), 0);
}

TEST(Campaign, InvalidLegHasNoRatesAndTakesItsPartnerOut) {
  Result r = MakeCampaign();
  LegOf(r, 0, 2, "plain").clocks.thermal_throttle = true;
  Judge(r, DevicePolicy());
  EXPECT_FALSE(LegOf(r, 0, 2, "plain").valid);
  EXPECT_EQ(LegOf(r, 0, 2, "plain").rates.decode_tok_s, std::nullopt);
  const record::Leg& partner = LegOf(r, 0, 2, "dflash2");
  EXPECT_TRUE(partner.valid);
  EXPECT_FALSE(partner.counted);
  EXPECT_TRUE(record::Has(partner.reasons, Code::partner_left_out));
  EXPECT_EQ(r.speedup->decode->pairs, 15);
  EXPECT_EQ(r.speedup->decode->pairs_all, 16);
  EXPECT_EQ(r.verdict, Verdict::verified);
}

TEST(Campaign, SentinelMovesThePair) {
  Result r = MakeCampaign();
  r.processes[1].sentinel_s.values[3] = 0.7 * 1.03;  // between pairs 2 and 3
  r.processes[2].sentinel_s.values[3] = 0.7 * 1.019;
  Judge(r, DevicePolicy());
  for (const int64_t pair : {1, 2, 3, 4})
    for (const char* arm : {"plain", "dflash2"})
      EXPECT_EQ(record::Has(LegOf(r, 1, pair, arm).reasons, Code::board_moved), pair == 2 || pair == 3)
          << pair;
  EXPECT_TRUE(LegOf(r, 2, 2, "plain").counted);
  EXPECT_EQ(StopReason(r, DevicePolicy()), std::nullopt);
  Result cpu = MakeCampaign();
  cpu.processes[1].sentinel_s.values[3] = 1.4;
  Judge(cpu, MakePolicy("cpu", false, true, false, 1));
  EXPECT_TRUE(LegOf(cpu, 1, 2, "plain").counted);  // recorded, not judged
}

TEST(Campaign, SlowProcessLeavesItsRatio) {
  Result r = MakeCampaign();
  r.processes[3].sentinel_s.values.assign(6, 0.7 / 0.94);
  for (record::Leg& leg : r.legs)
    if (leg.process == 3) Slow(leg, leg.arm == "plain" ? 1 / 0.9 : 1 / 0.95);
  Judge(r, DevicePolicy());
  EXPECT_NEAR(*r.processes[3].ratio_to_best, 0.94, 1e-12);
  EXPECT_TRUE(record::Has(r.warnings, Code::slow_process));
  EXPECT_NEAR(Rate(r, "plain"), 100, 1e-9);
  EXPECT_EQ(r.summary["plain"]["decode_tok_s"].n, 3);
  // A time of a round is as absolute as a rate; tokens of a round are not.
  EXPECT_NEAR(*r.summary["plain"]["round_s"].value, 0.01, 1e-12);
  EXPECT_EQ(r.summary["plain"]["round_s"].n, 3);
  EXPECT_EQ(r.summary["dflash2"]["committed_per_round"].n, 4);
  EXPECT_EQ(r.speedup->decode->n, 4);
  EXPECT_TRUE(r.speedup->decode->ratios_only);
  EXPECT_NEAR(*r.speedup->decode->value, 2 * std::pow(0.95 / 0.9, 0.25), 1e-9);
  r.processes[3].sentinel_s.values.assign(6, 0.7 / 0.951);
  Judge(r, DevicePolicy());
  EXPECT_EQ(r.summary["plain"]["decode_tok_s"].n, 4);
}

TEST(Campaign, AllPairsPutBack) {
  Result r = MakeCampaign();
  for (int64_t process = 0; process < 4; ++process) {
    record::Leg& leg = LegOf(r, process, 2, "dflash2");
    leg.clocks.thermal_throttle = true;
    Slow(leg, 1.5);
  }
  Judge(r, DevicePolicy());
  EXPECT_NEAR(*r.speedup->decode->value, 2, 1e-12);
  EXPECT_NEAR(*r.speedup->decode->all_pairs_value, 2 * 4 / 4.5, 1e-12);
  EXPECT_TRUE(record::Has(r.warnings, Code::all_pairs_differ));
}

TEST(Campaign, ClassesStandApart) {
  Result r = MakeCampaign();
  for (record::Leg& leg : r.legs)
    if (leg.prompt_class == "prose" && leg.arm == "dflash2") Slow(leg, 2);
  Judge(r, DevicePolicy());
  EXPECT_NEAR(*r.speedup->by_class.at("code").value, 2, 1e-12);
  EXPECT_NEAR(*r.speedup->by_class.at("prose").value, 1, 1e-12);
  EXPECT_TRUE(record::Has(r.warnings, Code::noisy));
}

TEST(Campaign, DifferentTokenCountsGiveNoRatio) {
  Result r = MakeCampaign();
  record::Counters& c = LegOf(r, 0, 1, "dflash2").counters;
  c.stop_trimmed = 1, c.committed -= 1, c.output_tokens -= 1;
  Judge(r, DevicePolicy());
  EXPECT_TRUE(LegOf(r, 0, 1, "plain").valid);
  EXPECT_FALSE(LegOf(r, 0, 1, "plain").counted);
  EXPECT_TRUE(record::Has(LegOf(r, 0, 1, "plain").reasons, Code::output_counts_differ));
}

TEST(Campaign, RampingIsCold) {
  Result r = MakeCampaign();
  LegOf(r, 0, 1, "plain").clocks.sclk_mhz.first_third = 2700;
  Judge(r, DevicePolicy());
  EXPECT_EQ(LegOf(r, 0, 1, "plain").state, State::cold);
  EXPECT_TRUE(LegOf(r, 0, 1, "plain").valid);
  EXPECT_TRUE(LegOf(r, 0, 1, "plain").rates.decode_tok_s);
  EXPECT_FALSE(LegOf(r, 0, 1, "dflash2").counted);
}

TEST(Campaign, StateLeak) {
  Result r = MakeCampaign();
  record::Leg& again = LegOf(r, 2, 3, "dflash2");
  again.prompt = "p1", again.output_sha256 = "p1";
  Judge(r, DevicePolicy());
  EXPECT_EQ(r.verdict, Verdict::verified);
  again.counters.drafted += 1;  // accept counts equal: fine
  again.output_sha256 = "other";
  Judge(r, DevicePolicy());
  EXPECT_TRUE(record::Has(LegOf(r, 2, 1, "dflash2").reasons, Code::state_leak));
  EXPECT_TRUE(record::Has(again.reasons, Code::state_leak));
  EXPECT_EQ(r.verdict, Verdict::invalid);
  EXPECT_EQ(ExitCode(r), 1);
  Result sampled = MakeCampaign();
  sampled.workload.temperature = 0.7;
  LegOf(sampled, 2, 3, "dflash2").prompt = "p1";
  Judge(sampled, DevicePolicy());
  EXPECT_TRUE(record::Has(LegOf(sampled, 2, 3, "dflash2").reasons, Code::state_leak))
      << "the seed is the same";
}

TEST(Verdict, UnverifiedWhenClocksAreNotSeenOrDoNotBind) {
  Result r = MakeCampaign();
  LegOf(r, 0, 1, "plain").clocks.samples = 3;
  Judge(r, DevicePolicy());
  EXPECT_EQ(r.verdict, Verdict::unverified);
  EXPECT_TRUE(record::Has(r.reasons, Code::clock_unverified));
  EXPECT_TRUE(LegOf(r, 0, 1, "plain").valid);
  EXPECT_FALSE(LegOf(r, 0, 1, "plain").clocks.verified);

  Result demo = MakeCampaign();
  LegOf(demo, 0, 1, "plain").clocks.thermal_throttle = true;
  Judge(demo, MakePolicy("rocm:0", true, false, false, 1));
  EXPECT_EQ(demo.verdict, Verdict::unverified);
  EXPECT_TRUE(record::Has(demo.reasons, Code::clocks_not_enforced));
  EXPECT_TRUE(LegOf(demo, 0, 1, "plain").counted);  // printed, not enforced
  EXPECT_TRUE(record::Has(demo.warnings, Code::thermal_throttle));

  Result lost = MakeCampaign();
  lost.telemetry.lost = "killed";
  Judge(lost, DevicePolicy());
  EXPECT_EQ(lost.verdict, Verdict::unverified);
}

TEST(Verdict, WhoseClocksBind) {
  EXPECT_TRUE(MakePolicy("rocm:0", false, false, false, 1).enforce_clocks);
  EXPECT_TRUE(MakePolicy("cuda:0", false, false, false, 1).enforce_clocks);
  EXPECT_FALSE(MakePolicy("rocm:0", true, true, false, 1).enforce_clocks);
  EXPECT_FALSE(MakePolicy("cpu", false, false, false, 1).enforce_clocks);
  EXPECT_TRUE(MakePolicy("cpu", false, true, false, 1).enforce_clocks);
  EXPECT_FALSE(MakePolicy("sim:0", false, false, false, 1).enforce_clocks);
  EXPECT_FALSE(MakePolicy("sim:0", false, true, false, 1).on_device);
}

TEST(Verdict, SimulatedAndInvalid) {
  Result r = MakeCampaign();
  for (record::Process& process : r.processes) process.read_gb_s = 1;
  for (record::Leg& leg : r.legs) leg.read_bytes_per_round = 1e12;  // faster than the memory
  Result on_device = r;
  Judge(on_device, DevicePolicy());
  EXPECT_EQ(on_device.verdict, Verdict::invalid);
  Judge(r, MakePolicy("sim:0", false, false, false, 1));
  EXPECT_EQ(r.verdict, Verdict::simulated);
  r = MakeCampaign();
  r.workload.weights = "random";
  Judge(r, DevicePolicy());
  EXPECT_EQ(r.verdict, Verdict::simulated);
  r = MakeCampaign();
  for (record::Leg& leg : r.legs)
    if (leg.arm == "plain") leg.reasons.push_back(MakeReason(Code::crashed));
  Judge(r, DevicePolicy());
  EXPECT_EQ(r.verdict, Verdict::invalid);
  EXPECT_TRUE(record::Has(r.reasons, Code::no_valid_pair));
  EXPECT_FALSE(r.speedup);
  EXPECT_EQ(r.summary["plain"]["decode_tok_s"].value, std::nullopt);
  EXPECT_EQ(ExitCode(r), 1);
}

TEST(Verdict, WithoutWarmupThereIsNoWarmRate) {
  Result r = MakeCampaign();
  for (record::Leg& leg : r.legs) {
    leg.state = State::cold;
    leg.reasons = {MakeReason(Code::no_warmup)};
  }
  Policy policy = DevicePolicy();
  policy.warmup_pairs = 0;
  Judge(r, policy);
  EXPECT_EQ(r.verdict, Verdict::unverified);
  EXPECT_EQ(r.summary["plain"]["decode_tok_s"].value, std::nullopt);
  EXPECT_FALSE(r.speedup);
}

TEST(Verdict, ExitCodes) {
  Result r = MakeCampaign();
  LegOf(r, 3, 4, "plain").reasons.push_back(MakeReason(Code::gpu_hang));
  Judge(r, DevicePolicy());
  EXPECT_EQ(ExitCode(r), 3);
  r.reasons.push_back(MakeReason(Code::interrupted));
  EXPECT_EQ(ExitCode(r), 130);
}

TEST(Verdict, ArmsInDifferentGraphModes) {
  Result r = MakeCampaign();
  for (record::Leg& leg : r.legs) leg.graph_mode = leg.arm == "plain" ? "graph" : "eager";
  Judge(r, DevicePolicy());
  EXPECT_FALSE(r.speedup);
  EXPECT_TRUE(record::Has(r.reasons, Code::graph_mode_differs));
}

TEST(Stop, TwoPairsInARowForOneReason) {
  Result r = MakeCampaign();
  LegOf(r, 3, 3, "plain").reasons.push_back(MakeReason(Code::timeout));
  LegOf(r, 3, 4, "dflash2").reasons.push_back(MakeReason(Code::oom));
  Judge(r, DevicePolicy());
  EXPECT_EQ(StopReason(r, DevicePolicy()), std::nullopt);
  LegOf(r, 3, 4, "dflash2").reasons.push_back(MakeReason(Code::timeout));
  EXPECT_EQ(StopReason(r, DevicePolicy()), Code::timeout);

  Result apart = MakeCampaign();
  for (const int64_t pair : {2, 4})
    LegOf(apart, 3, pair, "plain").reasons.push_back(MakeReason(Code::timeout));
  EXPECT_EQ(StopReason(apart, DevicePolicy()), std::nullopt);

  Result crash = MakeCampaign();
  for (const int64_t pair : {3, 4})
    LegOf(crash, 3, pair, "plain").reasons.push_back(MakeReason(Code::crashed));
  EXPECT_EQ(StopReason(crash, DevicePolicy()), Code::crashed);
  EXPECT_EQ(StopReason(crash, MakePolicy("cpu", false, true, false, 1)), std::nullopt);
  EXPECT_EQ(StopReason(crash, MakePolicy("sim:0", false, true, false, 1)), std::nullopt);

  Result moved = MakeCampaign();
  for (const int64_t pair : {3, 4})
    LegOf(moved, 3, pair, "plain").reasons.push_back(MakeReason(Code::board_moved));
  EXPECT_EQ(StopReason(moved, DevicePolicy()), std::nullopt);
}

TEST(Replace, AtMostTwoAProcess) {
  Result r = MakeCampaign();
  for (const int64_t pair : {1, 3, 4}) LegOf(r, 2, pair, "plain").clocks.hw_slowdown = true;
  Judge(r, DevicePolicy());
  EXPECT_THAT(PairsToReplace(r, 2, 4, DevicePolicy()), ElementsAre(1, 3));
  EXPECT_THAT(PairsToReplace(r, 1, 4, DevicePolicy()), IsEmpty());
  // One replacement has run: one is left, for the next lost pair.
  EXPECT_THAT(PairsToReplace(r, 2, 3, DevicePolicy()), ElementsAre(3));
}

}  // namespace
}  // namespace warmleg::judge
