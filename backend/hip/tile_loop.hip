// The tile loop fed from registers. Decomposition: 8 blocks of 8 waves for each compute unit; a wave holds
// kOutputTiles parts of one operand and kRowTiles of the other, and multiplies each with each in every turn.
// Bytes: none. Bound: the matrix unit.
#include "backend/hip/tile_loop.h"

#include "backend/hip/tile.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;
constexpr int kBlocks = 8;  // for each compute unit
constexpr int kOutputTiles = 2;
#if defined(WARMLEG_VENDOR_NVIDIA)
constexpr int kRowTiles = 4;
#else
constexpr int kRowTiles = 2;
#endif

template <int kWave>
__global__ void __launch_bounds__(kBlock) TileLoopKernel(float* sums, int turns) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(bf16, ones, [kTileRows * kTileK]);
  using T = Tile<kWave>;
  for (int i = Thread(); i < kTileRows * kTileK; i += kBlock) ones[i] = ToBf16(1);
  BlockSync();
  const typename T::Part w(ones, kTileK);
  const typename T::Part x(ones, kTileK);
  float acc[kOutputTiles][kRowTiles][T::kValues] = {};
  for (int turn = 0; turn < turns; ++turn) {
    WARMLEG_UNROLL
    for (int o = 0; o < kOutputTiles; ++o) {
      WARMLEG_UNROLL
      for (int r = 0; r < kRowTiles; ++r) T::Add(acc[o][r], w, x);
    }
  }
  // Each sum counts: one that is not the others' would show.
  float total = 0;
  bool alike = true;
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputTiles; ++o) {
    WARMLEG_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      WARMLEG_UNROLL
      for (int i = 0; i < T::kValues; ++i) {
        total = acc[o][r][i];
        alike = alike && total == acc[0][0][0];
      }
    }
  }
  const int at = BlockX() * kBlock + Thread();
  if (!alike || at < kTileSums) sums[at % kTileSums] = alike ? total : -1;
}

}  // namespace

double RunTileLoop(Queue& queue, int turns, float* sums) {
  const int blocks = ComputeUnits(queue) * kBlocks;
  double waves = 0;
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    waves = static_cast<double>(blocks) * (kBlock / kWave);
    launch(TileLoopKernel<kWave>, blocks, kBlock, 0, queue, sums, turns);
  });
  return waves * turns * kOutputTiles * kRowTiles * kTileRows * kTileRows * kTileK;
}

}  // namespace vt::hip::WARMLEG_VENDOR
