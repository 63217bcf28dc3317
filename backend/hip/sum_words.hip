// The read probe: every 16-byte piece of a buffer once.
// Decomposition: kSumPartials blocks stride over the buffer together, each thread keeps several loads in
// flight; a block leaves one partial sum. Bytes: the buffer. Bound: memory.
#include "backend/hip/common.h"
#include "backend/hip/sum_words.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kInFlight = 4;  // loads of a thread before the first use

struct alignas(16) Pair {
  uint64_t a, b;
};

__global__ void SumWordsKernel(const Pair* data, int64_t n, uint64_t* partials) {
  WARMLEG_SHARED(uint64_t, sums, [kBlock]);
  const int64_t stride = static_cast<int64_t>(kBlock) * kSumPartials;
  uint64_t sum = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; i < n; i += kInFlight * stride) {
    Pair loaded[kInFlight];
    WARMLEG_UNROLL
    for (int j = 0; j < kInFlight; ++j) loaded[j] = i + j * stride < n ? data[i + j * stride] : Pair{0, 0};
    WARMLEG_UNROLL
    for (int j = 0; j < kInFlight; ++j) sum += loaded[j].a + loaded[j].b;
  }
  sums[threadIdx.x] = sum;
  BlockSync();
  if (threadIdx.x == 0) {
    uint64_t total = 0;
    for (int i = 0; i < kBlock; ++i) total += sums[i];
    partials[blockIdx.x] = total;
  }
}

}  // namespace

void SumWords(Queue& queue, const void* data, size_t bytes, uint64_t* partials) {
  launch(SumWordsKernel, kSumPartials, kBlock, 0, queue, static_cast<const Pair*>(data),
         static_cast<int64_t>(bytes / 16), partials);
}

}  // namespace vt::hip::WARMLEG_VENDOR
