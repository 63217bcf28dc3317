// Attention over the cache and DFlashBlockAttn: softmax(q K^T * scale) V for grouped query heads.
// Decomposition: keys are cut into tiles of kTile at fixed positions; a block takes one tile for kQueries
// (row, head) pairs of one KV head and leaves (max, sum, weighted values) in scratch; a second kernel adds
// the tiles in ascending order. Within a tile a thread owns the score of one key with some of the queries,
// then one column of the values. More than kMaxRows rows go through attention_tiled.hip.
// Bytes: each visible key and value once for kQueries queries. Bound: memory at long context, latency else.
#include "backend/hip/attention.h"
#include "backend/vt/check.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kTile = 64;           // keys
constexpr int kDepth = 64;          // of a key, staged at a time
constexpr int kPitch = kDepth + 4;  // 16-byte aligned, no two lanes of a load on one bank
constexpr int kKeyGroups = kBlock / kTile;

template <int kQueries>
struct Shared {
  float keys[kTile * kPitch];  // later the parts of the values
  float q[kQueries * kPitch];
  float scores[kTile * kQueries];  // [key][query]
  float max[kQueries], sum[kQueries], shrink[kQueries];
};

// scores[key][query] = q . k * scale of the tile at j0, or -inf where the key is not seen.
template <int kQueries, class KeysT>
__device__ void Scores(const Queries& a, const KeysT& keys, int g0, int j0, int end, Shared<kQueries>& s) {
  constexpr int kMine = kQueries / kKeyGroups;
  const int key = Thread() % kTile;
  const int first = Thread() / kTile * kMine;
  float sum[kMine] = {};
  for (int d0 = 0; d0 < a.d; d0 += kDepth) {
    const int depth = a.d - d0 < kDepth ? a.d - d0 : kDepth;
    BlockSync();
    for (int i = Thread(); i < kTile * kDepth; i += kBlock) {
      const int j = i / kDepth;
      const int c = i % kDepth;
      s.keys[j * kPitch + c] = j0 + j < end && c < depth ? keys.Key(j0 + j)[d0 + c] : 0;
    }
    for (int i = Thread(); i < kQueries * kDepth; i += kBlock) {
      const Pair pair = PairAt(a, g0 + i / kDepth, BlockZ());
      const int c = i % kDepth;
      s.q[i / kDepth * kPitch + c] = pair.row < a.rows && c < depth ? a.q.At(pair.row, pair.head)[d0 + c] : 0;
    }
    BlockSync();
    for (int c = 0; c < kDepth; c += 4) {
      const auto k = *reinterpret_cast<const Vec<float, 4>*>(s.keys + key * kPitch + c);
      WARMLEG_UNROLL
      for (int m = 0; m < kMine; ++m) {
        const auto q = *reinterpret_cast<const Vec<float, 4>*>(s.q + (first + m) * kPitch + c);
        WARMLEG_UNROLL
        for (int e = 0; e < 4; ++e) sum[m] = fmaf(q.at[e], k.at[e], sum[m]);
      }
    }
  }
  WARMLEG_UNROLL
  for (int m = 0; m < kMine; ++m) {
    const int row = (g0 + first + m) / a.group;
    const bool seen = row < a.rows && j0 + key < end && keys.Visible(row, j0 + key);
    s.scores[key * kQueries + first + m] = seen ? sum[m] * a.scale : -Infinity();
  }
  BlockSync();
}

// Scores to weights under the running maximum; a wave owns a query.
template <int kWave, int kQueries>
__device__ void Weights(Shared<kQueries>& s) {
  const int lane = LaneId<kWave>();
  for (int query = Thread() / kWave; query < kQueries; query += kBlock / kWave) {
    float mine = -Infinity();
    for (int j = lane; j < kTile; j += kWave) mine = fmaxf(mine, s.scores[j * kQueries + query]);
    const float before = s.max[query];
    const float max = fmaxf(before, WaveMax<kWave>(mine));
    float sum = 0;
    for (int j = lane; j < kTile; j += kWave) {
      float& score = s.scores[j * kQueries + query];
      score = max == -Infinity() ? 0 : expf(score - max);
      sum += score;
    }
    sum = WaveSum<kWave>(sum);
    if (lane == 0) {
      const float shrink = before == -Infinity() ? 0 : expf(before - max);
      s.max[query] = max;
      s.sum[query] = s.sum[query] * shrink + sum;
      s.shrink[query] = shrink;
    }
  }
  BlockSync();
}

// Adds the tile's weighted values to `acc`: column c of keys `part`, part + parts, ...; none before `first`
// is read, since its page may be gone.
template <int kQueries, int kColumns, class KeysT>
__device__ void AddValues(const Queries& a, const KeysT& keys, int first, int j0, int end, int c, int width,
                          int part, int parts, const Shared<kQueries>& s, float (&acc)[kColumns][kQueries]) {
  WARMLEG_UNROLL
  for (int u = 0; u < kColumns; ++u) {
    WARMLEG_UNROLL
    for (int m = 0; m < kQueries; ++m) acc[u][m] *= s.shrink[m];
  }
  constexpr int kAhead = 8;  // loads in flight
  for (int j = part; j < kTile && j0 + j < end; j += parts * kAhead) {
    float value[kColumns][kAhead];
    WARMLEG_UNROLL
    for (int e = 0; e < kAhead; ++e) {
      const int at = j0 + j + e * parts;
      WARMLEG_UNROLL
      for (int u = 0; u < kColumns; ++u) {
        value[u][e] = at >= first && at < end && j + e * parts < kTile && c + u * width < a.d
                          ? keys.Value(at)[c + u * width]
                          : 0;
      }
    }
    WARMLEG_UNROLL
    for (int e = 0; e < kAhead; ++e) {
      if (j + e * parts >= kTile) continue;
      WARMLEG_UNROLL
      for (int m = 0; m < kQueries; ++m) {
        const float weight = s.scores[(j + e * parts) * kQueries + m];
        WARMLEG_UNROLL
        for (int u = 0; u < kColumns; ++u) acc[u][m] = fmaf(weight, value[u][e], acc[u][m]);
      }
    }
  }
}

// Joins the parts of each column in order and writes the tile's partials.
template <int kQueries, int kColumns>
__device__ void Finish(const Queries& a, int g0, int tile, int c, int width, int part, int parts,
                       Shared<kQueries>& s, const float (&acc)[kColumns][kQueries]) {
  const int64_t pairs = static_cast<int64_t>(a.rows) * a.nq;
  WARMLEG_UNROLL
  for (int u = 0; u < kColumns; ++u) {
    BlockSync();
    WARMLEG_UNROLL
    for (int m = 0; m < kQueries; ++m) s.keys[m * kBlock + Thread()] = acc[u][m];
    BlockSync();
    const int column = c + u * width;
    for (int m = part; m < kQueries; m += parts) {
      const Pair pair = PairAt(a, g0 + m, BlockZ());
      if (pair.row >= a.rows || column >= a.d) continue;
      float total = s.keys[m * kBlock + c];
      for (int p = 1; p < parts; ++p) total += s.keys[m * kBlock + p * width + c];
      const int64_t at = static_cast<int64_t>(pair.row) * a.nq + pair.head;
      a.values[(tile * pairs + at) * a.d + column] = total;
      if (column == 0) {
        a.max[tile * pairs + at] = s.max[m];
        a.sum[tile * pairs + at] = s.sum[m];
      }
    }
  }
}

template <int kWave, int kQueries, int kColumns, class KeysT>
__global__ void WARMLEG_BOUNDS(kBlock, kQueries == 8 ? KeysT::kLeastBlocks : 0)
    AttendKernel(Queries a, KeysT keys_of_all) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(Shared<kQueries>, s, [1]);
  const KeysT keys = keys_of_all.Head(BlockZ());
  const int g0 = BlockY() * kQueries;
  const int last = (g0 + kQueries - 1) / a.group;
  const int end = keys.End(last < a.rows ? last : a.rows - 1);
  // tiles count from the first one that any row of the call sees
  const int tile = keys.Begin(0) / kTile + BlockX();
  if (tile * kTile >= end) return;
  if (Thread() < kQueries) {
    s[0].max[Thread()] = -Infinity();
    s[0].sum[Thread()] = 0;
  }
  int width = kBlock;  // threads over the columns of the values; the others take other keys
  while (width > 32 && width / 2 >= a.d) width /= 2;
  const int parts = kBlock / width;
  const int c = Thread() % width;
  const int part = Thread() / width;
  float acc[kColumns][kQueries] = {};
  Scores(a, keys, g0, tile * kTile, end, s[0]);
  Weights<kWave>(s[0]);
  AddValues(a, keys, keys.Begin(g0 / a.group), tile * kTile, end, c, width, part, parts, s[0], acc);
  Finish<kQueries, kColumns>(a, g0, BlockX(), c, width, part, parts, s[0], acc);
}

// out = sum of the tiles that the row sees, in ascending order, under their common maximum.
template <class KeysT>
__global__ void CombineKernel(Queries a, KeysT keys) {
  const int row = BlockX() / a.nq;
  const int64_t pairs = static_cast<int64_t>(a.rows) * a.nq;
  const int64_t at = BlockX();
  const int base = keys.Begin(0) / kTile;
  const int begin = keys.Begin(row) / kTile - base;
  const int end = DivUp(keys.End(row), kTile) - base;
  float max = -Infinity();
  for (int t = begin; t < end; ++t) max = fmaxf(max, a.max[t * pairs + at]);
  for (int c = Thread(); c < a.d; c += Threads()) {
    float sum = 0;
    float total = 0;
    for (int t = begin; t < end; ++t) {
      const float of_tile = a.max[t * pairs + at];
      const float shrink = of_tile == -Infinity() ? 0 : expf(of_tile - max);
      sum += shrink * a.sum[t * pairs + at];
      total += shrink * a.values[(t * pairs + at) * a.d + c];
    }
    a.out[at * a.d + c] = total / sum;
  }
}

template <int kQueries, int kColumns, class KeysT>
void RunAttend(Queue& queue, Queries a, const KeysT& keys, int max_tiles, const char* purpose) {
  const int64_t pairs = static_cast<int64_t>(a.rows) * a.nq;
  const int chunks = DivUp(a.rows * a.group, kQueries);
  a.values = Scratch<float>(queue, purpose, static_cast<size_t>(max_tiles * pairs * (a.d + 2)));
  a.max = a.values + max_tiles * pairs * a.d;
  a.sum = a.max + max_tiles * pairs;
  WithWave(queue, [&](auto wave) {
    launch(AttendKernel<wave(), kQueries, kColumns, KeysT>, Blocks(max_tiles, chunks, a.nq / a.group), kBlock,
           0, queue, a, keys);
  });
  launch(CombineKernel<KeysT>, pairs, a.d <= 64 ? 64 : 128, 0, queue, a, keys);
}

template <class KeysT>
void Dispatch(Queue& queue, const Queries& a, const KeysT& keys, int max_tiles, const char* purpose) {
  if (a.d > kBlock) return RunAttend<8, 2>(queue, a, keys, max_tiles, purpose);
  if (a.rows * a.group <= 8) return RunAttend<8, 1>(queue, a, keys, max_tiles, purpose);
  RunAttend<16, 1>(queue, a, keys, max_tiles, purpose);
}

Queries QueriesOf(const Tensor& q, const Tensor& out, int64_t kv_heads, float scale) {
  return {.q = ViewOf(q),
          .out = out.as<float>(),
          .rows = static_cast<int>(q.dim(0)),
          .nq = static_cast<int>(q.dim(1)),
          .d = static_cast<int>(q.dim(2)),
          .group = static_cast<int>(q.dim(1) / kv_heads),
          .scale = scale,
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
  const Queries queries = QueriesOf(args.q, args.out, args.k.dim(1), args.scale);
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
  Dispatch(queue, QueriesOf(args.q, args.out, args.k_block.dim(1), args.scale), keys, DivUp(seen, kTile) + 1,
           "DFlashBlockAttn.partials");
}

}  // namespace vt::hip::WARMLEG_VENDOR
