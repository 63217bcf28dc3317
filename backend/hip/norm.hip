// RmsNorm, AddRmsNorm, GatedRmsNorm: mean square of a vector, then one pass of scaling.
// Decomposition: a block owns one vector (a row, or a head of a row); its size depends on the vector's length
// alone, so that the order of the sum does too. The second read of x comes from the cache.
// Bytes: x (and delta, z) once, out once. Bound: latency at decode, memory at prefill.
#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

int ThreadsFor(int64_t n) { return n >= 2048 ? 1024 : n >= 512 ? 256 : 64; }

// 1 / root mean square of the n values that `at` gives; `at` is called once for each.
template <int kWave, class At>
__device__ float InverseRms(int n, float eps, float* partial, const At& at) {
  float sum = 0;
  for (int i = Thread(); i < n; i += Threads()) {
    const float x = at(i);
    sum = fmaf(x, x, sum);
  }
  return Rsqrt(BlockSum<kWave>(sum, partial) / static_cast<float>(n) + eps);
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
  const float scale = InverseRms<kWave>(n, eps, partial, [&](int i) { return x[row + i]; });
  for (int i = Thread(); i < n; i += Threads()) {
    out[row + i] = x[row + i] * scale * ToFloat(weight[i]) * Silu(gate[i]);
  }
}

}  // namespace

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
