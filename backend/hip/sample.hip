// RandomSample, RejectionSample and the sampled PathWalk.
// Decomposition: a token is the largest of a row's ordered 64-bit candidates (vt/sampler.h), so a row may be
// cut anywhere. Split: phase A, a block of 256 takes a chunk and writes its best candidate to the queue's
// scratch; phase B, a block a row takes the best of those. One block of 1024 threads does a short row.
// RejectionSample: each block works out which draft fails first (15 threads), then that row is split alike.
// Bytes: the logits once. Bound: two logarithms a token, latency else.
#include "backend/hip/sample.h"

#include <algorithm>

#include "backend/vt/backend.h"
#include "backend/vt/check.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kChunk = 2048;  // tokens of one block

struct Sample {
  const float* x;
  int64_t row;
  DrawsView draws;
  int n, chunk;
  uint64_t* partials;  // [rows, blocks], or nullptr: the block has the whole row
  int32_t* out;
};

template <int kWave>
__global__ void __launch_bounds__(kMaxBlock) SampleKernel(Sample a) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, partial, [kMaxBlock / kWave]);
  const int r = BlockY();
  const float* x = a.x + r * a.row;
  const uint64_t key = a.draws.Key(r, Purpose::sample);
  const int begin = BlockX() * a.chunk;
  const int end = a.n - begin < a.chunk ? a.n : begin + a.chunk;
  uint64_t best = 0;
  for (int i = begin + Thread(); i < end; i += Threads()) {
    const uint64_t drawn = sampler::Drawn(x[i], key, static_cast<uint32_t>(i));
    best = drawn > best ? drawn : best;
  }
  best = BlockMax<kWave>(best, partial);
  if (Thread() != 0) return;
  if (a.partials != nullptr) {
    a.partials[static_cast<int64_t>(r) * static_cast<int>(gridDim.x) + BlockX()] = best;
  } else {
    a.out[r] = sampler::TokenOf(best);
  }
}

template <int kWave>
__global__ void __launch_bounds__(kBlock) CombineKernel(const uint64_t* partials, int blocks, int32_t* out) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
  uint64_t best = 0;
  for (int i = Thread(); i < blocks; i += kBlock) {
    const uint64_t other = partials[static_cast<int64_t>(BlockX()) * blocks + i];
    best = other > best ? other : best;
  }
  best = BlockMax<kWave>(best, partial);
  if (Thread() == 0) out[BlockX()] = sampler::TokenOf(best);
}

// The first draft that fails, or `drafts`; known to all threads.
struct Rejection {
  const int32_t *block, *ids, *bonus;
  const float *p, *q;
  int64_t row;
  DrawsView draws;
  int drafts, n, k, chunk;
  uint64_t* partials;  // [blocks]
  int32_t* target;
};

__device__ int FirstFailure(const Rejection& a, int32_t* failed) {
  const int t = Thread();
  if (t < a.drafts) {
    const int32_t draft = a.block[t + 1];
    float q = 0;
    for (int j = 0; j < a.k; ++j) q = a.ids[t * a.k + j] == draft ? a.q[t * a.k + j] : q;
    const bool known = draft >= 0 && draft < a.n;
    failed[t] = known && sampler::Accepts(a.draws.Key(t, Purpose::accept), static_cast<uint32_t>(draft),
                                          a.p[t * a.row + draft], q)
                    ? 0
                    : 1;
  }
  BlockSync();
  int first = 0;
  while (first < a.drafts && failed[first] == 0) ++first;
  return first;
}

template <int kWave>
__global__ void __launch_bounds__(kBlock) ReplaceKernel(Rejection a) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
  WARMLEG_SHARED(int32_t, failed, [kMaxRows]);
  WARMLEG_SHARED(int32_t, ids, [kMaxCandidates]);
  WARMLEG_SHARED(float, q, [kMaxCandidates]);
  const int t = FirstFailure(a, failed);
  uint64_t best = 0;
  if (t < a.drafts) {  // the same in every thread
    for (int j = Thread(); j < a.k; j += kBlock) {
      ids[j] = a.ids[t * a.k + j];
      q[j] = a.q[t * a.k + j];
    }
    BlockSync();
    const uint64_t key = a.draws.Key(t, Purpose::resample);
    const int32_t draft = a.block[t + 1];
    const int begin = BlockX() * a.chunk;
    const int end = a.n - begin < a.chunk ? a.n : begin + a.chunk;
    for (int i = begin + Thread(); i < end; i += kBlock) {
      if (i == draft) continue;
      float drafted = 0;
      for (int j = 0; j < a.k; ++j) drafted = ids[j] == i ? q[j] : drafted;
      const uint64_t other = sampler::Residual(a.p[t * a.row + i], drafted, key, static_cast<uint32_t>(i));
      best = other > best ? other : best;
    }
  }
  best = BlockMax<kWave>(best, partial);
  if (Thread() == 0) a.partials[BlockX()] = best;
}

template <int kWave>
__global__ void __launch_bounds__(kBlock) RejectKernel(Rejection a, int blocks) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
  WARMLEG_SHARED(int32_t, failed, [kMaxRows]);
  const int first = FirstFailure(a, failed);
  uint64_t best = 0;
  for (int i = Thread(); i < blocks; i += kBlock) best = a.partials[i] > best ? a.partials[i] : best;
  best = BlockMax<kWave>(best, partial);
  const int t = Thread();
  if (t > a.drafts) return;
  int32_t token = -1;
  if (t < first) token = a.block[t + 1];
  if (t == first) token = t == a.drafts ? a.bonus[0] : sampler::ResidualToken(best);
  a.target[t] = token;
}

struct Walk {
  const float* edges;
  const int32_t* ids;
  DrawsView draws;
  float temperature;
  int rows, k;
  int32_t* drafted;
  float* q;
};

// q of the edges that leave one candidate; NaN when an edge is.
__device__ void WriteDistribution(const Walk& a, const float* edges, float* q) {
  uint64_t top = 0;
  for (int j = 0; j < a.k; ++j) {
    const uint64_t other = sampler::Choice(edges[j] / a.temperature, static_cast<uint32_t>(j));
    top = other > top ? other : top;
  }
  const float best = sampler::ScoreOf(top);
  const bool nan = sampler::TokenOf(top) < 0;
  uint64_t total = 0;
  for (int j = 0; j < a.k; ++j) total += sampler::Mass(edges[j] / a.temperature, best);
  for (int j = 0; j < a.k; ++j) {
    q[j] = nan ? NotANumber() : sampler::Probability(sampler::Mass(edges[j] / a.temperature, best), total);
  }
}

__global__ void __launch_bounds__(kBlock) WalkKernel(Walk a) {
  WARMLEG_DYNAMIC_SHARED(int32_t, drawn);  // [rows, k]: rank of the successor, -1 for a NaN
  WARMLEG_SHARED(int32_t, from, [kMaxRows]);
  for (int at = Thread(); at < a.rows * a.k; at += Threads()) {
    if (at > 0 && at < a.k) continue;  // of row 0 the anchor's edges alone exist
    const int t = at / a.k;
    const uint64_t key = a.draws.Key(t, Purpose::draft);
    uint64_t best = 0;
    for (int j = 0; j < a.k; ++j) {
      const float score = a.edges[static_cast<int64_t>(at) * a.k + j] / a.temperature +
                          sampler::Gumbel(key, static_cast<uint32_t>(a.ids[t * a.k + j]));
      const uint64_t other = sampler::Choice(score, static_cast<uint32_t>(j));
      best = other > best ? other : best;
    }
    drawn[at] = sampler::TokenOf(best);
  }
  BlockSync();
  if (Thread() == 0) {
    int chosen = 0;
    for (int t = 0; t < a.rows; ++t) {
      from[t] = chosen;
      if (chosen >= 0) chosen = drawn[t * a.k + chosen];
      a.drafted[t] = chosen >= 0 ? a.ids[t * a.k + chosen] : -1;
    }
  }
  BlockSync();
  const int t = Thread();
  if (t >= a.rows) return;
  const int64_t edges = (static_cast<int64_t>(t) * a.k + (from[t] >= 0 ? from[t] : 0)) * a.k;
  WriteDistribution(a, a.edges + edges, a.q + static_cast<int64_t>(t) * a.k);
}

}  // namespace

void RandomSample(Queue& queue, const RandomSampleArgs& args) {
  const int64_t n = args.x.dim(1);
  const int64_t rows = args.x.dim(0);
  const int64_t blocks = std::min<int64_t>(args.blocks > 0 ? args.blocks : DivUp<int64_t>(n, kChunk), n);
  const int64_t chunk = DivUp(n, blocks);
  Sample sample = {.x = args.x.as<const float>(),
                   .row = args.x.step(0),
                   .draws = ViewOf(args.draws),
                   .n = static_cast<int>(n),
                   .chunk = static_cast<int>(chunk),
                   .partials = nullptr,
                   .out = args.out.as<int32_t>()};
  const bool partials = args.phase != SamplePhase::combine;
  const bool combine = args.phase != SamplePhase::partials;
  if (blocks > 1) {
    sample.partials = Scratch<uint64_t>(queue, "RandomSample.partials", static_cast<size_t>(rows * blocks));
  }
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    if (blocks == 1) {
      const int threads = n > kChunk ? kMaxBlock : kBlock;
      if (combine) launch(SampleKernel<kWave>, Blocks(1, rows), threads, 0, queue, sample);
      return;
    }
    if (partials) launch(SampleKernel<kWave>, Blocks(blocks, rows), kBlock, 0, queue, sample);
    if (combine) {
      launch(CombineKernel<kWave>, rows, kBlock, 0, queue, sample.partials, static_cast<int>(blocks),
             sample.out);
    }
  });
}

void RejectionSample(Queue& queue, const RejectionSampleArgs& args) {
  const int64_t n = args.p.dim(1);
  const int64_t blocks = DivUp<int64_t>(n, kChunk);
  const Rejection rejection = {
      .block = args.block.as<const int32_t>(),
      .ids = args.ids.as<const int32_t>(),
      .bonus = args.bonus.as<const int32_t>(),
      .p = args.p.as<const float>(),
      .q = args.q.as<const float>(),
      .row = args.p.step(0),
      .draws = ViewOf(args.draws),
      .drafts = static_cast<int>(args.block.dim(0)) - 1,
      .n = static_cast<int>(n),
      .k = static_cast<int>(args.ids.dim(1)),
      .chunk = kChunk,
      .partials = Scratch<uint64_t>(queue, "RejectionSample.partials", static_cast<size_t>(blocks)),
      .target = args.target.as<int32_t>()};
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    launch(ReplaceKernel<kWave>, blocks, kBlock, 0, queue, rejection);
    launch(RejectKernel<kWave>, 1, kBlock, 0, queue, rejection, static_cast<int>(blocks));
  });
}

void SampledWalk(Queue& queue, const PathWalkArgs& args) {
  const Walk walk = {.edges = args.edges.as<const float>(),
                     .ids = args.ids.as<const int32_t>(),
                     .draws = ViewOf(args.draws),
                     .temperature = args.temperature,
                     .rows = static_cast<int>(args.ids.dim(0)),
                     .k = static_cast<int>(args.ids.dim(1)),
                     .drafted = args.drafted.as<int32_t>(),
                     .q = args.q.as<float>()};
  launch(WalkKernel, 1, kBlock, sizeof(int32_t) * static_cast<size_t>(walk.rows * walk.k), queue, walk);
}

}  // namespace vt::hip::WARMLEG_VENDOR
