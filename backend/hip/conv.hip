// CausalConv1d with its state, CommitConv, and the draft's grouped convolution.
// Decomposition: CausalConv1d: a thread owns one (row, channel) and a block all rows of its channels, so that
// the old state is read before it is written; of a long call blockIdx.y owns a run of rows. CommitConv: a
// thread owns a channel of a layer. DFlashGroupedConv: a thread owns one (row, channel). Bytes: x, the state
// and delta once, out and the new state once. Bound: latency at decode.
#include "backend/hip/common.h"
#include "backend/vt/check.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 128;
constexpr int kChannels = 64;  // of a block that has a thread for each row
constexpr int kRun = 32;       // rows of one thread in a long call
constexpr int kFewTaps = 4;    // that nearly every model has

struct Conv {
  const float* x;
  int64_t x_row;
  float* state;  // [taps - 1, channels]
  float* out;
  int rows, channels, taps;
  bool hold;
};

// Input i of channel c, counted from row 0; negative ones lie in the state.
__device__ float InputAt(const Conv& a, int i, int c) {
  if (i >= 0) return a.x[i * a.x_row + c];
  return a.state[static_cast<int64_t>(a.taps - 1 + i) * a.channels + c];
}

// Rows begin .. end - 1 of channel c.
template <class W>
__device__ void Outputs(const Conv& a, const W* weight, int c, int begin, int end) {
  for (int r = begin; r < end; ++r) {
    float sum = 0;
    for (int j = 0; j < a.taps; ++j) {
      sum += ToFloat(weight[static_cast<int64_t>(c) * a.taps + j]) * InputAt(a, r - (a.taps - 1) + j, c);
    }
    a.out[static_cast<int64_t>(r) * a.channels + c] = Silu(sum);
  }
}

// Up to kMaxRows rows, one a thread: all of the block's rows are read before the state is written. At most
// kTaps taps.
template <int kTaps, class W>
__global__ void __launch_bounds__(kChannels* kMaxRows) CausalConvKernel(Conv a, const W* weight) {
  StartInOrder();
  const int c = BlockX() * kChannels + Thread() % kChannels;
  const int r = Thread() / kChannels;
  const int before = a.taps - 1;
  float in[kTaps] = {};
  if (c < a.channels) {
    float weight_of[kTaps] = {};
    float sum = 0;
    WARMLEG_UNROLL
    for (int j = 0; j < kTaps; ++j) {
      if (j >= a.taps) break;
      weight_of[j] = ToFloat(weight[static_cast<int64_t>(c) * a.taps + j]);
      in[j] = InputAt(a, r - before + j, c);
    }
    WARMLEG_UNROLL
    for (int j = 0; j < kTaps; ++j) {
      if (j < a.taps) sum += weight_of[j] * in[j];
    }
    a.out[static_cast<int64_t>(r) * a.channels + c] = Silu(sum);
  }
  if (a.hold) return;
  BlockSync();
  if (c >= a.channels || r + 1 < a.rows) return;
  WARMLEG_UNROLL
  for (int j = 1; j < kTaps; ++j) {
    if (j < a.taps) a.state[static_cast<int64_t>(j - 1) * a.channels + c] = in[j];
  }
}

// A channel's state after `rows` rows of x: the last `before` inputs, all read before any is written.
__device__ void MoveState(const float* x, int64_t x_row, int rows, int before, int channels, float* state) {
  float in[kMaxConvTaps - 1];
  WARMLEG_UNROLL
  for (int j = 0; j < kMaxConvTaps - 1; ++j) {
    in[j] = 0;
    const int i = j + rows;  // from the oldest input that the state holds
    if (j < before) in[j] = i < before ? state[static_cast<int64_t>(i) * channels] : x[(i - before) * x_row];
  }
  WARMLEG_UNROLL
  for (int j = 0; j < kMaxConvTaps - 1; ++j) {
    if (j < before) state[static_cast<int64_t>(j) * channels] = in[j];
  }
}

// A long call: blockIdx.y owns a run of rows, and the state follows in a launch of its own.
template <class W>
__global__ void CausalConvRunKernel(Conv a, const W* weight) {
  StartInOrder();
  const int c = BlockX() * kBlock + Thread();
  const int begin = BlockY() * kRun;
  if (c < a.channels) Outputs(a, weight, c, begin, begin + kRun < a.rows ? begin + kRun : a.rows);
}
__global__ void CausalConvStateKernel(Conv a) {
  StartInOrder();
  const int c = BlockX() * kBlock + Thread();
  if (c < a.channels) MoveState(a.x + c, a.x_row, a.rows, a.taps - 1, a.channels, a.state + c);
}

struct HeldConv {
  const float* x;  // [layers, rows, channels]
  int64_t x_layer, x_row;
  float* states;  // [layers, taps - 1, channels]
  const int32_t* last;
  int rows, channels, taps;
};

__global__ void CommitConvKernel(HeldConv a) {
  StartInOrder();
  const int c = BlockX() * kBlock + Thread();
  const int counted = a.last[0] + 1;
  if (c >= a.channels || counted <= 0) return;
  const int before = a.taps - 1;
  float* state = a.states + static_cast<int64_t>(BlockY()) * before * a.channels + c;
  const float* x = a.x + BlockY() * a.x_layer + c;
  if (counted <= a.rows) return MoveState(x, a.x_row, counted, before, a.channels, state);
  for (int j = 0; j < before; ++j) state[static_cast<int64_t>(j) * a.channels] = NotANumber();
}

template <class W>
void RunCausalConv(Queue& queue, const Conv& conv, const W* weight) {
  const int blocks = DivUp(conv.channels, kBlock);
  if (conv.rows <= kMaxRows) {
    auto* const kernel =
        conv.taps <= kFewTaps ? CausalConvKernel<kFewTaps, W> : CausalConvKernel<int{kMaxConvTaps}, W>;
    return launch_early(kernel, DivUp(conv.channels, kChannels), kChannels * conv.rows, 0, queue, conv,
                        weight);
  }
  launch_early(CausalConvRunKernel<W>, Blocks(blocks, DivUp(conv.rows, kRun)), kBlock, 0, queue, conv,
               weight);
  launch_early(CausalConvStateKernel, blocks, kBlock, 0, queue, conv);
}

template <class W>
__global__ void GroupedConvKernel(const float* y, const W* base, const float* delta, const float* residual,
                                  float* out, int h, int taps, int group, int side) {
  StartInOrder();
  const int c = BlockY() * kBlock + Thread();
  if (c >= h) return;
  const int i = BlockX();
  const int groups = h / group;
  const int used = i + 1 < taps ? i + 1 : taps;  // rows before the block are 0
  float sum = 0;
  for (int t = 0; t < used; ++t) {
    const float d = delta[((static_cast<int64_t>(i) * 2 + side) * taps + t) * groups + c / group];
    sum += (ToFloat(base[(static_cast<int64_t>(side) * taps + t) * h + c]) + d) *
           y[static_cast<int64_t>(i - t) * h + c];
  }
  const int64_t at = static_cast<int64_t>(i) * h + c;
  out[at] = residual != nullptr ? sum + residual[at] : sum;
}

}  // namespace

void CausalConv1d(Queue& queue, const CausalConv1dArgs& args) {
  const Conv conv = {.x = args.x.as<const float>(),
                     .x_row = args.x.step(0),
                     .state = args.state.as<float>(),
                     .out = args.out.as<float>(),
                     .rows = static_cast<int>(args.x.dim(0)),
                     .channels = static_cast<int>(args.x.dim(1)),
                     .taps = static_cast<int>(args.weight.dim(1)),
                     .hold = args.hold};
  WithWeight(args.weight, [&](auto* weight) { RunCausalConv(queue, conv, weight); });
}

void CommitConv(Queue& queue, const CommitConvArgs& args) {
  const HeldConv held = {.x = args.x.as<const float>(),
                         .x_layer = args.x.step(0),
                         .x_row = args.x.step(1),
                         .states = args.states.as<float>(),
                         .last = args.last.as<const int32_t>(),
                         .rows = static_cast<int>(args.x.dim(1)),
                         .channels = static_cast<int>(args.x.dim(2)),
                         .taps = static_cast<int>(args.states.dim(1)) + 1};
  launch_early(CommitConvKernel, Blocks(DivUp(held.channels, kBlock), args.x.dim(0)), kBlock, 0, queue, held);
}

void DFlashGroupedConv(Queue& queue, const DFlashGroupedConvArgs& args) {
  const int64_t h = args.y.dim(1);
  WithWeight(args.base, [&](auto* base) {
    launch_early(GroupedConvKernel<Pointee<decltype(base)>>, Blocks(args.y.dim(0), DivUp<int64_t>(h, kBlock)),
                 kBlock, 0, queue, args.y.as<const float>(), base, args.delta.as<const float>(),
                 args.residual.as<const float>(), args.out.as<float>(), h, args.base.dim(1),
                 h / args.delta.dim(3), args.side);
  });
}

}  // namespace vt::hip::WARMLEG_VENDOR
