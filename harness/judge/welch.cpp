#include "harness/judge/welch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/judge/stats.h"

namespace warmleg::judge {
namespace {

std::vector<double> Logs(std::span<const double> values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (const double v : values) logs.push_back(std::log(v));
  return logs;
}

// Values that agree to the last bits give a spread of rounding errors, which is none.
constexpr double kRounding = 1e-12;

}  // namespace

double Welch::Ratio() const { return std::exp(difference); }

std::array<double, 2> Welch::Interval(double alpha) const {
  const double half = standard_error > 0 ? StudentTQuantile(1 - alpha / 2, df) * standard_error : 0;
  return {std::exp(difference - half), std::exp(difference + half)};
}

std::optional<Welch> WelchOfLogs(std::span<const double> base, std::span<const double> candidate) {
  if (base.size() < 2 || candidate.size() < 2) return std::nullopt;
  const auto positive = [](double v) { return v > 0; };
  if (!std::ranges::all_of(base, positive) || !std::ranges::all_of(candidate, positive)) return std::nullopt;
  const std::vector<double> a = Logs(base);
  const std::vector<double> b = Logs(candidate);
  const auto square_error = [](const std::vector<double>& v) {
    const double sd = *StandardDeviation(v);
    return sd < kRounding ? 0 : sd * sd / static_cast<double>(v.size());
  };
  const double ea = square_error(a);
  const double eb = square_error(b);
  Welch w;
  w.difference = *Mean(b) - *Mean(a);
  if (std::abs(w.difference) < kRounding) w.difference = 0;
  w.standard_error = std::sqrt(ea + eb);
  if (w.standard_error == 0) {
    w.p = w.difference == 0 ? 1 : 0;
    return w;
  }
  const auto df = [](const std::vector<double>& v) { return static_cast<double>(v.size() - 1); };
  w.df = (ea + eb) * (ea + eb) / (ea * ea / df(a) + eb * eb / df(b));
  w.p = 2 * StudentTCdf(-std::abs(w.difference) / w.standard_error, w.df);
  return w;
}

std::vector<double> HolmAdjusted(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace warmleg::judge
