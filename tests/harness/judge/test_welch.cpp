#include "harness/judge/welch.h"

#include <gmock/gmock.h>

#include <cmath>

namespace warmleg::judge {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

std::vector<double> Exp(std::vector<double> logs) {
  for (double& v : logs) v = std::exp(v);
  return logs;
}

// Reference values: by hand in Python, the t density integrated numerically.
TEST(Welch, AgreesWithNumericalIntegration) {
  const auto w = WelchOfLogs(Exp({0.10, 0.12, 0.11, 0.14}), Exp({0.20, 0.25, 0.18, 0.30, 0.22}));
  ASSERT_TRUE(w);
  EXPECT_NEAR(w->difference, 0.1125, 1e-12);
  EXPECT_NEAR(w->df, 5.243602771, 1e-6);
  EXPECT_NEAR(w->p, 0.003701491711, 1e-9);
  const auto [low, high] = w->Interval(0.05);
  EXPECT_NEAR(std::log(low), 0.055086488, 1e-6);
  EXPECT_NEAR(std::log(high), 0.169913512, 1e-6);
  EXPECT_NEAR(w->Ratio(), std::exp(0.1125), 1e-12);
}

TEST(Welch, OneSideMayNotSpreadAtAll) {
  const auto w = WelchOfLogs(std::vector<double>(4, 2.0), Exp({0.70, 0.71, 0.72, 0.73}));
  ASSERT_TRUE(w);
  EXPECT_NEAR(w->df, 3, 1e-9);
}

TEST(Welch, IdenticalSamplesAreNoDifference) {
  const std::vector<double> v(5, 3.14);
  const auto w = WelchOfLogs(v, v);
  ASSERT_TRUE(w);
  EXPECT_EQ(w->p, 1);
  EXPECT_THAT(w->Interval(0.05), ElementsAre(1, 1));
}

TEST(Welch, NoSpreadAndADifferenceIsCertain) {
  const auto w = WelchOfLogs(std::vector<double>(4, 1.0), std::vector<double>(4, 0.9));
  ASSERT_TRUE(w);
  EXPECT_EQ(w->p, 0);
  EXPECT_THAT(w->Interval(0.05), ElementsAre(DoubleNear(0.9, 1e-12), DoubleNear(0.9, 1e-12)));
}

TEST(Welch, NeedsTwoPositiveValuesASide) {
  EXPECT_FALSE(WelchOfLogs(std::vector{1.0}, std::vector{1.0, 2.0}));
  EXPECT_FALSE(WelchOfLogs(std::vector{1.0, 2.0}, std::vector{1.0}));
  EXPECT_FALSE(WelchOfLogs(std::vector{1.0, 2.0}, std::vector{1.0, 0.0}));
}

TEST(Holm, StepsDown) {
  // The textbook case: 3 x 0.01, 2 x 0.03, and the last may not fall below the one before it.
  EXPECT_THAT(HolmAdjusted(std::vector{0.04, 0.01, 0.03}),
              ElementsAre(DoubleNear(0.06, 1e-12), DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12)));
  EXPECT_THAT(HolmAdjusted(std::vector{0.5, 0.9}), ElementsAre(1.0, 1.0));
  EXPECT_TRUE(HolmAdjusted(std::vector<double>{}).empty());
}

}  // namespace
}  // namespace warmleg::judge
