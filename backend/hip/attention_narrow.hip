// Attention of up to kMaxRows rows over the cache on matrix instructions (NVIDIA, and sim for the tests): a
// tile of kTile keys for kQueries (row, head) pairs of one KV head leaves (max, sum, weighted values) in
// scratch, as in attention.hip, whose second kernel adds the tiles. Decomposition: for the scores a wave owns
// kKeys keys and kSlice of the depth; keys go from memory into the operand registers, queries stand in shared
// memory, where the slices' sums then take their place. For the values a wave owns kColumns columns, again
// straight from memory, and the weights stand in shared memory. What comes next is on its way meanwhile. An
// operand is the sum of two tf32 values, within 2^-21 of the float32 one; the product of the lower two is
// left out. The matrix unit cuts what it adds, so that no sum in it is longer than 64. A pair's bits do not
// depend on the pairs beside it. Bytes: each visible key and value once for kQueries pairs. Bound: latency
// for a few rows, instructions for many.
#include "backend/hip/attention.h"
#include "backend/hip/tile.h"

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_TILE_TF32)

namespace {

constexpr int kWaveSize = 32;
constexpr int kWaves = 8;
constexpr int kBlock = kWaves * kWaveSize;
constexpr int kTile = kTileKeys;
constexpr int kDim = 256;     // the longest head
constexpr int kSpan = 16;     // of depth or keys, two steps of the matrix unit
constexpr int kOperands = 2;  // of 16 rows each, that a wave holds
constexpr int kKeys = kOperands * 16;
constexpr int kSlices = kWaves / (kTile / kKeys);
constexpr int kSlice = kDim / kSlices;
constexpr int kColumns = kDim / kWaves;
constexpr int kQueryPitch = kDim + 16;  // two rows' quartets meet all banks
constexpr int kScorePitch = kTile + 16;

// For kN times eight pairs, the columns of one matrix operand.
template <int kN>
struct alignas(16) Shared {
  static constexpr int kQueries = kN * 8;
  union {
    float q[kQueries * kQueryPitch];
    float scores[kSlices][kQueries * kScorePitch];
    float weights[2][kQueries * kScorePitch];  // in parts
  };
  int64_t query[kQueries];  // offset in q
  int pair[kQueries];       // in the partials of a tile; -1: none
  int newest[kQueries];     // key that it sees
};

// Writes of neighbouring pairs' scores and reads of neighbouring keys' weights meet all banks.
__device__ inline int ScoreAt(int query, int key) { return query * kScorePitch + (key ^ query / 2 % 4 * 8); }

// A float32 as two tf32 values, of which the matrix unit reads the upper 19 bits.
__device__ inline float HighPart(float x) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(uint32_t, x) + 0x1000U) & 0xffffe000U);
}

// Two steps of an operand in parts: its values of a lane in step i / n are i % n of n.
template <int kValues>
struct Parts {
  uint32_t high[2][kValues], low[2][kValues];
  __device__ void Set(int step, int i, float x) {
    const float upper = HighPart(x);
    high[step][i] = __builtin_bit_cast(uint32_t, upper);
    low[step][i] = __builtin_bit_cast(uint32_t, x - upper);
  }
};
using Rows = Parts<4>;     // 16 rows: value i of row lane / 4 + i % 2 * 8 and of k lane % 4 + i / 2 * 4
using Columns = Parts<2>;  // 8 columns: value i of column lane / 4 and of k lane % 4 + i * 4

// A wave's sums with eight columns. Its operands take turns, since a sum waits for what was added last.
using Sums = float[kOperands][4];
__device__ inline void AddSpan(const Rows (&rows)[kOperands], const Columns& columns, Sums& sum) {
  WARMLEG_UNROLL
  for (int step = 0; step < 2; ++step) {
    WARMLEG_UNROLL
    for (int t = 0; t < kOperands; ++t) MultiplyTf32(rows[t].high[step], columns.low[step], sum[t]);
    WARMLEG_UNROLL
    for (int t = 0; t < kOperands; ++t) MultiplyTf32(rows[t].low[step], columns.high[step], sum[t]);
    WARMLEG_UNROLL
    for (int t = 0; t < kOperands; ++t) MultiplyTf32(rows[t].high[step], columns.high[step], sum[t]);
  }
}

// kWhole: heads are kDim long and everything lies as a Quartet does. Asked once a launch, not at each load.
template <bool kWhole>
__device__ inline Quartet Load(const Queries& a, const float* from, int c) {
  if constexpr (kWhole) return *reinterpret_cast<const Quartet*>(from + c);
  return LoadQuartet(from, c, a.d, a.aligned);
}

// Which pairs the block has.
template <int kN>
__device__ void Name(const Queries& a, const CacheKeys& keys, int g0, int head, Shared<kN>& s) {
  if (Thread() >= Shared<kN>::kQueries) return;
  const Pair pair = PairAt(a, g0 + Thread(), head);
  const bool there = pair.row < a.rows;
  s.query[Thread()] = pair.row * a.q.row + pair.head * a.q.head;
  s.pair[Thread()] = there ? pair.row * a.nq + pair.head : -1;
  s.newest[Thread()] = there ? keys.positions[pair.row] : -1;
}

// The block's queries, 0 where there is none and past d.
template <bool kWhole, int kN>
__device__ void StageQueries(const Queries& a, Shared<kN>& s) {
  constexpr int kQuartets = kDim / 4;
  constexpr int kStep = kBlock / kQuartets;
  Quartet of[kN * 8 / kStep];
  const int c = Thread() % kQuartets * 4;
  const int first = Thread() / kQuartets;
  WARMLEG_UNROLL
  for (int u = 0; u < kN * 8 / kStep; ++u) {
    const int query = first + u * kStep;
    of[u] = {};
    if (s.pair[query] >= 0) of[u] = Load<kWhole>(a, a.q.data + s.query[query], c);
  }
  WARMLEG_UNROLL
  for (int u = 0; u < kN * 8 / kStep; ++u) {
    WARMLEG_UNROLL
    for (int e = 0; e < 4; ++e) of[u].at[e] = kWhole || c + e < a.d ? of[u].at[e] : 0;
    *reinterpret_cast<Quartet*>(s.q + (first + u * kStep) * kQueryPitch + c) = of[u];
  }
}

// The wave's part of the sums q . k. A key past `end` is another one, whose score is not used.
template <bool kWhole, int kN>
__device__ void Scores(const Queries& a, const CacheKeys& keys, int j0, int end, Shared<kN>& s) {
  constexpr int kAhead = kN > 2 ? 1 : 4;  // spans on the way
  const int lane = LaneId<kWaveSize>();
  const int wave = Thread() / kWaveSize;
  const int key = wave % (kTile / kKeys) * kKeys + lane / 4;
  const int slice = wave / (kTile / kKeys);
  const int depth = slice * kSlice + lane % 4 * 4;
  const float* from[kOperands * 2];
  WARMLEG_UNROLL
  for (int i = 0; i < kOperands * 2; ++i) {
    const int j = j0 + key + i * 8;
    from[i] = keys.Key(j < end ? j : end - 1);
  }
  Quartet ahead[kAhead][kOperands * 2];
  const auto fetch = [&](int span, Quartet(&to)[kOperands * 2]) {
    WARMLEG_UNROLL
    for (int i = 0; i < kOperands * 2; ++i) {
      to[i] = Load<kWhole>(a, from[i], depth + span * kSpan);
    }
  };
  WARMLEG_UNROLL
  for (int u = 0; u < kAhead; ++u) fetch(u, ahead[u]);
  BlockSync();
  StageQueries<kWhole>(a, s);
  BlockSync();
  Sums sum[kN] = {};
  WARMLEG_NO_UNROLL
  for (int span0 = 0; span0 < kSlice / kSpan; span0 += kAhead) {
    WARMLEG_UNROLL
    for (int u = 0; u < kAhead; ++u) {
      const int span = span0 + u;
      Rows rows[kOperands];
      WARMLEG_UNROLL
      for (int i = 0; i < kOperands * 4; ++i) {
        const Quartet& of_key = ahead[u][i / 4 * 2 + i % 2];
        rows[i / 4].Set(0, i % 4, of_key.at[i / 2 % 2]);
        rows[i / 4].Set(1, i % 4, of_key.at[2 + i / 2 % 2]);
      }
      if (span + kAhead < kSlice / kSpan) fetch(span + kAhead, ahead[u]);
      WARMLEG_UNROLL
      for (int n = 0; n < kN; ++n) {
        const auto of_query =
            *reinterpret_cast<const Quartet*>(s.q + (n * 8 + lane / 4) * kQueryPitch + depth + span * kSpan);
        Columns columns;
        WARMLEG_UNROLL
        for (int e = 0; e < 4; ++e) columns.Set(e / 2, e % 2, of_query.at[e]);
        AddSpan(rows, columns, sum[n]);
      }
    }
  }
  BlockSync();
  WARMLEG_UNROLL
  for (int n = 0; n < kN; ++n) {
    WARMLEG_UNROLL
    for (int i = 0; i < kOperands * 4; ++i) {
      const int at = ScoreAt(n * 8 + lane % 4 * 2 + i % 2, key + i / 2 * 8);
      s.scores[slice][at] = sum[n][i / 4][i % 4];
    }
  }
}

// Scores to weights under the tile's maximum, which is left with their sum; a wave owns every kWaves-th pair.
template <int kN>
__device__ void Weights(const Queries& a, int tile, int j0, int end, Shared<kN>& s) {
  constexpr int kOwn = kTile / kWaveSize;
  const int lane = LaneId<kWaveSize>();
  const auto query_of = [](int u) { return u * kWaves + Thread() / kWaveSize; };
  float weight[kN][kOwn];
  float max[kN], sum[kN];
  WARMLEG_UNROLL
  for (int u = 0; u < kN; ++u) {
    const int newest = s.newest[query_of(u)] < end ? s.newest[query_of(u)] : end - 1;
    max[u] = -Infinity();
    WARMLEG_UNROLL
    for (int e = 0; e < kOwn; ++e) {
      const int j = e * kWaveSize + lane;
      const int at = ScoreAt(query_of(u), j);
      float score = s.scores[0][at];
      WARMLEG_UNROLL
      for (int slice = 1; slice < kSlices; ++slice) score += s.scores[slice][at];
      weight[u][e] = j0 + j <= newest ? score * a.scale : -Infinity();
      max[u] = fmaxf(max[u], weight[u][e]);
    }
  }
  WARMLEG_UNROLL
  for (int u = 0; u < kN; ++u) {
    max[u] = WaveMax<kWaveSize>(max[u]);
    sum[u] = 0;
    WARMLEG_UNROLL
    for (int e = 0; e < kOwn; ++e) {
      weight[u][e] = max[u] == -Infinity() ? 0 : expf(weight[u][e] - max[u]);
      sum[u] += weight[u][e];
    }
    sum[u] = WaveSum<kWaveSize>(sum[u]);
  }
  WARMLEG_UNROLL
  for (int u = 0; u < kN; ++u) {
    WARMLEG_UNROLL
    for (int e = 0; e < kOwn; ++e) {
      const int at = ScoreAt(query_of(u), e * kWaveSize + lane);
      s.weights[0][at] = HighPart(weight[u][e]);
      s.weights[1][at] = weight[u][e] - HighPart(weight[u][e]);
    }
    const int pair = s.pair[query_of(u)];
    if (lane != 0 || pair < 0) continue;
    a.max[static_cast<int64_t>(tile) * a.rows * a.nq + pair] = max[u];
    a.sum[static_cast<int64_t>(tile) * a.rows * a.nq + pair] = sum[u];
  }
}

// Four columns of the wave's of the values of a lane's four keys in a span.
struct Values {
  Quartet at[4];
  template <bool kWhole>
  __device__ void Fetch(const Queries& a, const CacheKeys& keys, int first, int c, int end) {
    WARMLEG_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int j = first + LaneId<kWaveSize>() % 4 * 4 + i;
      at[i] = Load<kWhole>(a, keys.Value(j < end ? j : end - 1), c);
    }
  }
};

// A column's weighted values stand in row lane / 4 or 8 further of one of the two operands.
template <bool kWhole, int kN>
__device__ void AddValues(const Queries& a, const CacheKeys& keys, int tile, int j0, int end, int c,
                          Values& next, const Shared<kN>& s) {
  const int lane = LaneId<kWaveSize>();
  Sums sum[kN] = {};
  WARMLEG_NO_UNROLL
  for (int first = 0; first < kTile && j0 + first < end; first += kSpan) {
    Rows rows[kOperands];
    WARMLEG_UNROLL
    for (int i = 0; i < kOperands * 4; ++i) {
      const int column = i / 4 * 2 + i % 2;
      rows[i / 4].Set(0, i % 4, next.at[i / 2 % 2].at[column]);
      rows[i / 4].Set(1, i % 4, next.at[2 + i / 2 % 2].at[column]);
    }
    if (first + kSpan < kTile) next.Fetch<kWhole>(a, keys, j0 + first + kSpan, c, end);
    WARMLEG_UNROLL
    for (int n = 0; n < kN; ++n) {
      const int at = ScoreAt(n * 8 + lane / 4, first + lane % 4 * 4);
      const auto high = *reinterpret_cast<const Vec<uint32_t, 4>*>(s.weights[0] + at);
      const auto low = *reinterpret_cast<const Vec<uint32_t, 4>*>(s.weights[1] + at);
      Columns columns;
      WARMLEG_UNROLL
      for (int e = 0; e < 4; ++e) {
        columns.high[e / 2][e % 2] = high.at[e];
        columns.low[e / 2][e % 2] = low.at[e];
      }
      AddSpan(rows, columns, sum[n]);
    }
  }
  WARMLEG_UNROLL
  for (int n = 0; n < kN; ++n) {
    WARMLEG_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int pair = s.pair[n * 8 + lane % 4 * 2 + i];
      if (pair < 0) continue;
      float* to = a.values + (static_cast<int64_t>(tile) * a.rows * a.nq + pair) * a.d + c;
      const Quartet four = {{sum[n][0][i], sum[n][0][i + 2], sum[n][1][i], sum[n][1][i + 2]}};
      if (kWhole || (a.d % 4 == 0 && c < a.d)) {
        *reinterpret_cast<Quartet*>(to) = four;
      } else {
        WARMLEG_UNROLL
        for (int e = 0; e < 4; ++e) {
          if (c + e < a.d) to[e] = four.at[e];
        }
      }
    }
  }
}

// Block `at` of the head's: a tile for a chunk of the pairs.
template <bool kWhole, int kN>
__device__ void Attend(const Queries& a, const CacheKeys& keys, int head, int at, Shared<kN>& s) {
  const int chunks = DivUp(a.rows * a.group, Shared<kN>::kQueries);
  const int g0 = at % chunks * Shared<kN>::kQueries;
  const int tile = at / chunks;
  const int last = (g0 + Shared<kN>::kQueries - 1) / a.group;
  const int end = keys.End(last < a.rows ? last : a.rows - 1);
  const int j0 = tile * kTile;
  if (j0 >= end) return;
  Name(a, keys, g0, head, s);
  Scores<kWhole>(a, keys, j0, end, s);
  const int c = Thread() / kWaveSize * kColumns + LaneId<kWaveSize>() / 4 * 4;
  Values values;
  values.Fetch<kWhole>(a, keys, j0, c, end);
  BlockSync();
  Weights(a, tile, j0, end, s);
  BlockSync();
  AddValues<kWhole>(a, keys, tile, j0, end, c, values, s);
}

// Chunks of kFew or of kMany times eight pairs, which only the position tells.
template <int kFew, int kMany, bool kWhole>
__global__ void __launch_bounds__(kBlock, 2) AttendNarrowKernel(Queries a, CacheKeys keys_of_all) {
  StartInOrder();
  WARMLEG_DYNAMIC_SHARED(Shared<kMany>, shared);
  const int head = BlockY();
  const CacheKeys keys = keys_of_all.Head(head);
  if constexpr (kFew != kMany) {
    if (keys.End(a.rows - 1) <= kFewTiles * kTile) {
      return Attend<kWhole>(a, keys, head, BlockX(), *reinterpret_cast<Shared<kFew>*>(shared));
    }
  }
  Attend<kWhole>(a, keys, head, BlockX(), *shared);
}

template <int kFew, int kMany>
void Run(Queue& queue, const Queries& a, const CacheKeys& keys, int max_tiles) {
  const int few = (max_tiles < kFewTiles ? max_tiles : kFewTiles) * DivUp(a.rows * a.group, kFew * 8);
  const int many = max_tiles * DivUp(a.rows * a.group, kMany * 8);
  const int blocks = few > many ? few : many;
  const int heads = a.nq / a.group;
  const size_t spread = SharedToSpread(queue, int64_t{blocks} * heads);
  const auto run = [&](auto* kernel) {
    launch_early(kernel, Blocks(blocks, heads), kBlock,
                 spread > sizeof(Shared<kMany>) ? spread : sizeof(Shared<kMany>), queue, a, keys);
  };
  a.aligned&& a.d == kDim ? run(AttendNarrowKernel<kFew, kMany, true>)
                          : run(AttendNarrowKernel<kFew, kMany, false>);
}

}  // namespace

bool AttendNarrow(Queue& queue, const Queries& queries, const CacheKeys& keys, int max_tiles) {
  if (queries.d > kDim || queries.d <= kDim / 2) return false;
  if (WaveSize(queue) != kWaveSize) return false;
  const int pairs = queries.rows * queries.group;
  if (pairs <= 8) {
    Run<1, 1>(queue, queries, keys, max_tiles);
  } else if (pairs <= 16) {
    Run<2, 2>(queue, queries, keys, max_tiles);
  } else {
    Run<2, 6>(queue, queries, keys, max_tiles);
  }
  return true;
}

#else

bool AttendNarrow(Queue&, const Queries&, const CacheKeys&, int) { return false; }

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
