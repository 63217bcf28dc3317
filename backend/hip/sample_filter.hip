// ApplyTemperature, ApplyTopKTopP and Softmax.
// Decomposition: temperature, a thread an element. Softmax, chunks of 2048 of a row: best scores to scratch,
// then masses, then the quotients; integers, so no order matters. ApplyTopKTopP, one block of 1024 threads a
// row: the last kept token is found from histograms of counts (top-k) or masses (top-p): first 256 buckets
// of distance to the best score, then, inside one bucket, byte by byte of the ordered score and index.
// Bytes: the row once from memory, then six times from the cache. Bound: one multiprocessor's share
// of the cache for ApplyTopKTopP, latency else.
#include <algorithm>

#include "backend/hip/sample.h"
#include "backend/vt/backend.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kMine = 8;
constexpr int kChunk = kBlock * kMine;
constexpr int kBins = 256;

struct Scale {
  const float* x;
  float* out;
  int64_t x_row, out_row;
  float temperature;
};

__global__ void __launch_bounds__(kBlock) TemperatureKernel(Scale a, int n) {
  const int i = BlockX() * kBlock + Thread();
  if (i < n) a.out[BlockY() * a.out_row + i] = a.x[BlockY() * a.x_row + i] / a.temperature;
}

struct Rows {
  const float* x;
  float* out;
  int64_t x_row, out_row;
  int n, chunks;
  uint64_t *best, *mass;  // [rows, chunks] each
};

// The best of a row's partials, as a choice of vt/sampler.h.
template <int kWave>
__device__ uint64_t BestOfRow(const Rows& a, uint64_t* partial) {
  uint64_t best = 0;
  for (int c = Thread(); c < a.chunks; c += kBlock) {
    const uint64_t other = a.best[BlockY() * static_cast<int64_t>(a.chunks) + c];
    best = other > best ? other : best;
  }
  return BlockMax<kWave>(best, partial);
}

template <int kWave>
__global__ void __launch_bounds__(kBlock) BestKernel(Rows a) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
  uint64_t best = 0;
  for (int e = 0; e < kMine; ++e) {
    const int i = BlockX() * kChunk + e * kBlock + Thread();
    if (i >= a.n) break;
    const uint64_t other = sampler::Choice(a.x[BlockY() * a.x_row + i], static_cast<uint32_t>(i));
    best = other > best ? other : best;
  }
  best = BlockMax<kWave>(best, partial);
  if (Thread() == 0) a.best[BlockY() * static_cast<int64_t>(a.chunks) + BlockX()] = best;
}

template <int kWave>
__global__ void __launch_bounds__(kBlock) MassKernel(Rows a) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
  const float best = sampler::ScoreOf(BestOfRow<kWave>(a, partial));
  uint64_t mass = 0;
  for (int e = 0; e < kMine; ++e) {
    const int i = BlockX() * kChunk + e * kBlock + Thread();
    if (i < a.n) mass += sampler::Mass(a.x[BlockY() * a.x_row + i], best);
  }
  mass = BlockSum<kWave>(mass, partial);
  if (Thread() == 0) a.mass[BlockY() * static_cast<int64_t>(a.chunks) + BlockX()] = mass;
}

template <int kWave>
__global__ void __launch_bounds__(kBlock) QuotientKernel(Rows a) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
  const uint64_t choice = BestOfRow<kWave>(a, partial);
  const float best = sampler::ScoreOf(choice);
  const bool nan = sampler::TokenOf(choice) < 0;
  uint64_t total = 0;
  for (int c = Thread(); c < a.chunks; c += kBlock) {
    total += a.mass[BlockY() * static_cast<int64_t>(a.chunks) + c];
  }
  total = BlockSum<kWave>(total, partial);
  for (int e = 0; e < kMine; ++e) {
    const int i = BlockX() * kChunk + e * kBlock + Thread();
    if (i >= a.n) break;
    const float x = a.x[BlockY() * a.x_row + i];
    a.out[BlockY() * a.out_row + i] =
        nan ? NotANumber() : sampler::Probability(sampler::Mass(x, best), total);
  }
}

// ---- ApplyTopKTopP

// A token is kept when it lies in a bucket before `bucket`, or in it with a choice of at least `least`.
struct Cut {
  int bucket;
  uint64_t least;
};

// Distance to the best score in steps of 1/4; never smaller for a worse score.
__device__ int BucketOf(float z, float best) {
  if (z == best) return 0;
  const float distance = best - z;
  if (!(distance < 63.75F)) return kBins - 1;
  return static_cast<int>(distance * 4.0F);
}
__device__ bool Keeps(const Cut& cut, int bucket, int i, float z) {
  if (bucket != cut.bucket) return bucket < cut.bucket;
  return sampler::Choice(z, static_cast<uint32_t>(i)) >= cut.least;
}

constexpr int kPartBits = 14;  // 2^18 summands of 14 bits fit 32
constexpr int kParts = 3;      // of a mass, which has 41 bits
constexpr int kListed = 2048;  // tokens of one bucket that shared memory takes
constexpr int kGroup = 16;     // bins that are summed before the search
constexpr int kGroups = kBins / kGroup;

// A histogram of tokens and, with kMass, of their masses in three parts: 32-bit atomics alone are fast in
// shared memory.
struct Bins {
  uint32_t* tokens;  // [kBins]
  uint32_t* parts;   // [kParts, kBins]
  uint64_t* groups;  // [kGroups]: amounts of 16 bins each
  uint64_t* before;  // [1]: amount of the bins before the chosen one
  int32_t* chosen;   // [1]
  uint64_t* list;    // [kListed]: choices of one bucket
  uint32_t* listed;  // [1]

  template <bool kMass>
  __device__ void Add(int bin, float z, float best) const {
    AtomicAdd(&tokens[bin], uint32_t{1});
    if constexpr (kMass) {
      const uint64_t mass = sampler::Mass(z, best);
      for (int p = 0; p < kParts; ++p) {
        const auto part = static_cast<uint32_t>(mass >> (p * kPartBits)) & ((1U << kPartBits) - 1);
        if (part != 0) AtomicAdd(&parts[p * kBins + bin], part);
      }
    }
  }
  template <bool kMass>
  __device__ uint64_t Amount(int bin) const {
    if constexpr (!kMass) return tokens[bin];
    uint64_t mass = 0;
    for (int p = 0; p < kParts; ++p) mass += static_cast<uint64_t>(parts[p * kBins + bin]) << (p * kPartBits);
    return mass;
  }
};

__device__ void Clear(const Bins& bins) {
  for (int i = Thread(); i < kBins; i += kMaxBlock) bins.tokens[i] = 0;
  for (int i = Thread(); i < kParts * kBins; i += kMaxBlock) bins.parts[i] = 0;
  if (Thread() == 0) *bins.listed = 0;
  BlockSync();
}

// The amount of all bins, once every thread has added what it has.
template <bool kMass>
__device__ uint64_t SumGroups(const Bins& bins) {
  BlockSync();
  if (Thread() < kGroups) {
    uint64_t sum = 0;
    for (int b = 0; b < kGroup; ++b) sum += bins.Amount<kMass>(Thread() * kGroup + b);
    bins.groups[Thread()] = sum;
  }
  BlockSync();
  uint64_t total = 0;
  for (int g = 0; g < kGroups; ++g) total += bins.groups[g];
  return total;
}

// After SumGroups: the first bin by which `wanted` is reached; every thread gets it, and what is wanted
// inside it.
template <bool kMass>
__device__ int Choose(const Bins& bins, uint64_t* wanted) {
  const int bin = Thread();
  if (bin < kBins) {
    uint64_t before = 0;
    for (int g = 0; g < bin / kGroup; ++g) before += bins.groups[g];
    for (int b = bin / kGroup * kGroup; b < bin; ++b) before += bins.Amount<kMass>(b);
    if (before < *wanted && before + bins.Amount<kMass>(bin) >= *wanted) {
      *bins.chosen = bin;
      *bins.before = before;
    }
  }
  BlockSync();
  *wanted -= *bins.before;
  return *bins.chosen;
}

struct Filter {
  float* x;
  int64_t row;
  int n, top_k;
  uint64_t top_p_fixed;
};

// Calls f(i, score) for the tokens of this thread; several loads are under way at once.
template <class F>
__device__ void ForMine(const Filter& a, const float* x, F&& f) {
  for (int base = Thread(); base < a.n; base += kMaxBlock * kMine) {
    float z[kMine];
    WARMLEG_UNROLL
    for (int e = 0; e < kMine; ++e) {
      const int i = base + e * kMaxBlock;
      z[e] = i < a.n ? x[i] : 0;
    }
    WARMLEG_UNROLL
    for (int e = 0; e < kMine; ++e) {
      const int i = base + e * kMaxBlock;
      if (i < a.n) f(i, z[e]);
    }
  }
}

// Where the amounts of the tokens inside `limit`, best first, reach wanted(amount of them all). kMass:
// masses, else a count.
template <bool kMass, class Wanted>
__device__ Cut FindCut(const Filter& a, const float* x, float best, const Cut& limit, Wanted&& wanted_of,
                       const Bins& bins) {
  Clear(bins);
  ForMine(a, x, [&](int i, float z) {
    const int bucket = BucketOf(z, best);
    if (Keeps(limit, bucket, i, z)) bins.Add<kMass>(bucket, z, best);
  });
  uint64_t wanted = wanted_of(SumGroups<kMass>(bins));
  Cut cut = {Choose<kMass>(bins, &wanted), 0};
  const auto inside = static_cast<int>(bins.tokens[cut.bucket]);
  BlockSync();
  Clear(bins);
  // Calls f(choice) for the tokens of the bucket.
  const auto for_bucket = [&](auto&& f) {
    ForMine(a, x, [&](int i, float z) {
      if (BucketOf(z, best) != cut.bucket || !Keeps(limit, cut.bucket, i, z)) return;
      f(sampler::Choice(z, static_cast<uint32_t>(i)));
    });
  };
  if (inside <= kListed) {
    for_bucket([&](uint64_t choice) { bins.list[AtomicAdd(bins.listed, uint32_t{1})] = choice; });
  }
  // Digit by digit, until the rest of the digits decides nothing.
  for (int shift = 56; shift >= 0; shift -= 8) {
    BlockSync();
    Clear(bins);
    const auto count = [&](uint64_t choice) {
      if (shift < 56 && choice >> (shift + 8) != cut.least >> (shift + 8)) return;
      bins.Add<kMass>(kBins - 1 - static_cast<int>(choice >> shift & 0xffU), sampler::ScoreOf(choice), best);
    };
    if (inside <= kListed) {
      for (int i = Thread(); i < inside; i += kMaxBlock) count(bins.list[i]);
    } else {
      for_bucket(count);
    }
    SumGroups<kMass>(bins);
    const int bin = Choose<kMass>(bins, &wanted);
    cut.least |= static_cast<uint64_t>(kBins - 1 - bin) << shift;
    if (bins.tokens[bin] == 1) break;
  }
  BlockSync();
  // A token that the limit leaves out may lie between its own cut and the digits found so far.
  if (cut.bucket == limit.bucket && limit.least > cut.least) cut.least = limit.least;
  return cut;
}

template <int kWave>
__global__ void __launch_bounds__(kMaxBlock) FilterKernel(Filter a) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(uint32_t, partial, [kMaxBlock / kWave]);
  WARMLEG_SHARED(uint32_t, tokens, [kBins]);
  WARMLEG_SHARED(uint32_t, parts, [kParts * kBins]);
  WARMLEG_SHARED(uint64_t, groups, [kGroups]);
  WARMLEG_SHARED(uint64_t, before, [1]);
  WARMLEG_SHARED(int32_t, chosen, [1]);
  WARMLEG_SHARED(uint64_t, list, [kListed]);
  WARMLEG_SHARED(uint32_t, listed, [1]);
  const Bins bins = {tokens, parts, groups, before, chosen, list, listed};
  float* x = a.x + BlockX() * a.row;
  uint32_t top = 0;
  ForMine(a, x, [&](int, float z) {
    const uint32_t order = sampler::Order(z);
    top = order > top ? order : top;
  });
  top = BlockMax<kWave>(top, partial);
  if (top == sampler::kNanOrder) return;  // a NaN: RandomSample will find it too
  const float best = sampler::ScoreOf(static_cast<uint64_t>(top) << 32);
  Cut cut = {kBins, 0};
  if (a.top_k < a.n) {
    const auto wanted = static_cast<uint64_t>(a.top_k);
    cut = FindCut<false>(
        a, x, best, cut, [wanted](uint64_t) { return wanted; }, bins);
  }
  if (a.top_p_fixed < uint64_t{1} << 32) {
    const uint64_t top_p = a.top_p_fixed;
    cut = FindCut<true>(
        a, x, best, cut, [top_p](uint64_t all) { return sampler::TopPMass(all, top_p); }, bins);
  }
  ForMine(a, x, [&](int i, float z) {
    if (!Keeps(cut, BucketOf(z, best), i, z)) x[i] = -Infinity();
  });
}

}  // namespace

void ApplyTemperature(Queue& queue, const ApplyTemperatureArgs& args) {
  const int64_t n = args.x.dim(1);
  launch(TemperatureKernel, Blocks(DivUp<int64_t>(n, kBlock), args.x.dim(0)), kBlock, 0, queue,
         Scale{args.x.as<const float>(), args.out.as<float>(), args.x.step(0), args.out.step(0),
               args.temperature},
         static_cast<int>(n));
}

void ApplyTopKTopP(Queue& queue, const ApplyTopKTopPArgs& args) {
  const int64_t n = args.x.dim(1);
  const int64_t top_k = args.top_k == 0 ? n : std::min(args.top_k, n);
  if (top_k == n && args.top_p >= 1) return;
  const Filter filter = {args.x.as<float>(), args.x.step(0), static_cast<int>(n), static_cast<int>(top_k),
                         sampler::TopPFixed(args.top_p)};
  WithWave(queue,
           [&](auto wave) { launch(FilterKernel<wave()>, args.x.dim(0), kMaxBlock, 0, queue, filter); });
}

void Softmax(Queue& queue, const SoftmaxArgs& args) {
  const int64_t rows = args.x.dim(0);
  const int64_t chunks = DivUp<int64_t>(args.x.dim(1), kChunk);
  auto* best = Scratch<uint64_t>(queue, "Softmax.partials", static_cast<size_t>(2 * rows * chunks));
  const Rows view = {.x = args.x.as<const float>(),
                     .out = args.out.as<float>(),
                     .x_row = args.x.step(0),
                     .out_row = args.out.step(0),
                     .n = static_cast<int>(args.x.dim(1)),
                     .chunks = static_cast<int>(chunks),
                     .best = best,
                     .mass = best + rows * chunks};
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    launch(BestKernel<kWave>, Blocks(chunks, rows), kBlock, 0, queue, view);
    launch(MassKernel<kWave>, Blocks(chunks, rows), kBlock, 0, queue, view);
    launch(QuotientKernel<kWave>, Blocks(chunks, rows), kBlock, 0, queue, view);
  });
}

}  // namespace vt::hip::WARMLEG_VENDOR
