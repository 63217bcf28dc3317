// Attention over the cache and DFlashBlockAttn: softmax(q K^T * scale) V for grouped query heads.
// Decomposition: keys are cut into tiles of kTile at fixed positions; a block takes one tile for kQueries
// (row, head) pairs of one KV head and leaves (max, sum, weighted values) in scratch; a second kernel adds
// the tiles in a fixed order. Within a tile a thread owns the score of one key with some of the queries,
// then one column of the values; what comes next is on its way meanwhile. Long heads over the cache have a
// form of their own for the tiles on NVIDIA, attention_narrow.hip. More than kMaxRows rows go through
// attention_tiled.hip. Bytes: each visible key and value once for kQueries queries. Bound: memory at long
// context, latency else.
#include <initializer_list>

#include "backend/hip/attention.h"
#include "backend/vt/check.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kTile = kTileKeys;
constexpr int kDepth = 64;          // of a key, staged at a time
constexpr int kPitch = kDepth + 4;  // 16-byte aligned, no two lanes of a load on one bank
constexpr int kFewest = 8;          // queries of a block
constexpr int kFew = 16;
constexpr int kMany = 48;                    // of one that reads long contexts once for them all
constexpr int kTilesAhead = 4;               // tiles of a combining thread on the way
constexpr int kJoined = 4;                   // queries whose parts are added at a time
constexpr int kSpan = 64;                    // columns of a combining block
constexpr int kRuns = kBlock / (kSpan / 4);  // of its tiles

// How the threads of a block share the scores of a tile: kKeys keys (kKeyLanes apart) by kMine queries each;
// kSlices of kDepth and kAhead values are on the way, as many as registers hold.
template <int kQueries>
struct Plan {
  static constexpr int kSlices = kQueries > 16 ? 1 : 2;
  static constexpr int kAhead = kQueries == 8 ? 8 : 4;
  static constexpr int kKeys = kQueries > 16 ? 2 : 1;
  static constexpr int kKeyLanes = kTile / kKeys;
  static constexpr int kMine = kQueries / (kBlock / kKeyLanes);
};

template <int kQueries>
struct alignas(16) Shared {
  static constexpr int kRow = kQueries + 4;  // scores of a key
  float keys[kTile * kPitch];                // later the parts of the values
  float q[kQueries * kPitch];
  float scores[kTile * kRow];
  float max[kQueries], sum[kQueries];
  int64_t query[kQueries];  // offset in q, -1: none
  int row[kQueries], pair[kQueries];
};

// A thread's part of kDepth values of the tile's keys and of the block's queries, on its way to shared
// memory. A key past `end` is another one, whose score is not used.
template <int kQueries>
struct Slice {
  static constexpr int kRow = kDepth / 4;
  static constexpr int kKeys = kTile * kRow / kBlock;
  static constexpr int kOwn = DivUp(kQueries * kRow, kBlock);
  Vec<float, 4> key[kKeys], query[kOwn];

  template <class KeysT>
  __device__ void Fetch(const Queries& a, const KeysT& keys, const Shared<kQueries>& s, int j0, int end,
                        int d0) {
    const int c = d0 + Thread() % kRow * 4;
    WARMLEG_UNROLL
    for (int u = 0; u < kKeys; ++u) {
      const int j = j0 + (u * kBlock + Thread()) / kRow;
      key[u] = LoadQuartet(keys.Key(j < end ? j : end - 1), c, a.d, a.aligned);
    }
    WARMLEG_UNROLL
    for (int u = 0; u < kOwn; ++u) {
      query[u] = {};
      const int own = (u * kBlock + Thread()) / kRow;
      const int64_t from = own < kQueries ? s.query[own] : -1;
      if (from >= 0) query[u] = LoadQuartet(a.q.data + from, c, a.d, a.aligned);
    }
  }
  // The queries are 0 past d.
  __device__ void Put(int d, int d0, Shared<kQueries>& s) const {
    const int c = Thread() % kRow * 4;
    WARMLEG_UNROLL
    for (int u = 0; u < kKeys; ++u) {
      const int j = (u * kBlock + Thread()) / kRow;
      *reinterpret_cast<Vec<float, 4>*>(s.keys + j * kPitch + c) = key[u];
    }
    WARMLEG_UNROLL
    for (int u = 0; u < kOwn; ++u) {
      const int own = (u * kBlock + Thread()) / kRow;
      if (own >= kQueries) break;
      float* to = s.q + own * kPitch + c;
      WARMLEG_UNROLL
      for (int e = 0; e < 4; ++e) to[e] = d0 + c + e < d ? query[u].at[e] : 0;
    }
  }
};

// q . k * scale of the tile at j0, or -inf where the key is not seen.
template <int kQueries, class KeysT>
__device__ void Scores(const Queries& a, const KeysT& keys, int j0, int end, Shared<kQueries>& s) {
  using P = Plan<kQueries>;
  const int key = Thread() % P::kKeyLanes;
  const int first = Thread() / P::kKeyLanes * P::kMine;
  float sum[P::kKeys][P::kMine] = {};
  Slice<kQueries> next[P::kSlices];
  WARMLEG_UNROLL
  for (int i = 0; i < P::kSlices; ++i) {
    if (i * kDepth < a.d) next[i].Fetch(a, keys, s, j0, end, i * kDepth);
  }
  const auto add = [&](Slice<kQueries>& slice, int d0) {
    BlockSync();
    slice.Put(a.d, d0, s);
    BlockSync();
    const int following = d0 + P::kSlices * kDepth;
    if (following < a.d) slice.Fetch(a, keys, s, j0, end, following);
    WARMLEG_UNROLL
    for (int c = 0; c < kDepth; c += 4) {
      Vec<float, 4> k[P::kKeys];
      WARMLEG_UNROLL
      for (int u = 0; u < P::kKeys; ++u) {
        k[u] = *reinterpret_cast<const Vec<float, 4>*>(s.keys + (key + u * P::kKeyLanes) * kPitch + c);
      }
      WARMLEG_UNROLL
      for (int m = 0; m < P::kMine; ++m) {
        const auto q = *reinterpret_cast<const Vec<float, 4>*>(s.q + (first + m) * kPitch + c);
        WARMLEG_UNROLL
        for (int u = 0; u < P::kKeys; ++u) {
          WARMLEG_UNROLL
          for (int e = 0; e < 4; ++e) sum[u][m] = fmaf(q.at[e], k[u].at[e], sum[u][m]);
        }
      }
    }
  };
  for (int d0 = 0; d0 < a.d; d0 += P::kSlices * kDepth) {
    WARMLEG_UNROLL
    for (int i = 0; i < P::kSlices; ++i) {
      if (d0 + i * kDepth < a.d) add(next[i], d0 + i * kDepth);
    }
  }
  WARMLEG_UNROLL
  for (int u = 0; u < P::kKeys; ++u) {
    const int j = key + u * P::kKeyLanes;
    WARMLEG_UNROLL
    for (int m = 0; m < P::kMine; ++m) {
      const int row = s.row[first + m];
      const bool seen = row < a.rows && j0 + j < end && keys.Visible(row, j0 + j);
      s.scores[j * Shared<kQueries>::kRow + first + m] = seen ? sum[u][m] * a.scale : -Infinity();
    }
  }
  BlockSync();
}

// Scores to weights under the tile's maximum; a wave owns a query.
template <int kWave, int kQueries>
__device__ void Weights(Shared<kQueries>& s) {
  const int lane = LaneId<kWave>();
  for (int query = Thread() / kWave; query < kQueries; query += kBlock / kWave) {
    float* scores = s.scores + query;
    float max = -Infinity();
    for (int j = lane; j < kTile; j += kWave) max = fmaxf(max, scores[j * Shared<kQueries>::kRow]);
    max = WaveMax<kWave>(max);
    float sum = 0;
    for (int j = lane; j < kTile; j += kWave) {
      float& score = scores[j * Shared<kQueries>::kRow];
      score = max == -Infinity() ? 0 : expf(score - max);
      sum += score;
    }
    sum = WaveSum<kWave>(sum);
    if (lane != 0) continue;
    s.max[query] = max;
    s.sum[query] = sum;
  }
  BlockSync();
}

// Which values a thread takes: columns column .. column + 3 of keys part, part + parts, ... of the tile.
struct Columns {
  int column, part, parts, width;

  __device__ explicit Columns(int d) : width(kBlock) {
    while (width > 8 && width / 2 * 4 >= d) width /= 2;
    parts = kBlock / width;
    part = Thread() / width;
    column = Thread() % width * 4;
  }
};

// Keys j, j + parts, ... of the tile: their values on the way. Keys outside first .. end - 1 are not read,
// since their page may be gone; their weights are 0.
template <int kAhead>
struct Values {
  Vec<float, 4> at[kAhead];

  template <class KeysT>
  __device__ void Fetch(const Queries& a, const KeysT& keys, const Columns& mine, int first, int j, int end) {
    WARMLEG_UNROLL
    for (int e = 0; e < kAhead; ++e) {
      int key = j + e * mine.parts;
      key = key < end ? key : end - 1;
      at[e] = LoadQuartet(keys.Value(key < first ? first : key), mine.column, a.d, a.aligned);
    }
  }
};

// acc += weights of keys j, j + parts, ... of the tile times their values.
template <int kQueries, int kAhead>
__device__ void AddValues(const Shared<kQueries>& s, const Values<kAhead>& values, int j, int parts,
                          float (&acc)[kQueries][4]) {
  WARMLEG_UNROLL
  for (int e = 0; e < kAhead; ++e) {
    if (j + e * parts >= kTile) break;
    const float* weights = s.scores + (j + e * parts) * Shared<kQueries>::kRow;
    WARMLEG_UNROLL
    for (int m = 0; m < kQueries; m += 4) {
      const auto weight = *reinterpret_cast<const Vec<float, 4>*>(weights + m);
      WARMLEG_UNROLL
      for (int i = 0; i < 4; ++i) {
        WARMLEG_UNROLL
        for (int u = 0; u < 4; ++u) acc[m + i][u] = fmaf(weight.at[i], values.at[e].at[u], acc[m + i][u]);
      }
    }
  }
}

// The tile's maximum and sum of weights of each query.
template <int kQueries>
__device__ void WriteSums(const Queries& a, int tile, const Shared<kQueries>& s) {
  const int64_t before = static_cast<int64_t>(tile) * a.rows * a.nq;
  if (Thread() < kQueries && s.query[Thread()] >= 0) {
    a.max[before + s.pair[Thread()]] = s.max[Thread()];
    a.sum[before + s.pair[Thread()]] = s.sum[Thread()];
  }
}

// The weighted values of kMany queries, four parts a column: a thread takes kMine queries at a time and the
// parts one after another, and adds them in the order of Finish.
template <class KeysT>
__device__ void ManyValues(const Queries& a, const KeysT& keys, const Columns& mine, int first, int j0,
                           int end, int tile, const Shared<kMany>& s) {
  constexpr int kParts = 4;
  constexpr int kAhead = Plan<kMany>::kAhead;
  constexpr int kMine = 6;
  constexpr int kRow = Shared<kMany>::kRow;
  for (int m0 = mine.part * kMine; m0 < kMany; m0 += kParts * kMine) {
    float total[kMine][4] = {};
    for (int part = 0; part < kParts; ++part) {
      float acc[kMine][4] = {};
      for (int j = part; j < kTile && j0 + j < end; j += kParts * kAhead) {
        Vec<float, 4> value[kAhead];
        WARMLEG_UNROLL
        for (int e = 0; e < kAhead; ++e) {
          int key = j0 + j + e * kParts;
          key = key < end ? key : end - 1;
          value[e] = LoadQuartet(keys.Value(key < first ? first : key), mine.column, a.d, a.aligned);
        }
        WARMLEG_UNROLL
        for (int e = 0; e < kAhead; ++e) {
          if (j + e * kParts >= kTile) break;
          const float* weights = s.scores + (j + e * kParts) * kRow + m0;
          WARMLEG_UNROLL
          for (int m = 0; m < kMine; ++m) {
            WARMLEG_UNROLL
            for (int u = 0; u < 4; ++u) acc[m][u] = fmaf(weights[m], value[e].at[u], acc[m][u]);
          }
        }
      }
      WARMLEG_UNROLL
      for (int m = 0; m < kMine; ++m) {
        WARMLEG_UNROLL
        for (int u = 0; u < 4; ++u) total[m][u] = part == 0 ? acc[m][u] : total[m][u] + acc[m][u];
      }
    }
    WARMLEG_UNROLL
    for (int m = 0; m < kMine; ++m) {
      if (s.query[m0 + m] < 0) continue;
      float* to =
          a.values + (static_cast<int64_t>(tile) * a.rows * a.nq + s.pair[m0 + m]) * a.d + mine.column;
      WARMLEG_UNROLL
      for (int u = 0; u < 4; ++u) {
        if (mine.column + u < a.d) to[u] = total[m][u];
      }
    }
  }
}

// Joins the parts of each column in order and writes the tile's partials.
template <int kQueries>
__device__ void Finish(const Queries& a, const Columns& mine, int tile, Shared<kQueries>& s,
                       const float (&acc)[kQueries][4]) {
  const int64_t before = static_cast<int64_t>(tile) * a.rows * a.nq;
  WARMLEG_UNROLL
  for (int m0 = 0; m0 < kQueries; m0 += kJoined) {
    BlockSync();
    WARMLEG_UNROLL
    for (int m = 0; m < kJoined; ++m) {
      *reinterpret_cast<Vec<float, 4>*>(s.keys + (m * kBlock + Thread()) * 4) = {
          {acc[m0 + m][0], acc[m0 + m][1], acc[m0 + m][2], acc[m0 + m][3]}};
    }
    BlockSync();
    // part p takes the queries p, p + parts, ... of these
    for (int m = mine.part; m < kJoined; m += mine.parts) {
      if (s.query[m0 + m] < 0) continue;
      const float* from = s.keys + m * kBlock * 4 + mine.column;
      float total[4];
      WARMLEG_UNROLL
      for (int u = 0; u < 4; ++u) total[u] = from[u];
      for (int p = 1; p < mine.parts; ++p) {
        WARMLEG_UNROLL
        for (int u = 0; u < 4; ++u) total[u] += from[p * mine.width * 4 + u];
      }
      float* to = a.values + (before + s.pair[m0 + m]) * a.d + mine.column;
      WARMLEG_UNROLL
      for (int u = 0; u < 4; ++u) {
        if (mine.column + u < a.d) to[u] = total[u];
      }
    }
  }
}

// A tile, counted from the first one that any row of the call sees, for the pairs of a chunk.
template <int kWave, int kQueries, class KeysT>
__device__ void Attend(const Queries& a, const KeysT& keys, int chunk, int tile, Shared<kQueries>& s) {
  const int g0 = chunk * kQueries;
  const int last = (g0 + kQueries - 1) / a.group;
  const int end = keys.End(last < a.rows ? last : a.rows - 1);
  const int j0 = (keys.Begin(0) / kTile + tile) * kTile;
  if (j0 >= end) return;
  if (Thread() < kQueries) {
    const Pair pair = PairAt(a, g0 + Thread(), BlockZ());
    s.query[Thread()] = pair.row < a.rows ? pair.row * a.q.row + pair.head * a.q.head : -1;
    s.row[Thread()] = pair.row;
    s.pair[Thread()] = pair.row * a.nq + pair.head;
  }
  const Columns mine(a.d);
  const int first = keys.Begin(g0 / a.group);
  if constexpr (kQueries == kMany) {
    BlockSync();
    Scores(a, keys, j0, end, s);
    Weights<kWave>(s);
    WriteSums(a, tile, s);
    ManyValues(a, keys, mine, first, j0, end, tile, s);
  } else {
    constexpr int kAhead = Plan<kQueries>::kAhead;
    Values<kAhead> next;
    next.Fetch(a, keys, mine, first, j0 + mine.part, end);
    BlockSync();
    Scores(a, keys, j0, end, s);
    Weights<kWave>(s);
    WriteSums(a, tile, s);
    float acc[kQueries][4] = {};
    for (int j = mine.part; j < kTile && j0 + j < end; j += mine.parts * kAhead) {
      const Values<kAhead> now = next;
      next.Fetch(a, keys, mine, first, j0 + j + mine.parts * kAhead, end);
      AddValues(s, now, j, mine.parts, acc);
    }
    Finish(a, mine, tile, s, acc);
  }
}

template <int kWave, int kQueries, class KeysT>
__global__ void WARMLEG_BOUNDS(kBlock, 2) AttendKernel(Queries a, KeysT keys) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(Shared<kQueries>, s, [1]);
  Attend<kWave>(a, keys.Head(BlockZ()), BlockY(), BlockX(), s[0]);
}

// Chunks of kFew pairs or of kMany, which only the position tells: few tiles are better shared by more
// blocks, many better read once. The bits are the same, so that the choice is free.
union EitherShared {
  Shared<kFew> few;
  Shared<kMany> many;
};
template <int kWave>
__global__ void WARMLEG_BOUNDS(kBlock, 2) AttendEitherKernel(Queries a, CacheKeys keys) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(EitherShared, s, [1]);
  const CacheKeys of_head = keys.Head(BlockZ());
  if (keys.End(a.rows - 1) <= kFewTiles * kTile)
    return Attend<kWave>(a, of_head, BlockY(), BlockX(), s[0].few);
  constexpr int kJoint = kMany / kFew;
  if (BlockY() % kJoint == 0) Attend<kWave>(a, of_head, BlockY() / kJoint, BlockX(), s[0].many);
}

// out = sum of the tiles that the row sees, under their common maximum: kRuns runs of every kRuns-th tile,
// then the runs.
template <int kWave, class KeysT>
__global__ void WARMLEG_BOUNDS(kBlock, 3) CombineKernel(Queries a, KeysT keys) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(float, partial, [kBlock / kWave]);
  WARMLEG_SHARED(float, sums, [kRuns]);
  WARMLEG_SHARED(Quartet, totals, [kRuns][kSpan / 4]);
  const int row = BlockX() / a.nq;
  const int64_t pairs = static_cast<int64_t>(a.rows) * a.nq;
  const int64_t at = BlockX();
  const int base = keys.Begin(0) / kTile;
  const int begin = keys.Begin(row) / kTile;
  const int end = DivUp(keys.End(row), kTile);
  const int run = Thread() / (kSpan / 4);
  const int quartet = Thread() % (kSpan / 4);
  const int c = BlockY() * kSpan + quartet * 4;
  float of_tile[kTilesAhead];
  float of_sum[kTilesAhead];
  Quartet of_values[kTilesAhead];
  const auto fetch = [&](int t) {
    const int64_t first = (t - base) * pairs + at;
    WARMLEG_UNROLL
    for (int e = 0; e < kTilesAhead; ++e) {
      const bool there = t + e * kRuns < end;
      const int64_t i = first + e * kRuns * pairs;
      of_tile[e] = there ? a.max[i] : -Infinity();
      of_sum[e] = there ? a.sum[i] : 0;
      of_values[e] = {};
      if (there) of_values[e] = LoadQuartet(a.values + i * a.d, c, a.d, a.d % 4 == 0);
    }
  };
  int t = begin + (run + kRuns - begin % kRuns) % kRuns;
  fetch(t);
  float max = -Infinity();
  for (int i = begin + Thread(); i < end; i += kBlock) max = fmaxf(max, a.max[(i - base) * pairs + at]);
  max = BlockMax<kWave>(max, partial);
  float sum = 0;
  Quartet total = {};
  for (; t < end; t += kRuns * kTilesAhead, fetch(t)) {
    WARMLEG_UNROLL
    for (int e = 0; e < kTilesAhead; ++e) {
      const float shrink = of_tile[e] == -Infinity() ? 0 : expf(of_tile[e] - max);
      sum += shrink * of_sum[e];
      WARMLEG_UNROLL
      for (int i = 0; i < 4; ++i) total.at[i] += shrink * of_values[e].at[i];
    }
  }
  if (quartet == 0) sums[run] = sum;
  totals[run][quartet] = total;
  BlockSync();
  const int column = BlockY() * kSpan + Thread();
  if (Thread() >= kSpan || column >= a.d) return;
  float of_all = 0;
  float value = 0;
  for (int i = 0; i < kRuns; ++i) {
    of_all += sums[i];
    value += totals[i][Thread() / 4].at[Thread() % 4];
  }
  a.out[at * a.d + column] = value / of_all;
}

// The tiles' partials, in the form for any vendor.
template <class KeysT>
void AttendTiles(Queue& queue, const Queries& a, const KeysT& keys, int max_tiles) {
  const int of_head = a.rows * a.group;
  WithWave(queue, [&](auto wave) {
    const auto run = [&](auto* kernel, int queries) {
      launch_early(kernel, Blocks(max_tiles, DivUp(of_head, queries), a.nq / a.group), kBlock, 0, queue, a,
                   keys);
    };
    constexpr bool kCache = std::is_same_v<KeysT, CacheKeys>;
    const bool four_parts = a.d > kBlock / 2 && a.d <= kBlock;
    if (of_head <= kFewest) {
      run(AttendKernel<wave(), kFewest, KeysT>, kFewest);
    } else if (kCache && four_parts && of_head > kFew) {
      if constexpr (kCache) run(AttendEitherKernel<wave()>, kFew);
    } else {
      run(AttendKernel<wave(), kFew, KeysT>, kFew);
    }
  });
}

template <class KeysT>
void Dispatch(Queue& queue, Queries a, const KeysT& keys, int max_tiles, const char* purpose) {
  const int64_t pairs = static_cast<int64_t>(a.rows) * a.nq;
  a.values = Scratch<float>(queue, purpose, static_cast<size_t>(max_tiles * pairs * (a.d + 2)));
  a.max = a.values + max_tiles * pairs * a.d;
  a.sum = a.max + max_tiles * pairs;
  bool attended = false;
  if constexpr (std::is_same_v<KeysT, CacheKeys>) attended = AttendNarrow(queue, a, keys, max_tiles);
  if (!attended) AttendTiles(queue, a, keys, max_tiles);
  WithWave(queue, [&](auto wave) {
    launch_early(CombineKernel<wave(), KeysT>, Blocks(pairs, DivUp(a.d, kSpan)), kBlock, 0, queue, a, keys);
  });
}

Queries QueriesOf(const Tensor& q, const Tensor& out, int64_t kv_heads, float scale) {
  return {.q = ViewOf(q),
          .out = out.as<float>(),
          .rows = static_cast<int>(q.dim(0)),
          .nq = static_cast<int>(q.dim(1)),
          .d = static_cast<int>(q.dim(2)),
          .group = static_cast<int>(q.dim(1) / kv_heads),
          .scale = scale,
          .aligned = false,
          .max = nullptr,
          .sum = nullptr,
          .values = nullptr};
}

}  // namespace

void Attention(Queue& queue, const AttentionArgs& args) {
  const CacheKeys keys = {.k = args.k.as<const float>(),
                          .v = args.v.as<const float>(),
                          .step = args.k.step(0),
                          .head = args.k.step(1),
                          .capacity = static_cast<int>(args.k.dim(0)),
                          .positions = args.positions.as<const int32_t>()};
  Queries queries = QueriesOf(args.q, args.out, args.k.dim(1), args.scale);
  queries.aligned = Aligned({queries.q, ViewOf(args.k), ViewOf(args.v)}, queries.d);
  if (queries.rows > kMaxRows) return AttentionTiled(queue, queries, keys);
  Dispatch(queue, queries, keys, DivUp(keys.capacity, kTile), "Attention.partials");
}

void DFlashBlockAttn(Queue& queue, const DFlashBlockAttnArgs& args) {
  const bool paged = static_cast<bool>(args.pages);
  const BlockKeys keys = {
      .k = args.k_ctx.as<const float>(),
      .v = args.v_ctx.as<const float>(),
      .step = args.k_ctx.step(0),
      .head = args.k_ctx.step(1),
      .k_block = ViewOf(args.k_block),
      .v_block = ViewOf(args.v_block),
      .pages = args.pages.as<const int32_t>(),
      .page_size = paged ? args.page_size : 1,
      .physical_rows = static_cast<int>(args.k_ctx.dim(0)),
      .capacity = static_cast<int>(paged ? args.pages.dim(0) * args.page_size : args.k_ctx.dim(0)),
      .start = args.start.as<const int32_t>(),
      .rows = static_cast<int>(args.q.dim(0)),
      .window = args.window,
      .causal = args.causal};
  const int most = keys.capacity + keys.rows;
  const int seen = args.window > 0 && args.window + keys.rows < most ? args.window + keys.rows : most;
  Queries queries = QueriesOf(args.q, args.out, args.k_block.dim(1), args.scale);
  queries.aligned =
      Aligned({queries.q, ViewOf(args.k_ctx), ViewOf(args.v_ctx), keys.k_block, keys.v_block}, queries.d);
  Dispatch(queue, queries, keys, DivUp(seen, kTile) + 1, "DFlashBlockAttn.partials");
}

}  // namespace vt::hip::WARMLEG_VENDOR
