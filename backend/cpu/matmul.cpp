// out = x w^T (+ bias). The weights are read once: outputs are cut into tiles that stay in the second-level
// cache while all rows pass over them.
#include <algorithm>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"

namespace vt::cpu {

namespace {

constexpr int64_t kTileBytes = 128 << 10;  // of weights

template <class W>
void MultiplyTile(const MatMulArgs& args, int64_t begin, int64_t n, bool round_x) {
  const MatMulBlock<W> block = {.w = args.w.as<W>() + begin * args.w.step(0),
                                .x = args.x.as<float>(),
                                .out = args.out.as<float>() + begin,
                                .rows = args.x.dim(0),
                                .outputs = n,
                                .k = args.x.dim(1),
                                .x_stride = args.x.step(0),
                                .out_stride = args.out.step(0)};
  if constexpr (sizeof(W) == 2) {
    Rows().matmul_bf16(block, round_x);
  } else {
    Rows().matmul_f32(block, round_x);
  }
}

void AddBias(const MatMulArgs& args, int64_t begin, int64_t n) {
  for (int64_t r = 0; r < args.x.dim(0); ++r) {
    float* out = args.out.as<float>() + r * args.out.step(0);
    for (int64_t i = begin; i < begin + n; ++i) {
      out[i] +=
          args.bias.dtype == DType::bf16 ? FromBf16(args.bias.as<uint16_t>()[i]) : args.bias.as<float>()[i];
    }
  }
}

}  // namespace

void MatMul(Queue&, const MatMulArgs& args) {
  const int64_t outputs = args.w.dim(0);
  const int64_t k = args.w.dim(1);
  const bool round_x = args.precision == Precision::bf16 && args.x.dim(0) > kMaxRows;
  const int64_t fit = kTileBytes / (k * SizeOf(args.w.dtype)) / 4 * 4;
  const int64_t tile = std::clamp<int64_t>(fit, 4, 64);
  ParallelFor((outputs + tile - 1) / tile, args.x.dim(0) * outputs * k, [&](int64_t i) {
    const int64_t begin = i * tile;
    const int64_t n = std::min(tile, outputs - begin);
    if (args.w.dtype == DType::bf16) {
      MultiplyTile<uint16_t>(args, begin, n, round_x);
    } else {
      MultiplyTile<float>(args, begin, n, round_x);
    }
    if (args.bias) AddBias(args, begin, n);
  });
}

}  // namespace vt::cpu
