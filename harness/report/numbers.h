// How numbers are printed.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace warmleg::report {

// Three significant digits, no exponent: 3.74, 212, 10400.
inline std::string Number(double value) {
  if (value == 0) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 6));
}

inline std::string Cell(const std::optional<double>& value) { return value ? Number(*value) : "-"; }

inline std::string Percent(const std::optional<double>& change) {
  return change ? fmt::format("{:+.1f} %", 100 * *change) : "-";
}

}  // namespace warmleg::report
