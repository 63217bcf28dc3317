// SiluMul, SigmoidGate, Rope: one thread an element (Rope: a pair), nothing shared.
// Decomposition: flat over all elements; consecutive threads own consecutive addresses.
// Bytes: each input once, each output once. Bound: launch latency at decode, memory at prefill.
#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;

__device__ int64_t FlatIndex() { return static_cast<int64_t>(blockIdx.x) * kBlock + Thread(); }

__global__ void SiluMulKernel(const float* gate_up, float* out, int64_t count, int m) {
  StartInOrder();
  const int64_t i = FlatIndex();
  if (i >= count) return;
  const float* row = gate_up + i / m * 2 * m;
  const int c = static_cast<int>(i % m);
  out[i] = Silu(row[c]) * row[m + c];
}

__global__ void SigmoidGateKernel(float* x, HeadView<float> gate, int64_t count, int heads, int d) {
  StartInOrder();
  const int64_t i = FlatIndex();
  if (i >= count) return;
  const int64_t head = i / d;
  x[i] *= Sigmoid(gate.At(static_cast<int>(head / heads), static_cast<int>(head % heads))[i % d]);
}

__global__ void RopeKernel(HeadView<float> x, const int32_t* positions, const float* inv_freq, int64_t count,
                           int heads, int half) {
  StartInOrder();
  const int64_t at = FlatIndex();
  if (at >= count) return;
  const int i = static_cast<int>(at % half);
  const int64_t head = at / half;
  const int r = static_cast<int>(head / heads);
  float* v = x.At(r, static_cast<int>(head % heads));
  const float angle = static_cast<float>(positions[r]) * inv_freq[i];
  const float cosine = cosf(angle);
  const float sine = sinf(angle);
  const float a = v[i];
  const float b = v[half + i];
  v[i] = a * cosine - b * sine;
  v[half + i] = b * cosine + a * sine;
}

}  // namespace

void SiluMul(Queue& queue, const SiluMulArgs& args) {
  launch_early(SiluMulKernel, DivUp<int64_t>(args.out.count(), kBlock), kBlock, 0, queue,
               args.gate_up.as<const float>(), args.out.as<float>(), args.out.count(), args.out.dim(1));
}

void SigmoidGate(Queue& queue, const SigmoidGateArgs& args) {
  launch_early(SigmoidGateKernel, DivUp<int64_t>(args.x.count(), kBlock), kBlock, 0, queue,
               args.x.as<float>(), ViewOf(args.gate), args.x.count(), args.x.dim(1), args.x.dim(2));
}

void Rope(Queue& queue, const RopeArgs& args) {
  const int64_t half = args.inv_freq.dim(0);
  const int64_t count = args.x.dim(0) * args.x.dim(1) * half;
  launch_early(RopeKernel, DivUp<int64_t>(count, kBlock), kBlock, 0, queue, ViewOf(args.x),
               args.positions.as<const int32_t>(), args.inv_freq.as<const float>(), count, args.x.dim(1),
               half);
}

}  // namespace vt::hip::WARMLEG_VENDOR
