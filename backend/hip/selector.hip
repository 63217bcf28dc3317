// SelectorEdges, PathWalk, AcceptGreedy: the choice of a draft path and the end of a greedy round.
// Decomposition: SelectorEdges: a block owns (row, predecessor) and 16 threads the dot product of one
// successor. PathWalk: every (row, predecessor) finds its best edge in parallel, then one thread follows
// them. AcceptGreedy: one thread. Bytes: the candidates' codebook rows once from memory, then from the cache.
// Bound: latency.
#include "backend/hip/choose.h"
#include "backend/hip/sample.h"
#include "backend/vt/check.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kShare = 16;    // threads of one dot product
constexpr int kDepth = 1024;  // of a codebook row, staged at a time

template <class P, class S>
struct Edges {
  const float* values;
  const int32_t* ids;
  const float* hidden;
  const P* predecessor;
  const S* successor;
  const int32_t* anchor;
  float* edges;
  int64_t vocab;
  int k, rank;
};

// P[before] * hidden[t], from `begin` on; a token that the codebook lacks gives NaN.
template <class P, class S>
__device__ void StageQuery(const Edges<P, S>& a, int t, int32_t before, int begin, int depth, float* query) {
  const bool known = before >= 0 && before < a.vocab;
  for (int r = Thread(); r < depth; r += kBlock) {
    query[r] = known ? ToFloat(a.predecessor[before * int64_t{a.rank} + begin + r]) *
                           a.hidden[static_cast<int64_t>(t) * a.rank + begin + r]
                     : NotANumber();
  }
}

template <class P, class S>
__global__ void __launch_bounds__(kBlock) EdgesKernel(Edges<P, S> a) {
  StartInOrder();
  WARMLEG_SHARED(float, query, [kDepth]);
  WARMLEG_SHARED(float, partial, [kBlock]);
  const int t = BlockX();
  const int i = BlockY();
  if (t == 0 && i > 0) return;
  const int32_t before = t == 0 ? a.anchor[0] : a.ids[(t - 1) * a.k + i];
  for (int j0 = 0; j0 < a.k; j0 += kBlock / kShare) {
    const int j = j0 + Thread() / kShare;
    const int32_t after = j < a.k ? a.ids[t * a.k + j] : -1;
    float sum = 0;
    for (int begin = 0; begin < a.rank; begin += kDepth) {
      const int depth = a.rank - begin < kDepth ? a.rank - begin : kDepth;
      if (begin > 0 || j0 > 0) BlockSync();
      if (j0 == 0 || a.rank > kDepth) StageQuery(a, t, before, begin, depth, query);
      BlockSync();
      if (after >= 0 && after < a.vocab) {
        const S* s = a.successor + after * int64_t{a.rank} + begin;
        for (int r = Thread() % kShare; r < depth; r += kShare) sum = fmaf(query[r], ToFloat(s[r]), sum);
      } else {
        sum = NotANumber();
      }
    }
    partial[Thread()] = sum;
    BlockSync();
    if (Thread() % kShare == 0 && j < a.k) {
      float total = sum;
      for (int p = 1; p < kShare; ++p) total += partial[Thread() + p];
      a.edges[(static_cast<int64_t>(t) * a.k + i) * a.k + j] = a.values[t * a.k + j] + total;
    }
  }
}

__global__ void PathWalkKernel(const float* edges, const int32_t* ids, int32_t* drafted, int rows, int k) {
  StartInOrder();
  WARMLEG_DYNAMIC_SHARED(int32_t, best);  // [rows, k]: rank of the best successor, -1 for a NaN
  for (int at = Thread(); at < rows * k; at += Threads()) {
    if (at > 0 && at < k) continue;  // of row 0 the anchor's edges alone exist
    uint64_t key = 0;
    for (int j = 0; j < k; ++j) {
      const uint64_t other = ScoreKey(edges[static_cast<int64_t>(at) * k + j], j);
      key = other > key ? other : key;
    }
    best[at] = IndexOf(key);
  }
  BlockSync();
  if (Thread() != 0) return;
  int from = 0;
  for (int t = 0; t < rows; ++t) {
    if (from >= 0) from = best[t * k + from];
    drafted[t] = from >= 0 ? ids[t * k + from] : -1;
  }
}

struct Accept {
  const int32_t *block, *target, *stop_ids, *limit;
  int32_t *position, *last, *newest, *result;
  int rows, stops;
};

// newest may be block[0], and everything that is read must be read first: hence the copies.
__global__ void AcceptGreedyKernel(Accept a) {
  StartInOrder();
  WARMLEG_SHARED(int32_t, block, [kMaxRows]);
  WARMLEG_SHARED(int32_t, target, [kMaxRows]);
  WARMLEG_SHARED(int32_t, stop, [kMaxRows]);
  const int t = Thread();
  if (t < a.rows) {
    block[t] = a.block[t];
    target[t] = a.target[t];
    stop[t] = 0;
    for (int i = 0; i < a.stops; ++i) {
      if (a.stop_ids[i] == target[t]) stop[t] = 1;
    }
  }
  BlockSync();
  if (t != 0) return;
  const int32_t position = a.position[0];
  const int32_t room = a.limit[0] - position - 1;  // tokens that may still follow the anchor
  int accepted = 0;
  while (accepted + 1 < a.rows && block[accepted + 1] == target[accepted]) ++accepted;
  int emitted = accepted + 1 < room ? accepted + 1 : room;
  for (int i = 0; i < emitted; ++i) {
    a.result[2 + i] = target[i];
    if (stop[i] != 0) emitted = i + 1;
  }
  a.result[0] = accepted;
  a.result[1] = emitted;
  a.last[0] = emitted - 1;
  if (emitted < 1) return;  // no room: the caller sees that nothing was emitted
  a.position[0] = position + emitted;
  a.newest[0] = target[emitted - 1];
}

}  // namespace

void SelectorEdges(Queue& queue, const SelectorEdgesArgs& args) {
  WithWeight(args.predecessor, [&](auto* predecessor) {
    WithWeight(args.successor, [&](auto* successor) {
      using P = Pointee<decltype(predecessor)>;
      using S = Pointee<decltype(successor)>;
      const int64_t k = args.values.dim(1);
      const Edges<P, S> edges = {args.values.as<const float>(),
                                 args.ids.as<const int32_t>(),
                                 args.hidden.as<const float>(),
                                 predecessor,
                                 successor,
                                 args.anchor.as<const int32_t>(),
                                 args.edges.as<float>(),
                                 args.predecessor.dim(0),
                                 static_cast<int>(k),
                                 static_cast<int>(args.hidden.dim(1))};
      launch_early(EdgesKernel<P, S>, Blocks(args.values.dim(0), k), kBlock, 0, queue, edges);
    });
  });
}

void PathWalk(Queue& queue, const PathWalkArgs& args) {
  if (args.q) return SampledWalk(queue, args);
  const int64_t rows = args.ids.dim(0);
  const int64_t k = args.ids.dim(1);
  launch_early(PathWalkKernel, 1, kBlock, sizeof(int32_t) * static_cast<size_t>(rows * k), queue,
               args.edges.as<const float>(), args.ids.as<const int32_t>(), args.drafted.as<int32_t>(), rows,
               k);
}

void AcceptGreedy(Queue& queue, const AcceptGreedyArgs& args) {
  const Accept accept = {.block = args.block.as<const int32_t>(),
                         .target = args.target.as<const int32_t>(),
                         .stop_ids = args.stop_ids.as<const int32_t>(),
                         .limit = args.limit.as<const int32_t>(),
                         .position = args.position.as<int32_t>(),
                         .last = args.last.as<int32_t>(),
                         .newest = args.newest.as<int32_t>(),
                         .result = args.result.as<int32_t>(),
                         .rows = static_cast<int>(args.block.dim(0)),
                         .stops = args.stop_ids ? static_cast<int>(args.stop_ids.dim(0)) : 0};
  launch_early(AcceptGreedyKernel, 1, 64, 0, queue, accept);
}

}  // namespace vt::hip::WARMLEG_VENDOR
