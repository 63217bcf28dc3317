// RmsNorm, AddRmsNorm, GatedRmsNorm, PrepareHeads: mean square of a vector, then one pass of scaling.
// Decomposition: a block owns one vector (a row, or a head of a row); its size depends on the vector's length
// alone, so that the order of the sum does too. The second read of x comes from the cache.
// Bytes: x (and delta, z) once, out once. Bound: latency at decode, memory at prefill.
#include "backend/hip/common.h"
#include "backend/vt/check.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kHeadBlock = 128;
constexpr int kHeld = 8;  // values of a thread, kept: ThreadsFor has threads enough for kMaxHeadDim

int ThreadsFor(int64_t n) { return n >= 2048 ? 1024 : n >= 512 ? 256 : 64; }

// 1 / root mean square of n values, of which `squares` is this thread's share of the sum of squares.
template <int kWave>
__device__ float InverseRms(float squares, int n, float eps, float* partial) {
  return Rsqrt(BlockSum<kWave>(squares, partial) / static_cast<float>(n) + eps);
}

// The same of the values that `at` gives; `at` is called once for each.
template <int kWave, class At>
__device__ float InverseRms(int n, float eps, float* partial, const At& at) {
  float sum = 0;
  for (int i = Thread(); i < n; i += Threads()) {
    const float x = at(i);
    sum = fmaf(x, x, sum);
  }
  return InverseRms<kWave>(sum, n, eps, partial);
}

template <int kWave, class W>
__global__ void RmsNormKernel(HeadView<float> x, const W* weight, HeadView<float> out, int heads, int n,
                              float eps, float plus) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(float, partial, [kMaxBlock / kWave]);
  const float* in = x.At(BlockX() / heads, BlockX() % heads);
  float* to = out.At(BlockX() / heads, BlockX() % heads);
  const float scale = InverseRms<kWave>(n, eps, partial, [&](int i) { return in[i]; });
  for (int i = Thread(); i < n; i += Threads()) to[i] = in[i] * scale * (plus + ToFloat(weight[i]));
}

template <int kWave, class W>
__global__ void AddRmsNormKernel(float* h, const float* delta, const W* weight, float* out, int n, float eps,
                                 float plus) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(float, partial, [kMaxBlock / kWave]);
  const int64_t row = static_cast<int64_t>(BlockX()) * n;
  const float scale = InverseRms<kWave>(n, eps, partial, [&](int i) {
    const float sum = h[row + i] + delta[row + i];
    h[row + i] = sum;
    return sum;
  });
  for (int i = Thread(); i < n; i += Threads())
    out[row + i] = h[row + i] * scale * (plus + ToFloat(weight[i]));
}

__global__ void AddKernel(float* h, const float* delta, int64_t n) {
  StartInOrder();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * Threads() + Thread();
  if (i < n) h[i] += delta[i];
}

template <int kWave, class W>
__global__ void GatedRmsNormKernel(const float* x, HeadView<float> z, const W* weight, float* out, int heads,
                                   int n, float eps) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(float, partial, [kMaxBlock / kWave]);
  const int64_t row = static_cast<int64_t>(BlockX()) * n;
  const float* gate = z.At(BlockX() / heads, BlockX() % heads);
  // all at once: one wait for the memory, not one before the sum and one after it
  float value[kHeld], factor[kHeld];
  float sum = 0;
  WARMLEG_UNROLL
  for (int e = 0; e < kHeld; ++e) {
    const int i = Thread() + e * Threads();
    value[e] = i < n ? x[row + i] : 0;
    factor[e] = i < n ? ToFloat(weight[i]) * Silu(gate[i]) : 0;
    sum = fmaf(value[e], value[e], sum);
  }
  const float scale = InverseRms<kWave>(sum, n, eps, partial);
  WARMLEG_UNROLL
  for (int e = 0; e < kHeld; ++e) {
    const int i = Thread() + e * Threads();
    if (i < n) out[row + i] = value[e] * scale * factor[e];
  }
}

template <class W>
struct Heads {
  HeadView<float> q, k;
  const W *q_norm, *k_norm;
  const int32_t* positions;
  const float* inv_freq;
  int nq, d, half;
  float eps, plus;
};

// Entry i of a head that stands normalised in `x`, rotated by the position's angle.
template <class W>
__device__ float Rotated(const Heads<W>& a, const float* x, int i, int32_t position) {
  if (i >= 2 * a.half) return x[i];
  const int pair = i < a.half ? i : i - a.half;
  const float angle = static_cast<float>(position) * a.inv_freq[pair];
  const float cosine = cosf(angle);
  const float sine = sinf(angle);
  return i < a.half ? x[i] * cosine - x[a.half + i] * sine : x[i] * cosine + x[pair] * sine;
}

// blockIdx.x: the row; blockIdx.y: a head of q, then of k.
template <int kWave, class W>
__global__ void __launch_bounds__(kHeadBlock) PrepareHeadsKernel(Heads<W> a) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(float, partial, [kMaxBlock / kWave]);
  WARMLEG_SHARED(float, head, [kMaxHeadDim]);
  const int r = BlockX();
  const bool of_q = BlockY() < a.nq;
  const int32_t position = a.positions[r];
  float* x = of_q ? a.q.At(r, BlockY()) : a.k.At(r, BlockY() - a.nq);
  const W* weight = of_q ? a.q_norm : a.k_norm;
  const float scale = InverseRms<kWave>(a.d, a.eps, partial, [&](int i) { return x[i]; });
  for (int i = Thread(); i < a.d; i += kHeadBlock) head[i] = x[i] * scale * (a.plus + ToFloat(weight[i]));
  BlockSync();
  for (int i = Thread(); i < a.d; i += kHeadBlock) x[i] = Rotated(a, head, i, position);
}

}  // namespace

void PrepareHeads(Queue& queue, const PrepareHeadsArgs& args) {
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    WithWeight(args.k_norm, [&](auto* k_norm) {
      using W = Pointee<decltype(k_norm)>;
      const Heads<W> heads = {.q = ViewOf(args.q),
                              .k = ViewOf(args.k),
                              .q_norm = args.q_norm.as<const W>(),
                              .k_norm = k_norm,
                              .positions = args.positions.as<const int32_t>(),
                              .inv_freq = args.inv_freq.as<const float>(),
                              .nq = args.q ? static_cast<int>(args.q.dim(1)) : 0,
                              .d = static_cast<int>(args.k.dim(2)),
                              .half = static_cast<int>(args.inv_freq.dim(0)),
                              .eps = args.eps,
                              .plus = args.one_plus ? 1.0F : 0.0F};
      launch_early(PrepareHeadsKernel<kWave, W>, Blocks(args.k.dim(0), heads.nq + args.k.dim(1)), kHeadBlock,
                   0, queue, heads);
    });
  });
}

void RmsNorm(Queue& queue, const RmsNormArgs& args) {
  const int64_t heads = args.x.rank == 3 ? args.x.dim(1) : 1;
  const int64_t n = args.weight.dim(0);
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    WithWeight(args.weight, [&](auto* weight) {
      launch_early(RmsNormKernel<kWave, Pointee<decltype(weight)>>, args.x.dim(0) * heads, ThreadsFor(n), 0,
                   queue, ViewOf(args.x), weight, ViewOf(args.out), heads, n, args.eps,
                   args.one_plus ? 1.0F : 0.0F);
    });
  });
}

void AddRmsNorm(Queue& queue, const AddRmsNormArgs& args) {
  const int64_t n = args.h.dim(1);
  if (!args.out) {
    launch_early(AddKernel, DivUp<int64_t>(args.h.count(), 256), 256, 0, queue, args.h.as<float>(),
                 args.delta.as<const float>(), args.h.count());
    return;
  }
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    WithWeight(args.weight, [&](auto* weight) {
      launch_early(AddRmsNormKernel<kWave, Pointee<decltype(weight)>>, args.h.dim(0), ThreadsFor(n), 0, queue,
                   args.h.as<float>(), args.delta.as<const float>(), weight, args.out.as<float>(), n,
                   args.eps, args.one_plus ? 1.0F : 0.0F);
    });
  });
}

void GatedRmsNorm(Queue& queue, const GatedRmsNormArgs& args) {
  const int64_t heads = args.x.dim(1);
  const int64_t n = args.x.dim(2);
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    WithWeight(args.weight, [&](auto* weight) {
      launch_early(GatedRmsNormKernel<kWave, Pointee<decltype(weight)>>, args.x.dim(0) * heads, ThreadsFor(n),
                   0, queue, args.x.as<const float>(), ViewOf(args.z), weight, args.out.as<float>(), heads, n,
                   args.eps);
    });
  });
}

}  // namespace vt::hip::WARMLEG_VENDOR
