// MatMul of more than kMaxRows rows on matrix instructions (NVIDIA).
// x becomes bf16 first, in scratch. precision bf16: rounded once; exact: as three bf16 parts, whose products
// are exact in float32, and sums taken out of the matrix unit every 128 k.
// Decomposition: a block owns kOutputs outputs x 128 rows, a wave a part of them, 64 rows high, in tiles of
// 16 x 16; k in steps of 32 through a ring of stages in shared memory, which asynchronous copies fill three
// steps ahead. A sum is in the order of k whatever kOutputs is, and that of matmul_wide.hip.
// Bytes: w once for 128 rows, x once for kOutputs outputs, mostly from the cache. Bound: the matrix unit.
#include "backend/hip/matmul.h"
#include "backend/hip/tile.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_VENDOR_NVIDIA) && defined(WARMLEG_TILE_MMA)

namespace {

constexpr int kWaveSize = 32;
constexpr int kBlock = 256;
constexpr int kRows = 128;
constexpr int kRowTiles = 4;  // of one wave
constexpr int kStages = 4;
constexpr int kFlush = 4;  // steps
constexpr int kWaveRows = kRowTiles * kTileRows;

template <int kSplits>
__global__ void __launch_bounds__(kBlock) SplitKernel(const float* x, bf16* parts, MatMulShape s) {
  StartInOrder();
  const int64_t quartets = int64_t{s.rows} * s.k / 4;
  const int64_t i = BlockX() * int64_t{kBlock} + Thread();
  if (i >= quartets) return;
  const int per_row = s.k / 4;
  const Vec<float, 4> v = LoadX(x, s, static_cast<int>(i / per_row), static_cast<int>(i % per_row) * 4);
  Vec<bf16, 4> part[kSplits];
  WARMLEG_UNROLL
  for (int j = 0; j < 4; ++j) {
    bf16 one[kSplits];
    SplitBf16(v.at[j], one);
    WARMLEG_UNROLL
    for (int p = 0; p < kSplits; ++p) part[p].at[j] = one[p];
  }
  WARMLEG_UNROLL
  for (int p = 0; p < kSplits; ++p) {
    *reinterpret_cast<Vec<bf16, 4>*>(parts + (p * quartets + i) * 4) = part[p];
  }
}

// Brings the operands of step after step to shared memory, 16 bytes at a time: kOutputs rows of w, then kRows
// of each part of x; zeros where there are none.
template <int kSplits, int kOutputs>
class Ring {
 public:
  static constexpr int kOctets = (kOutputs + kSplits * kRows) * (kTileK / 8);  // of one step
  static constexpr int kStage = kOctets * 8;                                   // values
  static_assert(kOctets % kBlock == 0);

  __device__ Ring(const bf16* parts, const bf16* w, const MatMulShape& s, int n0, int r0, bf16* stages)
      : parts_(parts), w_(w), s_(s), n0_(n0), r0_(r0), stages_(stages) {
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
  __device__ void Fetch(int step) {
    bf16* stage = stages_ + step % kStages * kStage;
    WARMLEG_UNROLL
    for (int u = 0; u < kOctets / kBlock; ++u) {
      const int i = u * kBlock + Thread();
      const int k = step * kTileK + i % 4 * 8;
      const int line = i / 4;
      if (line < kOutputs) {
        CopyOctet(stage + i * 8, w_ + static_cast<int64_t>(n0_ + line) * s_.k + k,
                  n0_ + line < s_.n && k < s_.k);
      } else {
        const int r = r0_ + (line - kOutputs) % kRows;
        const int64_t row = static_cast<int64_t>((line - kOutputs) / kRows) * s_.rows + r;
        CopyOctet(stage + i * 8, parts_ + row * s_.k + k, r < s_.rows && k < s_.k);
      }
    }
    CommitCopies();
  }

  const bf16* parts_;
  const bf16* w_;
  const MatMulShape& s_;
  int n0_, r0_;
  bf16* stages_;
};

template <int kOutputTiles, int kValues>
__device__ void Flush(float (&acc)[kOutputTiles][kRowTiles][kValues],
                      float (&sum)[kOutputTiles][kRowTiles][kValues]) {
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputTiles; ++o) {
    WARMLEG_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      WARMLEG_UNROLL
      for (int i = 0; i < kValues; ++i) {
        sum[o][r][i] += acc[o][r][i];
        acc[o][r][i] = 0;
      }
    }
  }
}

template <int kSplits, int kOutputs, class B>
__global__ void __launch_bounds__(kBlock, 1)
    StagedKernel(const bf16* parts, const bf16* w, const B* bias, float* out, MatMulShape s) {
  StartInOrder();
  WARMLEG_DYNAMIC_SHARED(bf16, stages);
  using T = Tile<kWaveSize>;
  constexpr int kOutputTiles = kOutputs * kRows / (kBlock / kWaveSize) / kWaveRows / kTileRows;
  const int wave = Thread() / kWaveSize;
  const int r_wave = wave % (kRows / kWaveRows) * kWaveRows;
  const int n_wave = wave / (kRows / kWaveRows) * kOutputTiles * kTileRows;
  const int n0 = BlockY() * kOutputs;
  const int r0 = BlockX() * kRows;
  float sum[kOutputTiles][kRowTiles][T::kValues] = {};
  float acc[kOutputTiles][kRowTiles][T::kValues] = {};
  Ring<kSplits, kOutputs> ring(parts, w, s, n0, r0, stages);
  const int steps = DivUp(s.k, kTileK);
  for (int step = 0; step < steps; ++step) {
    const bf16* now = ring.Take(step);
    WARMLEG_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      if (r0 + r_wave + r * kTileRows >= s.rows) break;
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
      if (step % kFlush == kFlush - 1 || step + 1 == steps) Flush(acc, sum);
    }
  }
  const int lane = LaneId<kWaveSize>();
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputTiles; ++o) {
    WARMLEG_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      WARMLEG_UNROLL
      for (int i = 0; i < T::kValues; ++i) {
        const int n = n0 + n_wave + o * kTileRows + T::Output(lane, i);
        const int row = r0 + r_wave + r * kTileRows + T::Row(lane, i);
        if (n >= s.n || row >= s.rows) continue;
        const float total = kSplits > 1 ? sum[o][r][i] : acc[o][r][i];
        out[row * s.out_row + n] = Finished(total, bias, s, row, n);
      }
    }
  }
}

template <int kSplits, int kOutputs>
void Run(Queue& queue, const MatMulArgs& args, const MatMulShape& shape, const bf16* parts) {
  WithWeight(args.bias, [&](auto* bias) {
    launch_early(StagedKernel<kSplits, kOutputs, Pointee<decltype(bias)>>,
                 Blocks(DivUp(shape.rows, kRows), DivUp(shape.n, kOutputs)), kBlock,
                 sizeof(bf16) * kStages * Ring<kSplits, kOutputs>::kStage, queue, parts,
                 args.w.as<const bf16>(), bias, args.out.as<float>(), shape);
  });
}

template <int kSplits>
const bf16* Split(Queue& queue, const MatMulArgs& args, const MatMulShape& shape) {
  const int64_t count = int64_t{shape.rows} * shape.k;
  auto* parts = Scratch<bf16>(queue, "MatMul.parts", static_cast<size_t>(kSplits * count));
  launch_early(SplitKernel<kSplits>, Blocks((count / 4 + kBlock - 1) / kBlock), kBlock, 0, queue,
               args.x.as<const float>(), parts, shape);
  return parts;
}

// Whether blocks of 256 outputs end before blocks of 128, of which a wave of blocks takes 4 / 7 of the time.
bool LargeBlocks(Queue& queue, const MatMulShape& shape) {
  const int units = ComputeUnits(queue);
  const int row_blocks = DivUp(shape.rows, kRows);
  return 7 * DivUp(row_blocks * DivUp(shape.n, 256), units) <=
         4 * DivUp(row_blocks * DivUp(shape.n, 128), units);
}

}  // namespace

bool MatMulStaged(Queue& queue, const MatMulArgs& args) {
  const MatMulShape shape = ShapeOf(args);
  if (!shape.round_x) {
    Run<3, 128>(queue, args, shape, Split<3>(queue, args, shape));
  } else if (LargeBlocks(queue, shape)) {
    Run<1, 256>(queue, args, shape, Split<1>(queue, args, shape));
  } else {
    Run<1, 128>(queue, args, shape, Split<1>(queue, args, shape));
  }
  return true;
}

#else

bool MatMulStaged(Queue&, const MatMulArgs&) { return false; }

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
