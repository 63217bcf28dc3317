// Pearson's chi-square test of counts against a distribution.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace testing_support {

class ChiSquare {
 public:
  explicit ChiSquare(std::vector<double> expected)
      : expected_(std::move(expected)), seen_(expected_.size()) {}

  void Add(size_t cell) { seen_.at(cell) += 1; }

  // Whether the statistic is below the quantile 1 - 1e-6 of its distribution (Wilson and Hilferty's
  // approximation). Seeds are fixed, so the answer is too.
  testing::AssertionResult Fits() const {
    double n = 0;
    for (const double count : seen_) n += count;
    double statistic = 0;
    for (size_t i = 0; i < seen_.size(); ++i) {
      const double want = expected_[i] * n;
      if (want < 5)
        return testing::AssertionFailure() << "cell " << i << " expects " << want << ": too few draws";
      statistic += (seen_[i] - want) * (seen_[i] - want) / want;
    }
    const double degrees = static_cast<double>(seen_.size()) - 1;
    const double spread = 2 / (9 * degrees);
    const double limit = degrees * std::pow(1 - spread + 4.7534 * std::sqrt(spread), 3);
    if (statistic < limit) return testing::AssertionSuccess();
    auto failure = testing::AssertionFailure()
                   << "chi-square " << statistic << ", limit " << limit << "; seen";
    for (size_t i = 0; i < seen_.size(); ++i) failure << ' ' << seen_[i] << '/' << expected_[i] * n;
    return failure;
  }

 private:
  std::vector<double> expected_, seen_;
};

}  // namespace testing_support
