// CausalConv1d with its state, and the draft's grouped convolution.
#include <algorithm>

#include "backend/cpu/held.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"
#include "backend/vt/check.h"

namespace vt::cpu {

namespace {

constexpr int64_t kChannels = 64;  // channels a piece: their history stays on the stack

float WeightAt(const Tensor& t, int64_t i) {
  return t.dtype == DType::bf16 ? FromBf16(t.as<uint16_t>()[i]) : t.as<float>()[i];
}

void ConvChannels(const CausalConv1dArgs& args, int64_t begin, int64_t n) {
  const int64_t taps = args.weight.dim(1);
  const int64_t kept = taps - 1;
  const int64_t channels = args.x.dim(1);
  float weight[kMaxConvTaps][kChannels];
  float before[kMaxConvTaps][kChannels];
  for (int64_t j = 0; j < taps; ++j) {
    for (int64_t c = 0; c < n; ++c) weight[j][c] = WeightAt(args.weight, (begin + c) * taps + j);
  }
  for (int64_t j = 0; j < kept; ++j) {
    std::copy_n(args.state.as<float>() + j * channels + begin, n, before[j]);
  }
  // input i counts from the oldest kept one
  const auto input = [&](int64_t i) {
    return i < kept ? before[i] : args.x.as<float>() + (i - kept) * args.x.step(0) + begin;
  };
  for (int64_t r = 0; r < args.x.dim(0); ++r) {
    float* out = args.out.as<float>() + r * channels + begin;
    std::fill_n(out, n, 0.0F);
    for (int64_t j = 0; j < taps; ++j) {
      const float* x = input(r + j);
      for (int64_t c = 0; c < n; ++c) out[c] += weight[j][c] * x[c];
    }
    Rows().silu_mul(out, nullptr, out, n);
  }
  if (args.hold) return;
  for (int64_t j = 0; j < kept; ++j) {
    std::copy_n(input(args.x.dim(0) + j), n, args.state.as<float>() + j * channels + begin);
  }
}

float Wide(uint16_t bits) { return FromBf16(bits); }
float Wide(float value) { return value; }

// One output row; taps are added in ascending order, the residual last.
template <class W>
void GroupedConvRow(const DFlashGroupedConvArgs& args, int64_t i) {
  const int64_t h = args.y.dim(1);
  const int64_t taps = args.base.dim(1);
  const int64_t groups = args.delta.dim(3);
  const int64_t group = h / groups;
  const int64_t used = std::min(taps, i + 1);  // rows before the block are 0
  const W* base = args.base.as<W>() + args.side * taps * h;
  const float* delta = args.delta.as<float>() + (i * 2 + args.side) * taps * groups;
  float* out = args.out.as<float>() + i * h;
  const float* residual = args.residual ? args.residual.as<float>() + i * h : nullptr;
  int64_t n = 0;
  for (int64_t begin = 0; begin < h; begin += n) {
    const int64_t g = begin / group;
    n = std::min(kChannels, (g + 1) * group - begin);
    float sum[kChannels];
    std::fill_n(sum, n, 0.0F);
    for (int64_t t = 0; t < used; ++t) {
      const float d = delta[t * groups + g];
      const W* weight = base + t * h + begin;
      const float* y = args.y.as<float>() + (i - t) * h + begin;
      for (int64_t c = 0; c < n; ++c) sum[c] += (Wide(weight[c]) + d) * y[c];
    }
    for (int64_t c = 0; c < n; ++c)
      out[begin + c] = residual != nullptr ? sum[c] + residual[begin + c] : sum[c];
  }
}

}  // namespace

void CausalConv1d(Queue&, const CausalConv1dArgs& args) {
  const int64_t channels = args.x.dim(1);
  ParallelFor(
      (channels + kChannels - 1) / kChannels, args.x.count() * (args.weight.dim(1) + 4),
      [&](int64_t i) { ConvChannels(args, i * kChannels, std::min(kChannels, channels - i * kChannels)); });
}

// In ascending order, so that a state's inputs only move down.
void CommitConv(Queue&, const CommitConvArgs& args) {
  const int64_t rows = CountedRows(args.kOp, args.last, args.x.dim(1));
  const int64_t kept = args.states.dim(1);
  const int64_t channels = args.states.dim(2);
  for (int64_t layer = 0; rows > 0 && layer < args.x.dim(0); ++layer) {
    float* state = args.states.as<float>() + layer * kept * channels;
    const float* x = args.x.as<float>() + layer * args.x.step(0);
    for (int64_t j = 0; j < kept; ++j) {
      const int64_t i = j + rows;  // counted from the oldest kept one
      const float* from = i < kept ? state + i * channels : x + (i - kept) * args.x.step(1);
      std::copy_n(from, channels, state + j * channels);
    }
  }
}

void DFlashGroupedConv(Queue&, const DFlashGroupedConvArgs& args) {
  const int64_t rows = args.y.dim(0);
  ParallelFor(rows, rows * args.y.dim(1) * args.base.dim(1) * 2, [&](int64_t i) {
    if (args.base.dtype == DType::bf16) {
      GroupedConvRow<uint16_t>(args, i);
    } else {
      GroupedConvRow<float>(args, i);
    }
  });
}

}  // namespace vt::cpu
