#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/judge/stats.h"

namespace warmleg::judge {
namespace {

TEST(Stats, StudentQuantilesOfTheTables) {
  struct Row {
    double p, df, t;
  };
  // Two-sided 95 % and 99 % points as printed in any table of the t distribution.
  for (const Row& row : {Row{0.975, 1, 12.7062},
                         {0.975, 2, 4.30265},
                         {0.975, 3, 3.18245},
                         {0.975, 4, 2.77645},
                         {0.975, 5, 2.57058},
                         {0.975, 10, 2.22814},
                         {0.975, 30, 2.04227},
                         {0.975, 120, 1.97993},
                         {0.95, 3, 2.35336},
                         {0.995, 3, 5.84091},
                         {0.995, 10, 3.16927},
                         {0.9995, 2, 31.5991}})
    EXPECT_NEAR(StudentTQuantile(row.p, row.df) / row.t, 1, 2e-6) << row.p << " " << row.df;
  EXPECT_NEAR(StudentTQuantile(0.975, 1e6), 1.959966, 1e-5);
  EXPECT_DOUBLE_EQ(StudentTQuantile(0.025, 3), -StudentTQuantile(0.975, 3));
  EXPECT_EQ(StudentTQuantile(0.5, 3), 0);
}

TEST(Stats, CdfAndQuantileAreInverse) {
  for (const double df : {1.0, 2.5, 3.0, 7.7, 60.0, 400.0})
    for (const double p : {0.001, 0.1, 0.4, 0.6, 0.95, 0.9999})
      EXPECT_NEAR(StudentTCdf(StudentTQuantile(p, df), df), p, 1e-12) << df << " " << p;
  // One degree of freedom is the Cauchy distribution.
  for (const double t : {-30.0, -1.0, 0.0, 0.3, 5.0})
    EXPECT_NEAR(StudentTCdf(t, 1), 0.5 + std::atan(t) / std::acos(-1.0), 1e-13);
}

TEST(Stats, MedianMeanSd) {
  EXPECT_EQ(Median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(Median(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({}), std::nullopt);
  EXPECT_EQ(Mean(std::vector<double>{1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(*StandardDeviation(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
  EXPECT_EQ(StandardDeviation(std::vector<double>{1}), std::nullopt);
}

TEST(Stats, GeometricMean) {
  const Estimate e = GeometricMean(std::vector<double>{1, 4, 2, 8});
  EXPECT_NEAR(*e.value, std::sqrt(8.0), 1e-14);
  EXPECT_EQ(e.n, 4);
  // logs / ln 2 = 0 2 1 3: mean 1.5, sd sqrt(5/3), half width 3.18245 * sd / 2.
  const double half = 3.182446305 * std::sqrt(5.0 / 3) / 2;
  EXPECT_NEAR(std::log2((*e.ci95)[0]), 1.5 - half, 1e-8);
  EXPECT_NEAR(std::log2((*e.ci95)[1]), 1.5 + half, 1e-8);
  EXPECT_EQ(GeometricMean({}).value, std::nullopt);
  EXPECT_EQ(GeometricMean(std::vector<double>{5}).ci95, std::nullopt);
}

TEST(Stats, IntervalCoversTheTruthAtItsRate) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.03);
  int covered = 0;
  constexpr int trials = 4000;
  for (int i = 0; i < trials; ++i) {
    std::vector<double> rates;
    for (int k = 0; k < 4; ++k) rates.push_back(40 * std::exp(noise(random)));
    const Estimate e = GeometricMean(rates);
    covered += (*e.ci95)[0] <= 40 && 40 <= (*e.ci95)[1];
  }
  EXPECT_NEAR(covered / double{trials}, 0.95, 0.012);
}

}  // namespace
}  // namespace warmleg::judge
