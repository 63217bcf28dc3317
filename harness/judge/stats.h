// The statistics of the project, small enough to read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace warmleg::judge {

// Null for no values. The median of an even count is the mean of the middle two.
std::optional<double> Median(std::span<const double> values);
std::optional<double> Mean(std::span<const double> values);
// Sample standard deviation (n - 1); null below two values.
std::optional<double> StandardDeviation(std::span<const double> values);

// Student's t distribution with `df` > 0 degrees of freedom (not necessarily whole): P(T <= t), by the
// regularised incomplete beta function (Abramowitz & Stegun 26.7.1, continued fraction 26.5.8), and its
// inverse for 0 < p < 1.
double StudentTCdf(double t, double df);
double StudentTQuantile(double p, double df);

struct Estimate {
  std::optional<double> value;
  std::optional<std::array<double, 2>> ci95;  // null below two values
  int64_t n = 0;
};

// Geometric mean with a 95 % t-interval on the logarithms. All values must be positive.
Estimate GeometricMean(std::span<const double> values);

}  // namespace warmleg::judge
