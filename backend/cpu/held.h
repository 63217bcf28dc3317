// Blocks whose rows were held (CommitConv, CommitDelta).
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "backend/vt/ops.h"

namespace vt::cpu {

// How many of a held block's rows count; none is a negative `last`.
inline int64_t CountedRows(Op op, const Tensor& last, int64_t rows) {
  const int64_t counted = int64_t{last.as<int32_t>()[0]} + 1;
  if (counted > rows) {
    throw std::logic_error(
        fmt::format("op {}: last is {} in a block of {} rows", Name(op), counted - 1, rows));
  }
  return std::max<int64_t>(counted, 0);
}

}  // namespace vt::cpu
