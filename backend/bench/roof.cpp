#include "backend/bench/roof.h"

#include <fmt/core.h>

#include <cstdint>

#include "backend/vt/error.h"

namespace vt::bench {

namespace {

constexpr size_t kBytes = size_t{512} << 20;
constexpr int64_t kChunk = 1 << 15;  // words of one piece of a thread's work

// Two words at a time in eight independent sums, so that the adds never limit the reads.
using Words = uint64_t __attribute__((vector_size(16)));

uint64_t SumOnCpu(const uint64_t* words, int64_t n) {
  uint64_t total = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : total)
  for (int64_t chunk = 0; chunk < n / kChunk; ++chunk) {
    const auto* p = reinterpret_cast<const Words*>(words + chunk * kChunk);
    const auto* end = p + kChunk / 2;
    Words a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{};
    for (; p != end; p += 8) {
      a += p[0];
      b += p[1];
      c += p[2];
      d += p[3];
      e += p[4];
      f += p[5];
      g += p[6];
      h += p[7];
    }
    const Words sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    total += sum[0] + sum[1];
  }
  return total;
}

}  // namespace

double ReadSweep(Queue& queue) {
  Backend& backend = queue.backend();
  if (backend.device().type != DeviceType::cpu) {
    throw EnvironmentError(fmt::format("no read roof is measured on {} yet", ToString(backend.device())));
  }
  static const Buffer buffer = [&] {
    Buffer fresh = backend.Alloc(kBytes);
    backend.Fill(queue, fresh.data(), 1, kBytes);  // touched, or every read would find the same zero page
    return fresh;
  }();
  backend.Stamp(queue, 2);
  const uint64_t total =
      SumOnCpu(static_cast<const uint64_t*>(buffer.data()), static_cast<int64_t>(kBytes / 8));
  backend.Stamp(queue, 3);
  backend.Synchronize(queue);
  if (total != kBytes / 8 * uint64_t{0x0101010101010101})
    throw EnvironmentError("the read sweep summed wrongly");
  return static_cast<double>(kBytes) / backend.StampSeconds(queue, 2, 3) / 1e9;
}

}  // namespace vt::bench
