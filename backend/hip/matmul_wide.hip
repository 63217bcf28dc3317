// MatMul of more than kMaxRows rows: out = x w^T (+ bias) (+ residual) on the tile interface.
// Decomposition: a block owns 128 outputs x 64 rows, a wave a part of them in tiles of 16 x 16; k in steps of
// 32 through two shared buffers, the next step's loads in flight. precision bf16: x rounded once; exact: x as
// two bf16 parts (tile.h), and sums taken out of the matrix unit every 128 k.
// Bytes: w once for 64 rows, x once for 128 outputs, mostly from the cache. Bound: the matrix unit.
#include "backend/hip/matmul.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kOutputs = 128;
constexpr int kRows = 64;
constexpr int kRowTiles = 2;  // of one wave
constexpr int kFlush = 4;     // steps

template <int kSplits>
struct Stage {
  bf16 w[kOutputs * kTileK];
  bf16 x[kSplits][kRows * kTileK];
};

// What a thread carries from memory to shared: two octets of w, two quartets of x.
struct Load {
  Vec<uint32_t, 4> w[2];
  Vec<float, 4> x[2];
};

__device__ Load Fetch(const float* x, const bf16* w, const MatMulShape& s, int n0, int r0, int k0) {
  Load load = {};
  WARMLEG_UNROLL
  for (int u = 0; u < 2; ++u) {
    const int i = u * kBlock + Thread();
    const int n = n0 + i / 4;
    const int k = k0 + i % 4 * 8;
    if (n < s.n && k < s.k) {
      load.w[u] = *reinterpret_cast<const Vec<uint32_t, 4>*>(w + static_cast<int64_t>(n) * s.k + k);
    }
    load.x[u] = LoadX(x, s, r0 + i / 8, k0 + i % 8 * 4);
  }
  return load;
}

template <int kSplits>
__device__ void Put(const Load& load, Stage<kSplits>& to) {
  WARMLEG_UNROLL
  for (int u = 0; u < 2; ++u) {
    const int i = u * kBlock + Thread();
    *reinterpret_cast<Vec<uint32_t, 4>*>(to.w + i * 8) = load.w[u];
    PutParts<kSplits>(load.x[u], to.x[0] + i * 4, kRows * kTileK);
  }
}

template <int kWave, int kSplits, class B>
__global__ void __launch_bounds__(kBlock)
    WideKernel(const float* x, const bf16* w, const B* bias, float* out, MatMulShape s) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(Stage<kSplits>, stage, [2]);
  using T = Tile<kWave>;
  constexpr int kWaveRows = kRowTiles * kTileRows;
  constexpr int kOutputTiles = kOutputs * kRows / (kBlock / kWave) / kWaveRows / kTileRows;
  const int wave = Thread() / kWave;
  const int r_wave = wave % (kRows / kWaveRows) * kWaveRows;
  const int n_wave = wave / (kRows / kWaveRows) * kOutputTiles * kTileRows;
  const int n0 = BlockX() * kOutputs;
  const int r0 = BlockY() * kRows;
  float sum[kOutputTiles][kRowTiles][T::kValues] = {};
  float acc[kOutputTiles][kRowTiles][T::kValues] = {};
  Load next = Fetch(x, w, s, n0, r0, 0);
  const int steps = DivUp(s.k, kTileK);
  for (int step = 0; step < steps; ++step) {
    Stage<kSplits>& now = stage[step % 2];
    Put(next, now);
    BlockSync();
    if (step + 1 < steps) next = Fetch(x, w, s, n0, r0, (step + 1) * kTileK);
    WARMLEG_UNROLL
    for (int o = 0; o < kOutputTiles; ++o) {
      if (n0 + n_wave + o * kTileRows >= s.n) continue;
      const typename T::Part weights(now.w + (n_wave + o * kTileRows) * kTileK, kTileK);
      WARMLEG_UNROLL
      for (int r = 0; r < kRowTiles; ++r) {
        if (r0 + r_wave + r * kTileRows >= s.rows) continue;
        WARMLEG_UNROLL
        for (int p = 0; p < kSplits; ++p) {
          T::Add(acc[o][r], weights, typename T::Part(now.x[p] + (r_wave + r * kTileRows) * kTileK, kTileK));
        }
        if (kSplits > 1 && (step % kFlush == kFlush - 1 || step + 1 == steps)) {
          Flush(acc[o][r], sum[o][r]);
        }
      }
    }
  }
  if constexpr (kSplits > 1) {
    WriteTiles<T, kWave>(sum, n0 + n_wave, r0 + r_wave, bias, out, s);
  } else {
    WriteTiles<T, kWave>(acc, n0 + n_wave, r0 + r_wave, bias, out, s);
  }
}

}  // namespace

void MatMulWide(Queue& queue, const MatMulArgs& args) {
  const MatMulShape shape = ShapeOf(args);
  const dim3 blocks = Blocks(DivUp(shape.n, kOutputs), DivUp(shape.rows, kRows));
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    WithWeight(args.bias, [&](auto* bias) {
      using B = Pointee<decltype(bias)>;
      if (shape.round_x) {
        launch_early(WideKernel<kWave, 1, B>, blocks, kBlock, 0, queue, args.x.as<const float>(),
                     args.w.as<const bf16>(), bias, args.out.as<float>(), shape);
      } else {
        launch_early(WideKernel<kWave, kExactSplits, B>, blocks, kBlock, 0, queue, args.x.as<const float>(),
                     args.w.as<const bf16>(), bias, args.out.as<float>(), shape);
      }
    });
  });
}

}  // namespace vt::hip::WARMLEG_VENDOR
