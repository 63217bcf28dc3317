// Made-up weights and acceptance (vt/made_up.h).
// Decomposition: a thread makes one group of a fill from one word; the forced acceptance is one thread. Bytes
// of a fill: the tensor once. Bound: memory.
#include "backend/hip/made_up.h"

#include "backend/hip/common.h"
#include "backend/vt/random_bits.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;

__device__ inline void Store(float value, float& to) { to = value; }
__device__ inline void Store(float value, bf16& to) { to.bits = RoundToBf16(value); }

// `whole`: the address suits one store a group.
template <class T>
__global__ void FillKernel(T* out, int64_t n, RandomFill fill, bool whole) {
  const int64_t group = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const int64_t first = group * kFillGroup;
  if (first >= n) return;
  const uint64_t word = RandomWord(fill.key, static_cast<uint64_t>(group));
  Vec<T, kFillGroup> values;
  WARMLEG_UNROLL
  for (int lane = 0; lane < kFillGroup; ++lane)
    Store(FillValue(word, lane, fill.amplitude, fill.centre), values.at[lane]);
  if (whole && first + kFillGroup <= n) {
    *reinterpret_cast<Vec<T, kFillGroup>*>(out + first) = values;
    return;
  }
  for (int lane = 0; lane < kFillGroup; ++lane)
    if (first + lane < n) out[first + lane] = values.at[lane];
}

template <class T>
void Fill(Queue& queue, const Tensor& out, const RandomFill& fill) {
  const int64_t n = out.count();
  const bool whole = reinterpret_cast<uintptr_t>(out.data) % sizeof(Vec<T, kFillGroup>) == 0;
  launch(FillKernel<T>, Blocks(DivUp<int64_t>(n, int64_t{kBlock} * kFillGroup)), kBlock, 0, queue,
         out.as<T>(), n, fill, whole);
}

__global__ void AcceptKernel(const int32_t* counts, int32_t n, int32_t* round, const int32_t* block,
                             int32_t* target, int32_t drafts) {
  if (threadIdx.x != 0) return;
  const int32_t wanted = counts[*round % n];
  const int32_t accepted = wanted < drafts ? wanted : drafts;
  for (int32_t i = 0; i < accepted; ++i) target[i] = block[i + 1];
  if (accepted < drafts && target[accepted] == block[accepted + 1])
    target[accepted] = target[accepted] == 0 ? 1 : target[accepted] - 1;
  *round += 1;
}

}  // namespace

void FillRandomTensor(Queue& queue, const Tensor& out, const RandomFill& fill) {
  if (out.dtype == DType::bf16)
    Fill<bf16>(queue, out, fill);
  else
    Fill<float>(queue, out, fill);
}

void ForceAccepted(Queue& queue, const ForcedAccept& args) {
  launch(AcceptKernel, 1, 32, 0, queue, args.counts.as<const int32_t>(),
         static_cast<int32_t>(args.counts.dim(0)), args.round.as<int32_t>(), args.block.as<const int32_t>(),
         args.target.as<int32_t>(), static_cast<int32_t>(args.block.dim(0)) - 1);
}

}  // namespace vt::hip::WARMLEG_VENDOR
