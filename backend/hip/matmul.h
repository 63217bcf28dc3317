// The forms of MatMul; matmul.hip chooses.
#pragma once

#include "backend/hip/tile.h"

namespace vt::hip::WARMLEG_VENDOR {

struct MatMulShape {
  int rows, n, k;
  int64_t x_row, out_row;
  bool round_x;           // activations to bf16
  bool aligned_x;         // every row of x may be read 16 bytes at a time
  const float* residual;  // or nullptr
  int64_t residual_row;
};
MatMulShape ShapeOf(const MatMulArgs& args);

// bf16 weights whose rows may be read 16 bytes at a time, k a multiple of 8.
bool TilesFit(const MatMulArgs& args);
// More than kMaxRows rows, on the tile interface.
void MatMulWide(Queue& queue, const MatMulArgs& args);
// On matrix instructions, up to kMaxRows rows and more. False: this vendor has no such form of this call.
bool MatMulNarrow(Queue& queue, const MatMulArgs& args);
bool MatMulStaged(Queue& queue, const MatMulArgs& args);

#if defined(WARMLEG_KERNELS)

__device__ inline float ResidualAt(const MatMulShape& s, int r, int n) {
  return s.residual != nullptr ? s.residual[r * s.residual_row + n] : 0;
}

// What a sum becomes as output n.
template <class B>
__device__ float Finished(float sum, const B* bias, const MatMulShape& s, int n, float residual) {
  if (bias != nullptr) sum += ToFloat(bias[n]);
  return s.residual != nullptr ? sum + residual : sum;
}

// Four values of row r from column c on; 0 outside.
__device__ inline Vec<float, 4> LoadX(const float* x, const MatMulShape& s, int r, int c) {
  float v[4] = {};
  const float* at = x + r * s.x_row + c;
  if (r < s.rows && s.aligned_x && c + 4 <= s.k) {
    const auto whole = *reinterpret_cast<const Vec<float, 4>*>(at);
    WARMLEG_UNROLL
    for (int j = 0; j < 4; ++j) v[j] = whole.at[j];
  } else if (r < s.rows) {
    WARMLEG_UNROLL
    for (int j = 0; j < 4; ++j) v[j] = c + j < s.k ? at[j] : 0;
  }
  return {{v[0], v[1], v[2], v[3]}};  // as values: two sources of one object would keep it in memory
}

// Writes a wave's tiles, the first of which begins at output n0 of row r0. T: the Tile.
template <class T, int kWave, int kOutputTiles, int kRowTiles, class B>
__device__ void WriteTiles(const float (&sum)[kOutputTiles][kRowTiles][T::kValues], int n0, int r0,
                           const B* bias, float* out, const MatMulShape& s) {
  const int lane = LaneId<kWave>();
  WARMLEG_UNROLL
  for (int o = 0; o < kOutputTiles; ++o) {
    WARMLEG_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      WARMLEG_UNROLL
      for (int i = 0; i < T::kValues; ++i) {
        const int n = n0 + o * kTileRows + T::Output(lane, i);
        const int row = r0 + r * kTileRows + T::Row(lane, i);
        if (n >= s.n || row >= s.rows) continue;
        out[row * s.out_row + n] = Finished(sum[o][r][i], bias, s, n, ResidualAt(s, row, n));
      }
    }
  }
}

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
