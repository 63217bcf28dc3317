// Helpers around record::Reading: one field of one sample, a value with its source or null with a reason.
// "Not readable" is never stored as 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/record/clocks.h"

namespace warmleg::telemetry {

using record::Missing;
using record::Reading;
using record::Source;

using Number = Reading<double>;
using Text = Reading<std::string>;
using Names = Reading<std::vector<std::string>>;

template <typename T>
Reading<T> Value(T value, Source from) {
  return {std::move(value), Missing::unsupported, from};
}

template <typename T = double>
Reading<T> Null(Missing why, Source from) {
  return {std::nullopt, why, from};
}

// Sources in the agreed order: the first value wins; among nulls the first that says more than "unsupported",
// and a bare "error" gives way to a reason that names the cause.
template <typename T>
Reading<T> Prefer(Reading<T> first, Reading<T> second) {
  if (first.value) return first;
  if (second.value) return second;
  auto weight = [](const Reading<T>& f) {
    if (!f.source) return 0;
    if (f.missing == Missing::unsupported) return 1;
    return f.missing == Missing::error ? 2 : 3;
  };
  return weight(second) > weight(first) ? std::move(second) : std::move(first);
}

// True for the all-ones fillers of 16, 32 and 64 bit fields.
constexpr bool IsAllOnes(uint64_t value) {
  return value == 0xFFFFU || value == 0xFFFFFFFFU || value == ~uint64_t{0};
}

}  // namespace warmleg::telemetry
