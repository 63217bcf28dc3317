// The tile loop fed from registers. Decomposition: 8 blocks for each compute unit; a wave holds kOutputTiles
// parts of one operand and kRowTiles of the other, and multiplies each with each in every turn.
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
__global__ void __launch_bounds__(kBlock) TileLoopKernel(uint64_t* sums, int turns) {
  WARMLEG_WAVE_KERNEL(kWave);
  WARMLEG_SHARED(bf16, ones, [kTileRows * kTileK]);
  WARMLEG_SHARED(uint64_t, partial, [kBlock / kWave]);
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
  uint64_t sum = 0;
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputTiles; ++o) {
    WARMLEG_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      WARMLEG_UNROLL
      for (int i = 0; i < T::kValues; ++i) sum += static_cast<uint64_t>(acc[o][r][i]);
    }
  }
  sum = BlockSum<kWave>(sum, partial);
  if (Thread() == 0) sums[BlockX()] = sum;
}

}  // namespace

uint64_t RunTileLoop(Queue& queue, int turns, uint64_t* sums) {
  const int fitting = ComputeUnits(queue) * kBlocks;
  const int blocks = fitting < kTileSums ? fitting : kTileSums;
  int waves = 0;
  WithWave(queue, [&](auto wave) {
    constexpr int kWave = wave();
    waves = blocks * (kBlock / kWave);
    launch(TileLoopKernel<kWave>, blocks, kBlock, 0, queue, sums, turns);
  });
  return uint64_t{kOutputTiles * kRowTiles * kTileRows * kTileRows * kTileK} * static_cast<uint64_t>(waves) *
         static_cast<uint64_t>(turns);
}

}  // namespace vt::hip::WARMLEG_VENDOR
