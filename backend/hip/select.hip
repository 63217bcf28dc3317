// ArgMax and TopKPairs: the k largest of a row, ties to the lower index.
// Decomposition: a block owns a chunk of 2048 scores of one row as ordered 64-bit keys, 8 a thread in
// registers, and takes their maximum k times; its k keys go to scratch. The next launch does the same with
// those, until one chunk is left. The order is total, so neither chunks nor rows change a result.
// Bytes: the scores once. Bound: memory for many rows, latency else.
#include "backend/hip/choose.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kMine = 8;
constexpr int kChunk = kBlock * kMine;

struct Scores {
  const float* x;
  int64_t row;
  float multiplier, softcap;
  __device__ uint64_t Key(int r, int i) const {
    float z = x[r * row + i] * multiplier;
    if (softcap > 0) z = tanhf(z / softcap) * softcap;
    return ScoreKey(z, i);
  }
};
struct Keys {
  const uint64_t* keys;
  int64_t row;
  __device__ uint64_t Key(int r, int i) const { return keys[r * row + i]; }
};

struct Results {
  float* values;  // nullptr: ids alone
  int32_t* ids;
  uint64_t* keys;  // or, before the last level, [rows, chunks, k]
};

template <int kWave, class From>
__global__ void __launch_bounds__(kBlock) LargestKernel(From from, int n, int k, Results to) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
  uint64_t mine[kMine];
  WARMLEG_UNROLL
  for (int e = 0; e < kMine; ++e) {
    const int i = BlockX() * kChunk + e * kBlock + Thread();
    mine[e] = i < n ? from.Key(BlockY(), i) : 0;
  }
  for (int rank = 0; rank < k; ++rank) {
    uint64_t best = mine[0];
    WARMLEG_UNROLL
    for (int e = 1; e < kMine; ++e) best = mine[e] > best ? mine[e] : best;
    const uint64_t winner = BlockMax<kWave>(best, partial);
    if (best == winner) {  // keys differ, but for the empty one
      WARMLEG_UNROLL
      for (int e = 0; e < kMine; ++e) mine[e] = mine[e] == winner ? 0 : mine[e];
    }
    if (Thread() != 0) continue;
    if (to.keys != nullptr) {
      to.keys[(static_cast<int64_t>(BlockY()) * static_cast<int>(gridDim.x) + BlockX()) * k + rank] = winner;
    } else {
      to.ids[static_cast<int64_t>(BlockY()) * k + rank] = IndexOf(winner);
      if (to.values != nullptr) to.values[static_cast<int64_t>(BlockY()) * k + rank] = ScoreOf(winner);
    }
  }
}

template <class From>
void Level(Queue& queue, const From& from, int64_t rows, int64_t n, int64_t k, const Results& to) {
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    launch_early(LargestKernel<kWave, From>, Blocks(DivUp<int64_t>(n, kChunk), rows), kBlock, 0, queue, from,
                 n, k, to);
  });
}

// Chunks of the row, then chunks of their winners, until one chunk holds all.
void Largest(Queue& queue, const Scores& scores, int64_t rows, int64_t n, int64_t k, const Results& result,
             const char* purpose) {
  if (n <= kChunk) return Level(queue, scores, rows, n, k, result);
  const int64_t first = DivUp<int64_t>(n, kChunk) * k;
  const int64_t second = DivUp<int64_t>(first, kChunk) * k;
  auto* keys = Scratch<uint64_t>(queue, purpose, static_cast<size_t>(rows * (first + second)));
  uint64_t* others = keys + rows * first;
  Level(queue, scores, rows, n, k, {nullptr, nullptr, keys});
  for (n = first; n > kChunk; n = DivUp<int64_t>(n, kChunk) * k) {
    Level(queue, Keys{keys, n}, rows, n, k, {nullptr, nullptr, others});
    std::swap(keys, others);
  }
  Level(queue, Keys{keys, n}, rows, n, k, result);
}

}  // namespace

void ArgMax(Queue& queue, const ArgMaxArgs& args) {
  Largest(queue, {args.x.as<const float>(), args.x.step(0), 1, 0}, args.x.dim(0), args.x.dim(1), 1,
          {nullptr, args.out.as<int32_t>(), nullptr}, "ArgMax.partials");
}

void TopKPairs(Queue& queue, const TopKPairsArgs& args) {
  Largest(queue, {args.x.as<const float>(), args.x.step(0), args.multiplier, args.softcap}, args.x.dim(0),
          args.x.dim(1), args.values.dim(1), {args.values.as<float>(), args.ids.as<int32_t>(), nullptr},
          "TopKPairs.partials");
}

}  // namespace vt::hip::WARMLEG_VENDOR
