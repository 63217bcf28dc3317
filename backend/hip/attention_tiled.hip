// Attention over the cache for more than kMaxRows rows: softmax(q K^T * scale) V with a running softmax.
// Decomposition: a block owns kPairs (row, query head) pairs of one KV head and goes over the keys in tiles
// of kTile at fixed positions, none past its last row's. A tile's scores are a product of 4 keys x kPairs /
// 16 pairs a thread, of keys and queries staged kDepth deep in shared memory; the 16 threads of a pair agree
// on its maximum; the weighted values are a product of kPairs / 8 pairs x kDim / 32 columns a thread, which
// stay in registers for the whole call. A row's bits depend neither on its block nor on the rows beside it.
// Bytes: each visible key and value once for kPairs pairs, the queries once a tile. Flops: 4 d a pair and
// key. Bound: multiply-adds.
#include "backend/hip/attention.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kTile = 64;           // keys
constexpr int kDepth = 32;          // of a key or query, staged at a time
constexpr int kPitch = kDepth + 4;  // 16-byte aligned, neighbouring rows on other banks
constexpr int kStaged = 4096;       // values, staged at a time
constexpr int kLanes = 16;          // threads that share a pair's scores
constexpr int kKeys = kTile / kLanes;

template <int kPairs>
struct alignas(16) Shared {
  static constexpr int kRows = (kTile + kPairs) * kPitch;
  static constexpr int kPairPitch = kPairs + 4;
  float staged[kRows > kStaged ? kRows : kStaged];  // keys, then queries; or values
  float weights[kTile * kPairPitch];                // [key][pair]
  float shrink[kPairs];                             // of the sums so far; at the end the sum of weights
  int64_t query[kPairs];                            // offset in q, -1: none
};

// A depth slice of the tile's keys and of the block's queries.
template <int kPairs>
__device__ void StageSlice(const Queries& a, const CacheKeys& keys, int j0, int end, int d0,
                           Shared<kPairs>& s) {
  const int c = Thread() % kDepth;
  const bool is = d0 + c < a.d;
  WARMLEG_UNROLL
  for (int j = Thread() / kDepth; j < kTile; j += kBlock / kDepth) {
    s.staged[j * kPitch + c] = is && j0 + j < end ? keys.Key(j0 + j)[d0 + c] : 0;
  }
  WARMLEG_UNROLL
  for (int g = Thread() / kDepth; g < kPairs; g += kBlock / kDepth) {
    const int64_t from = s.query[g];
    s.staged[(kTile + g) * kPitch + c] = is && from >= 0 ? a.q.data[from + d0 + c] : 0;
  }
}

// score[e][m] += key Thread() % kLanes + e * kLanes times pair Thread() / kLanes * kMine + m, over a slice.
template <int kPairs, int kMine>
__device__ void AddScores(const Shared<kPairs>& s, float (&score)[kKeys][kMine]) {
  const float* k = s.staged + Thread() % kLanes * kPitch;
  const float* q = s.staged + (kTile + Thread() / kLanes * kMine) * kPitch;
  WARMLEG_UNROLL
  for (int c = 0; c < kDepth; c += 4) {
    Vec<float, 4> of_q[kMine];
    WARMLEG_UNROLL
    for (int m = 0; m < kMine; ++m) of_q[m] = *reinterpret_cast<const Vec<float, 4>*>(q + m * kPitch + c);
    WARMLEG_UNROLL
    for (int e = 0; e < kKeys; ++e) {
      const auto of_k = *reinterpret_cast<const Vec<float, 4>*>(k + e * kLanes * kPitch + c);
      WARMLEG_UNROLL
      for (int m = 0; m < kMine; ++m) {
        WARMLEG_UNROLL
        for (int i = 0; i < 4; ++i) score[e][m] = fmaf(of_q[m].at[i], of_k.at[i], score[e][m]);
      }
    }
  }
}

// What a thread knows of its pairs' softmax: max is the pair's, sum that of the thread's own keys.
template <int kMine>
struct Running {
  int newest[kMine];  // key that the row sees
  float max[kMine], sum[kMine];
};

// Scores to weights under the running maximum.
template <int kWave, int kPairs, int kMine>
__device__ void Weights(const Queries& a, int j0, int end, float (&score)[kKeys][kMine], Running<kMine>& run,
                        Shared<kPairs>& s) {
  const int lane = Thread() % kLanes;
  const int pair = Thread() / kLanes * kMine;
  WARMLEG_UNROLL
  for (int m = 0; m < kMine; ++m) {
    float max = run.max[m];
    WARMLEG_UNROLL
    for (int e = 0; e < kKeys; ++e) {
      const int j = j0 + lane + e * kLanes;
      score[e][m] = j < end && j <= run.newest[m] ? score[e][m] * a.scale : -Infinity();
      max = fmaxf(max, score[e][m]);
    }
    WARMLEG_UNROLL
    for (int away = kLanes / 2; away > 0; away /= 2) max = fmaxf(max, ShuffleXor<kWave>(max, away));
    const float shrink = run.max[m] == -Infinity() ? 0 : expf(run.max[m] - max);
    run.max[m] = max;
    run.sum[m] *= shrink;
    WARMLEG_UNROLL
    for (int e = 0; e < kKeys; ++e) {
      score[e][m] = max == -Infinity() ? 0 : expf(score[e][m] - max);
      run.sum[m] += score[e][m];
    }
    if (lane == 0) s.shrink[pair + m] = shrink;
  }
  WARMLEG_UNROLL
  for (int e = 0; e < kKeys; ++e) {
    WARMLEG_UNROLL
    for (int m = 0; m < kMine; ++m) {
      s.weights[(lane + e * kLanes) * Shared<kPairs>::kPairPitch + pair + m] = score[e][m];
    }
  }
}

// How a thread's sums lie: pairs Thread() / 32 * kHeld + m, columns Column(u) + e.
template <int kPairs, int kDim>
struct Sums {
  static constexpr int kHeld = kPairs / (kBlock / 32);
  static constexpr int kWide = kDim >= 128 ? 4 : kDim / 32;
  static constexpr int kSpans = kDim / (32 * kWide);
  float at[kHeld][kSpans][kWide];
  __device__ static int Column(int u) { return (u * 32 + Thread() % 32) * kWide; }
  __device__ static int FirstPair() { return Thread() / 32 * kHeld; }
};

// Adds keys first .. of the tile, whose values are staged.
template <int kPairs, int kDim>
__device__ void AddValues(const Shared<kPairs>& s, int first, Sums<kPairs, kDim>& sums) {
  using S = Sums<kPairs, kDim>;
  for (int j = 0; j < kStaged / kDim; ++j) {
    Vec<float, S::kWide> value[S::kSpans];
    WARMLEG_UNROLL
    for (int u = 0; u < S::kSpans; ++u) {
      value[u] = *reinterpret_cast<const Vec<float, S::kWide>*>(s.staged + j * kDim + S::Column(u));
    }
    const float* weights = s.weights + (first + j) * Shared<kPairs>::kPairPitch + S::FirstPair();
    WARMLEG_UNROLL
    for (int m = 0; m < S::kHeld; m += 4) {
      const auto weight = *reinterpret_cast<const Vec<float, 4>*>(weights + m);
      WARMLEG_UNROLL
      for (int i = 0; i < 4; ++i) {
        WARMLEG_UNROLL
        for (int u = 0; u < S::kSpans; ++u) {
          WARMLEG_UNROLL
          for (int e = 0; e < S::kWide; ++e) {
            sums.at[m + i][u][e] = fmaf(weight.at[i], value[u].at[e], sums.at[m + i][u][e]);
          }
        }
      }
    }
  }
}

// The tile's weighted values, added to what has been shrunk to its maximum.
template <int kPairs, int kDim>
__device__ void Accumulate(const Queries& a, const CacheKeys& keys, int j0, int end, Shared<kPairs>& s,
                           Sums<kPairs, kDim>& sums) {
  using S = Sums<kPairs, kDim>;
  WARMLEG_UNROLL
  for (int m = 0; m < S::kHeld; ++m) {
    WARMLEG_UNROLL
    for (int u = 0; u < S::kSpans; ++u) {
      WARMLEG_UNROLL
      for (int e = 0; e < S::kWide; ++e) sums.at[m][u][e] *= s.shrink[S::FirstPair() + m];
    }
  }
  for (int first = 0; first < kTile && j0 + first < end; first += kStaged / kDim) {
    if (first > 0) BlockSync();
    WARMLEG_UNROLL
    for (int n = 0; n < kStaged / kBlock; ++n) {
      const int i = Thread() + n * kBlock;
      const int j = j0 + first + i / kDim;
      s.staged[i] = j < end && i % kDim < a.d ? keys.Value(j)[i % kDim] : 0;
    }
    BlockSync();
    AddValues(s, first, sums);
  }
}

template <int kWave, int kPairs, int kDim>
__global__ void WARMLEG_BOUNDS(kBlock, kDim == 256 ? 2 : 1) TiledKernel(Queries a, CacheKeys keys_of_all) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(Shared<kPairs>, shared, [1]);
  constexpr int kMine = kPairs / kLanes;
  using S = Sums<kPairs, kDim>;
  Shared<kPairs>& s = shared[0];
  const CacheKeys keys = keys_of_all.Head(BlockY());
  // the blocks with most keys first
  const int g0 = (DivUp(a.rows * a.group, kPairs) - 1 - BlockX()) * kPairs;
  const int last = (g0 + kPairs - 1) / a.group;
  const int end = keys.End(last < a.rows ? last : a.rows - 1);
  if (Thread() < kPairs) {
    const Pair pair = PairAt(a, g0 + Thread(), BlockY());
    s.query[Thread()] = pair.row < a.rows ? pair.row * a.q.row + pair.head * a.q.head : -1;
  }
  Running<kMine> run;
  WARMLEG_UNROLL
  for (int m = 0; m < kMine; ++m) {
    const int row = (g0 + Thread() / kLanes * kMine + m) / a.group;
    run.newest[m] = row < a.rows ? keys.positions[row] : -1;
    run.max[m] = -Infinity();
    run.sum[m] = 0;
  }
  S sums = {};
  for (int j0 = 0; j0 < end; j0 += kTile) {
    float score[kKeys][kMine] = {};
    for (int d0 = 0; d0 < a.d; d0 += kDepth) {
      BlockSync();
      StageSlice(a, keys, j0, end, d0, s);
      BlockSync();
      AddScores(s, score);
    }
    Weights<kWave>(a, j0, end, score, run, s);
    BlockSync();
    Accumulate(a, keys, j0, end, s, sums);
  }
  BlockSync();
  WARMLEG_UNROLL
  for (int m = 0; m < kMine; ++m) {
    float sum = run.sum[m];
    WARMLEG_UNROLL
    for (int away = kLanes / 2; away > 0; away /= 2) sum += ShuffleXor<kWave>(sum, away);
    if (Thread() % kLanes == 0) s.shrink[Thread() / kLanes * kMine + m] = sum;
  }
  BlockSync();
  for (int m = 0; m < S::kHeld; ++m) {
    const Pair pair = PairAt(a, g0 + S::FirstPair() + m, BlockY());
    if (pair.row >= a.rows) continue;
    float* out = a.out + (static_cast<int64_t>(pair.row) * a.nq + pair.head) * a.d;
    WARMLEG_UNROLL
    for (int u = 0; u < S::kSpans; ++u) {
      WARMLEG_UNROLL
      for (int e = 0; e < S::kWide; ++e) {
        if (S::Column(u) + e < a.d) out[S::Column(u) + e] = sums.at[m][u][e] / s.shrink[S::FirstPair() + m];
      }
    }
  }
}

template <int kPairs, int kDim>
void RunTiled(Queue& queue, const Queries& a, const CacheKeys& keys) {
  WithWave(queue, [&](auto wave) {
    launch_early(TiledKernel<wave(), kPairs, kDim>, Blocks(DivUp(a.rows * a.group, kPairs), a.nq / a.group),
                 kBlock, 0, queue, a, keys);
  });
}

}  // namespace

void AttentionTiled(Queue& queue, const Queries& queries, const CacheKeys& keys) {
  if (queries.d > 256) return RunTiled<32, 512>(queue, queries, keys);
  if (queries.d > 128) return RunTiled<64, 256>(queue, queries, keys);
  if (queries.d > 64) return RunTiled<64, 128>(queue, queries, keys);
  RunTiled<64, 64>(queue, queries, keys);
}

}  // namespace vt::hip::WARMLEG_VENDOR
