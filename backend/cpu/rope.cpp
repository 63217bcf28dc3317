// Rotary positions: the angles of a row once, then every head of it; and the norm before it.
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/vt/check.h"

namespace vt::cpu {

void Rope(Queue&, const RopeArgs& args) {
  const int64_t half = args.inv_freq.dim(0);
  const float* inv_freq = args.inv_freq.as<float>();
  // a sine and a cosine cost about as much as 32 multiply-adds
  ParallelFor(args.x.dim(0), args.x.dim(0) * half * (64 + 4 * args.x.dim(1)), [&](int64_t r) {
    float cosine[kMaxHeadDim / 2];
    float sine[kMaxHeadDim / 2];
    const auto position = static_cast<float>(args.positions.as<int32_t>()[r]);
    for (int64_t i = 0; i < half; ++i) {
      const float angle = position * inv_freq[i];
      cosine[i] = std::cos(angle);
      sine[i] = std::sin(angle);
    }
    for (int64_t h = 0; h < args.x.dim(1); ++h) {
      float* x = args.x.as<float>() + r * args.x.step(0) + h * args.x.step(1);
      for (int64_t i = 0; i < half; ++i) {
        const float a = x[i];
        const float b = x[half + i];
        x[i] = a * cosine[i] - b * sine[i];
        x[half + i] = b * cosine[i] + a * sine[i];
      }
    }
  });
}

void PrepareHeads(Queue& queue, const PrepareHeadsArgs& args) {
  const auto prepare = [&](const Tensor& x, const Tensor& norm) {
    RmsNorm(queue, {x, norm, x, args.eps, args.one_plus});
    Rope(queue, {x, args.positions, args.inv_freq});
  };
  if (args.q) prepare(args.q, args.q_norm);
  prepare(args.k, args.k_norm);
}

}  // namespace vt::cpu
