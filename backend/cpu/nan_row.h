// How a kernel of choices refuses a NaN, which has no place in an order.
#pragma once

#include <fmt/core.h>

#include <atomic>

#include "backend/vt/error.h"
#include "backend/vt/ops.h"

namespace vt::cpu {

// The first row with a NaN, raised after the parallel loop (an exception must not leave one).
class NanRow {
 public:
  explicit NanRow(Op op) : op_(op) {}
  void Set(int64_t row) { row_.store(row, std::memory_order_relaxed); }
  void Raise() const {
    if (row_ < 0) return;
    throw EnvironmentError(fmt::format("op {}: row {} holds a NaN; the checkpoint or the device is broken",
                                       Name(op_), row_.load()));
  }

 private:
  Op op_;
  std::atomic<int64_t> row_{-1};
};

}  // namespace vt::cpu
