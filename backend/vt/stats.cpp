#include "backend/vt/stats.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace vt {

namespace {

// Static, so that counting is one atomic add and never allocates.
struct Cell {
  std::atomic<uint64_t> calls{0}, bytes{0}, fallbacks{0};
  std::atomic<const char*> reason{nullptr};  // string literals only
};
using Cells = std::array<std::array<std::array<std::array<Cell, 2>, kMaxDevices>, kDeviceTypes>, kOps>;

Cells& Table() {
  static Cells cells;
  return cells;
}

constexpr std::array<const char*, 2> kProviderNames = {"vt-native", "vt-cpu-ref"};

void PrintAtExit() { std::fputs(FormatTotals(ProviderTotals()).c_str(), stderr); }

}  // namespace

namespace internal {

void Count(Op op, Device device, Tier tier, const char* fallback_reason, uint64_t calls, uint64_t bytes) {
  static const bool print = [] {
    const char* text = std::getenv("VT_OP_PROVIDER_STATS");
    const bool on = text != nullptr && std::string_view(text) == "1";
    Table();
    if (on) std::atexit(PrintAtExit);
    return on;
  }();
  (void)print;
  Cell& cell = Table()[static_cast<size_t>(op)][static_cast<size_t>(device.type)]
                      [static_cast<size_t>(device.index)][static_cast<size_t>(tier)];
  cell.calls.fetch_add(calls, std::memory_order_relaxed);
  cell.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (fallback_reason != nullptr) {
    cell.fallbacks.fetch_add(calls, std::memory_order_relaxed);
    cell.reason.store(fallback_reason, std::memory_order_relaxed);
  }
}

}  // namespace internal

std::vector<OpTotals> ProviderTotals() {
  std::vector<OpTotals> rows;
  for (int type = 0; type < kDeviceTypes; ++type) {
    for (int index = 0; index < kMaxDevices; ++index) {
      for (int op = 0; op < kOps; ++op) {
        for (size_t tier = 0; tier < 2; ++tier) {
          const Cell& cell =
              Table()[static_cast<size_t>(op)][static_cast<size_t>(type)][static_cast<size_t>(index)][tier];
          const uint64_t calls = cell.calls.load(std::memory_order_relaxed);
          if (calls == 0) continue;
          const char* reason = cell.reason.load(std::memory_order_relaxed);
          rows.push_back({std::string(Name(static_cast<Op>(op))),
                          Device{static_cast<DeviceType>(type), index}, kProviderNames[0],
                          kProviderNames[tier], calls, cell.fallbacks.load(std::memory_order_relaxed),
                          reason != nullptr ? reason : "", cell.bytes.load(std::memory_order_relaxed)});
        }
      }
    }
  }
  return rows;
}

std::vector<OpTotals> Difference(const std::vector<OpTotals>& after, const std::vector<OpTotals>& before) {
  std::vector<OpTotals> rows;
  for (OpTotals row : after) {
    for (const OpTotals& old : before) {
      if (old.op != row.op || old.device != row.device || old.provider != row.provider) continue;
      row.calls -= old.calls;
      row.bytes -= old.bytes;
      row.fallbacks -= old.fallbacks;
    }
    if (row.fallbacks == 0) row.fallback_reason.clear();
    if (row.calls > 0) rows.push_back(std::move(row));
  }
  return rows;
}

std::string FormatTotals(const std::vector<OpTotals>& totals) {
  std::string text = fmt::format("{:<18} {:<8} {:<10} {:<10} {:>10} {:>9} {:>16}  {}\n", "op", "device",
                                 "asked", "provider", "calls", "fallbacks", "bytes", "reason");
  for (const OpTotals& t : totals) {
    text += fmt::format("{:<18} {:<8} {:<10} {:<10} {:>10} {:>9} {:>16}  {}\n", t.op, ToString(t.device),
                        t.asked, t.provider, t.calls, t.fallbacks, t.bytes, t.fallback_reason);
  }
  return text;
}

}  // namespace vt
