// The read probe on the host. Bytes: the buffer once; bound: memory.
#include "backend/cpu/sum_words.h"

#include <algorithm>

namespace vt::cpu {

namespace {

constexpr int64_t kChunk = 1 << 14;  // words of one piece of a thread's work

constexpr int64_t kStreams =
    4;  // one stream a core reads a quarter less than the memory gives; a GEMV has four

// Two words at a time in independent sums, so that the adds never limit the reads.
using Words = uint64_t __attribute__((vector_size(16)));

uint64_t SumChunk(const uint64_t* words) {
  constexpr int64_t kStep = kChunk / 2 / kStreams;
  const auto* p = reinterpret_cast<const Words*>(words);
  Words sums[8] = {};
  for (int64_t i = 0; i < kStep; i += 4) {  // a cache line of each stream
    for (int64_t stream = 0; stream < kStreams; ++stream) {
      for (int64_t j = 0; j < 4; ++j) sums[stream % 2 * 4 + j] += p[stream * kStep + i + j];
    }
  }
  for (int i = 1; i < 8; ++i) sums[0] += sums[i];
  return sums[0][0] + sums[0][1];
}

}  // namespace

void SumWords(Queue&, const void* data, size_t bytes, uint64_t* partials) {
  const auto* words = static_cast<const uint64_t*>(data);
  const auto n = static_cast<int64_t>(bytes / sizeof(uint64_t));
  uint64_t total = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : total)
  for (int64_t chunk = 0; chunk < n / kChunk; ++chunk) total += SumChunk(words + chunk * kChunk);
  for (int64_t i = n / kChunk * kChunk; i < n; ++i) total += words[i];
  std::fill_n(partials, kSumPartials, uint64_t{0});
  partials[0] = total;
}

}  // namespace vt::cpu
