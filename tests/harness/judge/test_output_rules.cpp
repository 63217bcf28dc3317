#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/judge/output_rules.h"
#include "harness/record/sha256.h"

namespace warmleg::judge {
namespace {

using Ids = std::vector<int32_t>;
using record::Code;

Ids Random(size_t n, uint32_t seed = 5) {
  std::mt19937 random(seed);
  Ids ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(1000 + random() % 5000));
  return ids;
}

Ids Cycle_(size_t n, int32_t period) {
  Ids ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(i) % period);
  return ids;
}

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool Degenerate(const Ids& ids) { return FindDegenerate(ids, {}).has_value(); }

TEST(Degenerate, NeedsSixtyFourTokensAndHalfTheOutput) {
  EXPECT_TRUE(Degenerate(Cycle_(64, 4)));
  EXPECT_FALSE(Degenerate(Cycle_(63, 4)));
  EXPECT_TRUE(Degenerate(Random(64) + Cycle_(64, 4)));
  EXPECT_FALSE(Degenerate(Random(65) + Cycle_(64, 4)));
  EXPECT_TRUE(Degenerate(Cycle_(100, 3) + Random(90)));
  EXPECT_FALSE(Degenerate(Random(400)));
}

TEST(Degenerate, PeriodOfSixteenAtMost) {
  EXPECT_TRUE(Degenerate(Cycle_(96, 16)));
  EXPECT_FALSE(Degenerate(Cycle_(96, 17)));
  EXPECT_TRUE(Degenerate(Cycle_(96, 1)));
  EXPECT_EQ(FindDegenerate(Cycle_(96, 5), {})->period, 5);
  EXPECT_EQ(FindDegenerate(Cycle_(96, 5), {})->tokens, 96);
}

TEST(Degenerate, BrokenCyclesDoNotAddUp) {
  EXPECT_FALSE(Degenerate(Cycle_(40, 4) + Random(1) + Cycle_(40, 4) + Random(1) + Cycle_(40, 4)));
}

TEST(Degenerate, LayoutIsNotCounted) {
  const auto layout = [](int32_t id) { return id < 10; };
  EXPECT_FALSE(FindDegenerate(Cycle_(96, 4), layout));                // indentation or a table rule
  EXPECT_FALSE(FindDegenerate(Random(60) + Cycle_(200, 4), layout));  // code below much white space
  Ids mixed;
  for (int i = 0; i < 100; ++i) mixed.insert(mixed.end(), {i % 7, 100 + i % 2});  // a loop between indents
  EXPECT_TRUE(FindDegenerate(mixed, layout));
  EXPECT_TRUE(IsLayout("  \n"));
  EXPECT_TRUE(IsLayout(" |"));
  EXPECT_TRUE(IsLayout("---|"));
  EXPECT_FALSE(IsLayout(" the"));
  EXPECT_FALSE(IsLayout(""));
}

TEST(Divergence, FirstDifferenceAndItsGap) {
  const std::vector<float> margins = {3, 0.25, 0.5F, 1};
  EXPECT_FALSE(FindDivergence(Ids{1, 2, 3, 4}, margins, Ids{1, 2, 3, 4}));
  const auto d = FindDivergence(Ids{1, 2, 3, 4}, margins, Ids{1, 9, 8, 7});
  ASSERT_TRUE(d);
  EXPECT_EQ(d->index, 1);
  EXPECT_EQ(d->reference_token, 2);
  EXPECT_EQ(d->token, 9);
  EXPECT_EQ(d->gap, 0.25);
  const auto shorter = FindDivergence(Ids{1, 2, 3, 4}, margins, Ids{1, 2});
  EXPECT_EQ(shorter->index, 2);
  EXPECT_EQ(shorter->token, -1);
  EXPECT_EQ(FindDivergence(Ids{1}, margins, Ids{1, 2})->reference_token, -1);
}

TEST(Divergence, TheGapDecides) {
  const Policy host = MakePolicy("cpu", false, false, false, 1);
  const Policy sim = MakePolicy("sim:0", false, false, false, 1);
  const Policy device = MakePolicy("rocm:0", false, false, false, 1);
  const auto code = [](std::optional<double> gap, const Policy& policy) {
    return DivergenceReason({.index = 3, .reference_token = 1, .token = 2, .gap = gap}, policy).code;
  };
  EXPECT_EQ(code(0.05, host), Code::structural_divergence);
  EXPECT_EQ(code(0.0499, host), Code::near_tie_divergence);
  EXPECT_EQ(code(0.05, sim), Code::structural_divergence);
  EXPECT_EQ(code(0.4999, device), Code::near_tie_divergence);
  EXPECT_EQ(code(0.5, device), Code::structural_divergence);
  EXPECT_EQ(code(std::nullopt, device), Code::structural_divergence);
}

TEST(CheckOutput, AllOfThem) {
  Policy policy = MakePolicy("cpu", false, false, false, 1);
  const Ids ids = Cycle_(96, 4);
  const std::vector<float> margins(96, 1.0F);
  Ids other = ids;
  other[95] = 77;
  const ReferenceIds reference{other, margins};
  OutputCheck check = CheckOutput(ids, &reference, 3, {}, policy);
  ASSERT_EQ(check.reasons.size(), 3U);
  EXPECT_TRUE(record::Has(check.reasons, Code::structural_divergence));
  EXPECT_TRUE(record::Has(check.reasons, Code::token_outside_vocabulary));
  EXPECT_TRUE(record::Has(check.reasons, Code::degenerate_output));
  EXPECT_EQ(check.divergence->index, 95);
  policy.allow_degenerate = true;
  check = CheckOutput(ids, nullptr, 4, {}, policy);
  EXPECT_TRUE(check.reasons.empty());
  EXPECT_TRUE(record::Has(check.warnings, Code::degenerate_output));
}

TEST(Hash, LittleEndianInt32) {
  EXPECT_EQ(record::Sha256OfIds({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(record::Sha256OfIds(Ids{1, 256, -1}),
            record::Sha256(std::string_view("\1\0\0\0\0\1\0\0\xff\xff\xff\xff", 12)));
  EXPECT_NE(record::Sha256OfIds(Ids{1, 2}), record::Sha256OfIds(Ids{2, 1}));
}

}  // namespace
}  // namespace warmleg::judge
