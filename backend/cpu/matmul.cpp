// out = x w^T (+ bias) (+ residual). The weights are read once: outputs are cut into tiles that stay in the
// second-level cache while all rows pass over them.
#include <algorithm>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"

namespace vt::cpu {

namespace {

constexpr int64_t kTileBytes = 128 << 10;  // of weights

template <class W>
void MultiplyTile(const MatMulArgs& args, int64_t begin, int64_t n, bool round_x, const Tensor& out) {
  const MatMulBlock<W> block = {.w = args.w.as<W>() + begin * args.w.step(0),
                                .x = args.x.as<float>(),
                                .out = out.as<float>(),
                                .rows = args.x.dim(0),
                                .outputs = n,
                                .k = args.x.dim(1),
                                .x_stride = args.x.step(0),
                                .out_stride = out.step(0)};
  if constexpr (sizeof(W) == 2) {
    Rows().matmul_bf16(block, round_x);
  } else {
    Rows().matmul_f32(block, round_x);
  }
}

void AddBias(const Tensor& bias, int64_t begin, const Tensor& out) {
  for (int64_t r = 0; r < out.dim(0); ++r) {
    float* row = out.as<float>() + r * out.step(0);
    for (int64_t i = 0; i < out.dim(1); ++i) {
      row[i] +=
          bias.dtype == DType::bf16 ? FromBf16(bias.as<uint16_t>()[begin + i]) : bias.as<float>()[begin + i];
    }
  }
}

// out = product + residual, which may be out.
void AddResidual(const Tensor& product, const Tensor& residual, const Tensor& out) {
  for (int64_t r = 0; r < out.dim(0); ++r) {
    const float* from = product.as<float>() + r * product.step(0);
    const float* add = residual.as<float>() + r * residual.step(0);
    float* to = out.as<float>() + r * out.step(0);
    for (int64_t i = 0; i < out.dim(1); ++i) to[i] = from[i] + add[i];
  }
}

}  // namespace

void MatMul(Queue& queue, const MatMulArgs& args) {
  if (args.norm) {
    std::vector<float> normalised(static_cast<size_t>(args.x.count()));
    MatMulArgs product = args;
    product.x = MakeTensor(normalised.data(), DType::f32, {args.x.dim(0), args.x.dim(1)}, args.x.device);
    product.norm = {};
    RmsNorm(queue, {args.x, args.norm, product.x, args.eps, args.one_plus});
    return MatMul(queue, product);
  }
  if (args.silu_mul) {
    std::vector<float> gate_up(static_cast<size_t>(args.x.dim(0) * args.w.dim(0)));
    MatMulArgs product = args;
    product.out = MakeTensor(gate_up.data(), DType::f32, {args.x.dim(0), args.w.dim(0)}, args.out.device);
    product.silu_mul = false;
    MatMul(queue, product);
    return SiluMul(queue, {product.out, args.out});
  }
  const int64_t rows = args.x.dim(0);
  const int64_t outputs = args.w.dim(0);
  const int64_t k = args.w.dim(1);
  const bool round_x = args.precision == Precision::bf16 && rows > kMaxRows;
  const int64_t fit = kTileBytes / (k * SizeOf(args.w.dtype)) / 4 * 4;
  const int64_t tile = std::clamp<int64_t>(fit, 4, 64);
  ParallelFor((outputs + tile - 1) / tile, rows * outputs * k, [&](int64_t i) {
    const int64_t begin = i * tile;
    const int64_t n = std::min(tile, outputs - begin);
    const Tensor out = args.out.Cols(begin, n);
    std::vector<float> held(args.residual ? static_cast<size_t>(rows * n) : 0);
    const Tensor product = args.residual ? MakeTensor(held.data(), DType::f32, {rows, n}) : out;
    if (args.w.dtype == DType::bf16) {
      MultiplyTile<uint16_t>(args, begin, n, round_x, product);
    } else {
      MultiplyTile<float>(args, begin, n, round_x, product);
    }
    if (args.bias) AddBias(args.bias, begin, product);
    if (args.residual) AddResidual(product, args.residual.Cols(begin, n), out);
  });
}

}  // namespace vt::cpu
