// RmsNorm, AddRmsNorm and GatedRmsNorm: the mean square in the fixed order of Dot, then one pass of scaling.
#include <cmath>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"

namespace vt::cpu {

namespace {

void NormRow(const float* x, const Tensor& weight, bool one_plus, float eps, const float* z, float* out) {
  const int64_t n = weight.dim(0);
  const float scale = 1.0F / std::sqrt(Rows().dot(x, x, n) / static_cast<float>(n) + eps);
  Rows().scale_weight(x, scale, weight.data, weight.dtype, one_plus, z, out, n);
}

}  // namespace

void RmsNorm(Queue&, const RmsNormArgs& args) {
  const Tensor& x = args.x;
  const int64_t heads = x.rank == 3 ? x.dim(1) : 1;
  const int64_t x_head = x.rank == 3 ? x.step(1) : 0;
  const int64_t out_head = x.rank == 3 ? args.out.step(1) : 0;
  ParallelFor(x.dim(0), x.count(), [&](int64_t r) {
    for (int64_t h = 0; h < heads; ++h) {
      NormRow(x.as<float>() + r * x.step(0) + h * x_head, args.weight, args.one_plus, args.eps, nullptr,
              args.out.as<float>() + r * args.out.step(0) + h * out_head);
    }
  });
}

void AddRmsNorm(Queue&, const AddRmsNormArgs& args) {
  const int64_t n = args.h.dim(1);
  ParallelFor(args.h.dim(0), args.h.count(), [&](int64_t r) {
    float* h = args.h.as<float>() + r * n;
    Rows().add(h, args.delta.as<float>() + r * n, n);
    if (args.out) NormRow(h, args.weight, args.one_plus, args.eps, nullptr, args.out.as<float>() + r * n);
  });
}

void GatedRmsNorm(Queue&, const GatedRmsNormArgs& args) {
  const int64_t heads = args.x.dim(1);
  const int64_t d = args.x.dim(2);
  ParallelFor(args.x.dim(0) * heads, 4 * args.x.count(), [&](int64_t i) {
    const float* z = args.z.as<float>() + i / heads * args.z.step(0) + i % heads * args.z.step(1);
    NormRow(args.x.as<float>() + i * d, args.weight, false, args.eps, z, args.out.as<float>() + i * d);
  });
}

}  // namespace vt::cpu
