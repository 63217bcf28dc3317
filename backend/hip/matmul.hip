// MatMul: out = x w^T (+ bias) (+ residual), float32 activations against bf16 or f32 weights; the form that
// takes every shape, and the choice among the forms. Decomposition: a wave owns kOutputs rows of w and walks
// k in steps of 8 values a lane (one 16-byte load of bf16 weights, the next step's loads in flight); the
// activations of up to 16 rows wait in shared memory, a piece of k at a time. A block is 8 waves; blockIdx.y
// owns 16 rows. Each row is summed in the same order whatever the number of rows: by lane over the steps,
// then over the wave. Bytes: w once for 16 rows, x from the cache. Bound: memory up to 16 rows.
#include "backend/hip/matmul.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kOutputs = 4;          // of one wave
constexpr int kLaneValues = 8;       // of k in one step
constexpr int kSharedValues = 8192;  // activations held at a time

// Where value i of a piece stands in shared memory: both halves of a lane's 8 values lie side by side with
// those of the other lanes, so that no bank is asked twice.
template <int kWave>
__device__ int SharedAt4(int step, int half, int lane) {
  return ((step * 2 + half) * kWave + lane) * 4;
}
template <int kWave>
__device__ int SharedIndex(int i) {
  return SharedAt4<kWave>(i / (8 * kWave), i / 4 % 2, i / 8 % kWave) + i % 4;
}

template <int kWave>
__device__ void StageX(const float* x, const MatMulShape& s, int r, int k0, int piece, float* to) {
  for (int i = Thread(); i < piece; i += kBlock) {
    float value = r < s.rows && k0 + i < s.k ? x[r * s.x_row + k0 + i] : 0;
    if (s.round_x) value = ToFloat(ToBf16(value));
    to[SharedIndex<kWave>(i)] = value;
  }
}

template <class W>
__device__ Vec<W, kLaneValues> LoadWeights(const W* row, int k0, int k, bool aligned) {
  Vec<W, kLaneValues> v = {};
  if (aligned) {  // then k is a multiple of 8 too
    if (k0 < k) v = *reinterpret_cast<const Vec<W, kLaneValues>*>(row + k0);
  } else {
    WARMLEG_UNROLL
    for (int j = 0; j < kLaneValues; ++j) {
      if (k0 + j < k) v.at[j] = row[k0 + j];
    }
  }
  return v;
}

template <int kWave, int kRows, bool kAligned, class W, class B>
__global__ void __launch_bounds__(kBlock)
    MatMulKernel(const float* x, const W* w, const B* bias, float* out, MatMulShape s) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_DYNAMIC_SHARED(float, shared);
  constexpr int kStep = kLaneValues * kWave;
  constexpr int kPieceSteps = kSharedValues / kRows / kStep;
  const int lane = LaneId<kWave>();
  const int n0 = (BlockX() * (kBlock / kWave) + Thread() / kWave) * kOutputs;
  const int r0 = BlockY() * kRows;
  const W* row[kOutputs];
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputs; ++o) row[o] = w + static_cast<int64_t>(n0 + o < s.n ? n0 + o : s.n - 1) * s.k;
  float sum[kOutputs][kRows] = {};
  Vec<W, kLaneValues> next[kOutputs];
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputs; ++o) next[o] = LoadWeights(row[o], lane * kLaneValues, s.k, kAligned);
  const int steps = DivUp(s.k, kStep);
  const int piece = (steps < kPieceSteps ? steps : kPieceSteps) * kStep;
  for (int step = 0; step < steps; ++step) {
    const int local = step % kPieceSteps;
    if (local == 0) {
      if (step > 0) BlockSync();
      for (int r = 0; r < kRows; ++r) StageX<kWave>(x, s, r0 + r, step * kStep, piece, shared + r * piece);
      BlockSync();
    }
    Vec<W, kLaneValues> now[kOutputs];
    WARMLEG_UNROLL
    for (int o = 0; o < kOutputs; ++o) {
      now[o] = next[o];
      next[o] = LoadWeights(row[o], (step + 1) * kStep + lane * kLaneValues, s.k, kAligned);
    }
    WARMLEG_UNROLL
    for (int half = 0; half < 2; ++half) {
      WARMLEG_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const auto v =
            *reinterpret_cast<const Vec<float, 4>*>(shared + r * piece + SharedAt4<kWave>(local, half, lane));
        WARMLEG_UNROLL
        for (int j = 0; j < 4; ++j) {
          WARMLEG_UNROLL
          for (int o = 0; o < kOutputs; ++o)
            sum[o][r] = fmaf(v.at[j], ToFloat(now[o].at[half * 4 + j]), sum[o][r]);
        }
      }
    }
  }
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputs; ++o) {
    WARMLEG_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float total = WaveSum<kWave>(sum[o][r]);
      if (lane != (o * kRows + r) % kWave || n0 + o >= s.n || r0 + r >= s.rows) continue;
      out[(r0 + r) * s.out_row + n0 + o] = Finished(total, bias, s, n0 + o, ResidualAt(s, r0 + r, n0 + o));
    }
  }
}

template <int kRows, bool kAligned, class W, class B>
void RunRows(Queue& queue, const MatMulArgs& args, const W* w, const B* bias) {
  const MatMulShape shape = ShapeOf(args);
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    constexpr int kStep = kLaneValues * kWave;
    const int piece = DivUp(shape.k, kStep) * kStep;
    const int fit = kSharedValues / kRows / kStep * kStep;
    const dim3 blocks = Blocks(DivUp(shape.n, kBlock / kWave * kOutputs), DivUp(shape.rows, kRows));
    launch_early(MatMulKernel<kWave, kRows, kAligned, W, B>, blocks, kBlock,
                 sizeof(float) * static_cast<size_t>(kRows * (piece < fit ? piece : fit)), queue,
                 args.x.as<const float>(), w, bias, args.out.as<float>(), shape);
  });
}

template <bool kAligned, class W, class B>
void RunAligned(Queue& queue, const MatMulArgs& args, const W* w, const B* bias) {
  const int64_t rows = args.x.dim(0);
  if (rows == 1) return RunRows<1, kAligned>(queue, args, w, bias);
  if (rows <= 4) return RunRows<4, kAligned>(queue, args, w, bias);
  if (rows <= 8) return RunRows<8, kAligned>(queue, args, w, bias);
  RunRows<16, kAligned>(queue, args, w, bias);
}

// The product alone, for SiluMul to follow.
MatMulArgs GateUp(Queue& queue, const MatMulArgs& args) {
  const int64_t rows = args.x.dim(0);
  const int64_t outputs = args.w.dim(0);
  MatMulArgs product = args;
  product.out = MakeTensor(Scratch<float>(queue, "MatMul.gate_up", static_cast<size_t>(rows * outputs)),
                           DType::f32, {rows, outputs}, args.x.device);
  product.silu_mul = false;
  return product;
}

// The same call with x already normalised.
MatMulArgs Normalised(Queue& queue, const MatMulArgs& args) {
  auto* data = Scratch<float>(queue, "MatMul.normalised", static_cast<size_t>(args.x.count()));
  MatMulArgs product = args;
  product.x = MakeTensor(data, DType::f32, {args.x.dim(0), args.x.dim(1)}, args.x.device);
  product.norm = {};
  RmsNorm(queue, {args.x, args.norm, product.x, args.eps, args.one_plus});
  return product;
}

}  // namespace

MatMulShape ShapeOf(const MatMulArgs& args) {
  return {.rows = static_cast<int>(args.x.dim(0)),
          .n = static_cast<int>(args.out.dim(1)),
          .k = static_cast<int>(args.w.dim(1)),
          .x_row = args.x.step(0),
          .out_row = args.out.step(0),
          .round_x = args.precision == Precision::bf16 && args.x.dim(0) > kMaxRows,
          .aligned_x = args.x.step(0) % 4 == 0 && reinterpret_cast<uintptr_t>(args.x.data) % 16 == 0,
          .residual = args.residual.as<const float>(),
          .residual_row = args.residual ? args.residual.step(0) : 0};
}

bool TilesFit(const MatMulArgs& args) {
  return args.w.dtype == DType::bf16 && args.w.dim(1) % kLaneValues == 0 &&
         reinterpret_cast<uintptr_t>(args.w.data) % 16 == 0;
}

void MatMul(Queue& queue, const MatMulArgs& args) {
  if (TilesFit(args) && args.x.dim(0) <= kMaxRows && MatMulNarrow(queue, args)) return;
  if (args.norm) return MatMul(queue, Normalised(queue, args));
  if (args.silu_mul) {
    const MatMulArgs product = GateUp(queue, args);
    MatMul(queue, product);
    return SiluMul(queue, {product.out, args.out});
  }
  if (TilesFit(args) && args.x.dim(0) > kMaxRows) {
    if (!MatMulStaged(queue, args)) MatMulWide(queue, args);
    return;
  }
  WithWeight(args.w, [&](auto* w) {
    WithWeight(args.bias, [&](auto* bias) {
      if (args.w.dim(1) % kLaneValues == 0 &&
          reinterpret_cast<uintptr_t>(w) % sizeof(Vec<Pointee<decltype(w)>, kLaneValues>) == 0) {
        RunAligned<true>(queue, args, w, bias);
      } else {
        RunAligned<false>(queue, args, w, bias);
      }
    });
  });
}

}  // namespace vt::hip::WARMLEG_VENDOR
