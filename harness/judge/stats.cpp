#include "harness/judge/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace warmleg::judge {
namespace {

// Continued fraction of the incomplete beta function, evaluated by Lentz's method; converges fast for x < (a
// + 1) / (a + b + 2).
double BetaFraction(double x, double a, double b) {
  constexpr double tiny = 1e-300;
  constexpr double precision = 1e-15;
  const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double h = d;
  for (int m = 1; m <= 1000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    h *= d * c;
    if (std::abs(d * c - 1) < precision) break;
  }
  return h;
}

double RegularisedBeta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(x, a, b) / a;
  return 1 - front * BetaFraction(1 - x, b, a) / b;
}

}  // namespace

std::optional<double> Median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::optional<double> Mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> StandardDeviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double mean = *Mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double StudentTCdf(double t, double df) {
  const double tail = RegularisedBeta(df / (df + t * t), df / 2, 0.5) / 2;
  return t > 0 ? 1 - tail : tail;
}

double StudentTQuantile(double p, double df) {
  if (p < 0.5) return -StudentTQuantile(1 - p, df);
  if (p == 0.5) return 0;
  double low = 0;
  double high = 1;
  while (StudentTCdf(high, df) < p && high < std::numeric_limits<double>::max() / 4) high *= 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (StudentTCdf(middle, df) < p ? low : high) = middle;
  }
  return high;
}

Estimate GeometricMean(std::span<const double> values) {
  Estimate out;
  out.n = static_cast<int64_t>(values.size());
  if (values.empty()) return out;
  std::vector<double> logs;
  logs.reserve(values.size());
  for (const double v : values) logs.push_back(std::log(v));
  const double mean = *Mean(logs);
  out.value = std::exp(mean);
  if (logs.size() < 2) return out;
  const double n = static_cast<double>(logs.size());
  const double half = StudentTQuantile(0.975, n - 1) * *StandardDeviation(logs) / std::sqrt(n);
  out.ci95 = {std::exp(mean - half), std::exp(mean + half)};
  return out;
}

}  // namespace warmleg::judge
