// MatMul of more than kMaxRows rows on matrix instructions (NVIDIA).
// x becomes bf16 first, in scratch. precision bf16: rounded once; exact: as two bf16 parts (tile.h),
// and sums taken out of the matrix unit every 128 k.
// Decomposition: a block owns 128 outputs x 128 rows, a wave 32 x 64 of them in tiles of 16 x 16; k in steps
// of 32 through a ring of stages in shared memory, which asynchronous copies fill three steps ahead. A sum is
// in the order of k, as in matmul_wide.hip. Bytes: w once for 128 rows, x once for 128 outputs, mostly from
// the cache. Bound: the matrix unit; shared memory comes next. Blocks of 256 outputs were slower (one block a
// multiprocessor), so was a barrier for every second step.
#include "backend/hip/matmul.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_VENDOR_NVIDIA) && defined(WARMLEG_TILE_MMA)

namespace {

constexpr int kWaveSize = 32;
constexpr int kBlock = 256;
constexpr int kOutputs = 128;
constexpr int kRows = 128;
constexpr int kRowTiles = 4;                   // of one wave
constexpr int kLines = kBlock / (kTileK / 8);  // operand rows that one copy of every thread covers
constexpr int kStages = 4;
constexpr int kFlush = 4;  // steps
constexpr int kWaveRows = kRowTiles * kTileRows;
constexpr int kOutputTiles = kOutputs * kRows / (kBlock / kWaveSize) / kWaveRows / kTileRows;

template <int kSplits>
__global__ void __launch_bounds__(kBlock) SplitKernel(const float* x, bf16* parts, MatMulShape s) {
  StartInOrder();
  const int64_t quartets = int64_t{s.rows} * s.k / 4;
  const int64_t i = BlockX() * int64_t{kBlock} + Thread();
  if (i >= quartets) return;
  const int per_row = s.k / 4;
  const Vec<float, 4> v = LoadX(x, s, static_cast<int>(i / per_row), static_cast<int>(i % per_row) * 4);
  PutParts<kSplits>(v, parts + i * 4, quartets * 4);
}

// Brings the operands of step after step to shared memory, 16 bytes at a time: kOutputs rows of w, then kRows
// of each part of x; zeros where there are none.
template <int kSplits>
class Ring {
 public:
  static constexpr int kStage = (kOutputs + kSplits * kRows) * kTileK;  // values of a step
  static_assert(kOutputs % kLines == 0 && kRows % kLines == 0);

  __device__ Ring(const bf16* parts, const bf16* w, const MatMulShape& s, int n0, int r0, bf16* stages)
      : n_(n0 + Line()),
        r_(r0 + Line()),
        w_(w + static_cast<int64_t>(n_) * s.k + Column()),
        parts_(parts + static_cast<int64_t>(r_) * s.k + Column()),
        s_(s),
        stages_(stages) {
    for (int step = 0; step < kStages - 1; ++step) Fetch(step);
  }
  // The operands of a step, asked for in order; those of the step before are given up.
  __device__ const bf16* Take(int step) {
    WaitForCopies<kStages - 2>();
    BlockSync();
    Fetch(step + kStages - 1);
    return stages_ + step % kStages * kStage;
  }

 private:
  __device__ static int Line() { return Thread() / (kTileK / 8); }
  __device__ static int Column() { return Thread() % (kTileK / 8) * 8; }

  __device__ void Fetch(int step) {
    const int k0 = step * kTileK;
    const bool inside = k0 + Column() < s_.k;
    bf16* to = stages_ + step % kStages * kStage + Thread() * 8;
    WARMLEG_UNROLL
    for (int n = 0; n < kOutputs; n += kLines) {
      CopyOctet(to + n * kTileK, w_ + k0 + int64_t{n} * s_.k, inside && n_ + n < s_.n);
    }
    WARMLEG_UNROLL
    for (int p = 0; p < kSplits; ++p) {
      WARMLEG_UNROLL
      for (int r = 0; r < kRows; r += kLines) {
        CopyOctet(to + (kOutputs + p * kRows + r) * kTileK, parts_ + k0 + (int64_t{p} * s_.rows + r) * s_.k,
                  inside && r_ + r < s_.rows);
      }
    }
    CommitCopies();
  }

  int n_, r_;  // the thread's first rows
  const bf16* w_;
  const bf16* parts_;
  const MatMulShape& s_;
  bf16* stages_;
};

template <int kSplits, class B>
__global__ void __launch_bounds__(kBlock, kSplits == 1 ? 2 : 1)
    StagedKernel(const bf16* parts, const bf16* w, const B* bias, float* out, MatMulShape s) {
  StartInOrder();
  WARMLEG_DYNAMIC_SHARED(bf16, stages);
  using T = Tile<kWaveSize>;
  const int wave = Thread() / kWaveSize;
  const int r_wave = wave % (kRows / kWaveRows) * kWaveRows;
  const int n_wave = wave / (kRows / kWaveRows) * kOutputTiles * kTileRows;
  const int n0 = BlockY() * kOutputs;
  const int r0 = BlockX() * kRows;
  float sum[kOutputTiles][kRowTiles][T::kValues] = {};
  float acc[kOutputTiles][kRowTiles][T::kValues] = {};
  Ring<kSplits> ring(parts, w, s, n0, r0, stages);
  const int steps = DivUp(s.k, kTileK);
  for (int step = 0; step < steps; ++step) {
    const bf16* now = ring.Take(step);
    WARMLEG_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      WARMLEG_UNROLL
      for (int p = 0; p < kSplits; ++p) {
        const typename T::Part x(now + (kOutputs + p * kRows + r_wave + r * kTileRows) * kTileK, kTileK);
        WARMLEG_UNROLL
        for (int o = 0; o < kOutputTiles; ++o) {
          T::Add(acc[o][r], typename T::Part(now + (n_wave + o * kTileRows) * kTileK, kTileK), x);
        }
      }
    }
    if constexpr (kSplits > 1) {
      if (step % kFlush != kFlush - 1 && step + 1 != steps) continue;
      WARMLEG_UNROLL
      for (int o = 0; o < kOutputTiles; ++o) {
        WARMLEG_UNROLL
        for (int r = 0; r < kRowTiles; ++r) Flush(acc[o][r], sum[o][r]);
      }
    }
  }
  if constexpr (kSplits > 1) {
    WriteTiles<T, kWaveSize>(sum, n0 + n_wave, r0 + r_wave, bias, out, s);
  } else {
    WriteTiles<T, kWaveSize>(acc, n0 + n_wave, r0 + r_wave, bias, out, s);
  }
}

template <int kSplits>
void Run(Queue& queue, const MatMulArgs& args, const MatMulShape& shape) {
  const int64_t count = int64_t{shape.rows} * shape.k;
  auto* parts = Scratch<bf16>(queue, "MatMul.parts", static_cast<size_t>(kSplits * count));
  launch_early(SplitKernel<kSplits>, Blocks(DivUp(count / 4, int64_t{kBlock})), kBlock, 0, queue,
               args.x.as<const float>(), parts, shape);
  WithWeight(args.bias, [&](auto* bias) {
    launch_early(StagedKernel<kSplits, Pointee<decltype(bias)>>,
                 Blocks(DivUp(shape.rows, kRows), DivUp(shape.n, kOutputs)), kBlock,
                 sizeof(bf16) * kStages * Ring<kSplits>::kStage, queue, parts, args.w.as<const bf16>(), bias,
                 args.out.as<float>(), shape);
  });
}

}  // namespace

bool MatMulStaged(Queue& queue, const MatMulArgs& args) {
  const MatMulShape shape = ShapeOf(args);
  shape.round_x ? Run<1>(queue, args, shape) : Run<kExactSplits>(queue, args, shape);
  return true;
}

#else

bool MatMulStaged(Queue&, const MatMulArgs&) { return false; }

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
