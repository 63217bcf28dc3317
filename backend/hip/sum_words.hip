// The read probe: every 16-byte piece of a buffer once.
// Decomposition: kSumPartials blocks take turns over chunks of the buffer, each thread keeps several loads in
// flight; a block leaves one partial sum. Bytes: the buffer. Bound: memory.
#include "backend/hip/common.h"
#include "backend/hip/sum_words.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kInFlight = 4;  // loads of a thread before the first use
constexpr int64_t kChunk = int64_t{kBlock} * kInFlight;

struct alignas(16) Pair {
  uint64_t a, b;
};

template <int kWave>
__global__ void SumWordsKernel(const Pair* data, int64_t n, uint64_t* partials) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, sums, [kBlock / kWave]);
  uint64_t sum = 0;
  for (int64_t first = blockIdx.x * kChunk; first < n; first += kSumPartials * kChunk) {
    const int64_t i = first + threadIdx.x;
    const bool whole = first + kChunk <= n;
    Pair loaded[kInFlight];
    WARMLEG_UNROLL
    for (int j = 0; j < kInFlight; ++j) {
      loaded[j] = {0, 0};
      if (whole || i + j * kBlock < n) loaded[j] = data[i + j * kBlock];
    }
    WARMLEG_UNROLL
    for (int j = 0; j < kInFlight; ++j) sum += loaded[j].a + loaded[j].b;
  }
  sum = BlockSum<kWave>(sum, sums);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

}  // namespace

void SumWords(Queue& queue, const void* data, size_t bytes, uint64_t* partials) {
  WithWave(queue, [&](auto wave) {
    launch(SumWordsKernel<wave()>, kSumPartials, kBlock, 0, queue, static_cast<const Pair*>(data),
           static_cast<int64_t>(bytes / 16), partials);
  });
}

}  // namespace vt::hip::WARMLEG_VENDOR
