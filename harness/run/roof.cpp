#include "harness/run/roof.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "backend/vt/error.h"

namespace warmleg::run {

namespace {

// Sums 64-bit words; the sum is returned so that no read can be left out.
uint64_t ReadSum(const uint64_t* words, int64_t n) {
  uint64_t sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += words[i];
  return sum;
}

}  // namespace

double MeasureReadRoof(vt::Backend& backend, uint64_t bytes) {
  if (backend.device().type != vt::DeviceType::cpu) {
    throw vt::RefusedError(fmt::format("no read probe on device {}", vt::ToString(backend.device())));
  }
  using Clock = std::chrono::steady_clock;
  bytes = std::clamp<uint64_t>(bytes, uint64_t{1} << 20, kMaxRoofBytes) / 8 * 8;
  const vt::Buffer buffer = backend.Alloc(bytes);
  auto* words = static_cast<uint64_t*>(buffer.data());
  const auto n = static_cast<int64_t>(bytes / 8);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) words[i] = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15U;
  // The fastest sweep of a third of a second is the roof: a busy moment must not lower it.
  constexpr int kLeastSweeps = 3;
  constexpr std::chrono::milliseconds kLeastTime(300);
  double best = 0;
  volatile uint64_t keep = ReadSum(words, n);
  const auto begin = Clock::now();
  for (int i = 0; i < kLeastSweeps || Clock::now() - begin < kLeastTime; ++i) {
    const auto start = Clock::now();
    keep = ReadSum(words, n);
    const std::chrono::duration<double> took = Clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) / took.count() / 1e9);
  }
  (void)keep;
  return best;
}

}  // namespace warmleg::run
