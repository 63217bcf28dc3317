// What ran where: calls, fall-backs and bytes of each (op, device). Always counted; a leg's totals are the
// difference of two snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/vt/device.h"
#include "backend/vt/ops.h"

namespace vt {

struct OpTotals {
  std::string op;  // "MatMul"
  Device device;
  std::string asked;     // provider of highest priority that is registered: "vt-native"
  std::string provider;  // provider that made these calls: "vt-native" or "vt-cpu-ref"
  uint64_t calls = 0;
  uint64_t fallbacks = 0;       // calls that another provider than the one asked for had to make
  std::string fallback_reason;  // of the latest fall-back, empty when there was none
  uint64_t bytes = 0;           // Args::bytes() summed
};

// Rows with calls only, by device, op and provider. The sum of `calls` over a row set equals the calls made.
std::vector<OpTotals> ProviderTotals();

// after - before, row by row; rows that did not move are left out.
std::vector<OpTotals> Difference(const std::vector<OpTotals>& after, const std::vector<OpTotals>& before);

// The table that VT_OP_PROVIDER_STATS=1 prints at exit.
std::string FormatTotals(const std::vector<OpTotals>& totals);

namespace internal {
enum class Tier : uint8_t { native, reference };
// `calls` calls of one tier. A graph counts what it recorded at each launch.
void Count(Op op, Device device, Tier tier, const char* fallback_reason, uint64_t calls, uint64_t bytes);
}  // namespace internal

}  // namespace vt
