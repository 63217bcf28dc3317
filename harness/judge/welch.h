// Two samples of process means: Welch's interval for the difference of their logarithms, and Holm's
// correction over the endpoints of one comparison.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace warmleg::judge {

// Welch (1947): the samples may spread differently.
struct Welch {
  double difference = 0;      // mean of log(candidate) minus mean of log(base)
  double standard_error = 0;  // 0: neither side spreads at all
  double df = 1;              // Welch-Satterthwaite
  double p = 1;               // two-sided, for no difference

  // Of candidate over base.
  double Ratio() const;
  // Of the ratio, with probability 1 - alpha.
  std::array<double, 2> Interval(double alpha) const;
};

// Null with fewer than two values on a side, or one that is not positive.
std::optional<Welch> WelchOfLogs(std::span<const double> base, std::span<const double> candidate);

// Holm (1979), step down: adjusted p-values in the order given. An effect is significant where the adjusted
// value is below alpha, which is where its interval at Holm's level lies beyond no change.
std::vector<double> HolmAdjusted(std::span<const double> p);

}  // namespace warmleg::judge
