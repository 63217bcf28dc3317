// MatMul of up to kMaxRows rows on matrix instructions (NVIDIA): one sweep over bf16 weights.
// Decomposition: a block owns 32 outputs; its 8 waves are 2 x 16 outputs by 4 parts of each 512 k, a wave
// holding 128 k of 16 outputs in registers and the next 128 in flight. x stands in shared memory as three
// bf16 parts, which carry all of float32; every 128 k the sums leave the matrix unit. 1..8 and 9..16 rows
// differ in the columns of the tile alone, so a row has the same bits in both.
// Bytes: w once, x from the cache. Bound: memory.
#include "backend/hip/matmul.h"
#include "backend/hip/tile.h"

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_VENDOR_NVIDIA) && defined(WARMLEG_TILE_MMA)

namespace {

constexpr int kBlock = 256;
constexpr int kWaveSize = 32;
constexpr int kOutputs = 32;
constexpr int kParts = 4;    // of k, one a wave
constexpr int kPiece = 128;  // k of a wave in one round
constexpr int kChunks = kPiece / kTileK;
constexpr int kRound = kParts * kPiece;
constexpr int kPitch = kRound + 32;  // rows half a line apart: no two lanes of a load on one bank
constexpr int kSplits = 3;

struct Weights {
  Octet at[kChunks][2];  // outputs lane / 4 and 8 further
};

__device__ Weights FetchW(const bf16* low, const bf16* high, int k0, int k) {
  Weights w;
  WARMLEG_UNROLL
  for (int c = 0; c < kChunks; ++c) {
    const int at = k0 + c * kTileK;
    w.at[c][0] = w.at[c][1] = {uint4{0, 0, 0, 0}};
    if (at < k) {
      w.at[c][0] = Octet::Load(low + at);
      w.at[c][1] = Octet::Load(high + at);
    }
  }
  return w;
}

// A thread's quartets of x in one round.
template <int kHalves>
struct Quartets {
  static constexpr int kCount = 8 * kHalves * kRound / 4 / kBlock;
  Vec<float, 4> at[kCount];

  __device__ void Fetch(const float* x, const MatMulShape& s, int k0) {
    WARMLEG_UNROLL
    for (int u = 0; u < kCount; ++u) {
      const int i = u * kBlock + Thread();
      at[u] = LoadX(x, s, i / (kRound / 4), k0 + i % (kRound / 4) * 4);
    }
  }
  __device__ void Put(bf16* shared) const {
    WARMLEG_UNROLL
    for (int u = 0; u < kCount; ++u) {
      const int i = u * kBlock + Thread();
      Vec<bf16, 4> part[kSplits];
      WARMLEG_UNROLL
      for (int j = 0; j < 4; ++j) {
        bf16 one[kSplits];
        SplitBf16(at[u].at[j], one);
        WARMLEG_UNROLL
        for (int p = 0; p < kSplits; ++p) part[p].at[j] = one[p];
      }
      WARMLEG_UNROLL
      for (int p = 0; p < kSplits; ++p) {
        bf16* to = shared + (p * 8 * kHalves + i / (kRound / 4)) * kPitch + i % (kRound / 4) * 4;
        *reinterpret_cast<Vec<bf16, 4>*>(to) = part[p];
      }
    }
  }
};

// sum += the wave's piece of the round. x: the lane's first octet of part 0, row lane / 4.
template <int kHalves>
__device__ void AddPiece(const Weights& w, const bf16* x, float (&sum)[kHalves][4]) {
  float acc[kSplits][kHalves][4] = {};
  WARMLEG_UNROLL
  for (int c = 0; c < kChunks; ++c) {
    WARMLEG_UNROLL
    for (int p = 0; p < kSplits; ++p) {
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        AddHalf(acc[p][h], w.at[c][0], w.at[c][1],
                Octet::Load(x + (p * 8 * kHalves + h * 8) * kPitch + c * kTileK));
      }
    }
  }
  WARMLEG_UNROLL
  for (int h = 0; h < kHalves; ++h) {
    WARMLEG_UNROLL
    for (int i = 0; i < 4; ++i) sum[h][i] += acc[0][h][i] + (acc[1][h][i] + acc[2][h][i]);
  }
}

// Adds the parts of k in order and writes.
template <int kHalves, class B>
__device__ void Join(const float (&sum)[kHalves][4], float* shared, const B* bias, float* out,
                     const MatMulShape& s) {
  const int lane = LaneId<kWaveSize>();
  const int wave = Thread() / kWaveSize;
  const int part = wave / 2;
  BlockSync();
  WARMLEG_UNROLL
  for (int h = 0; h < kHalves; ++h) {
    WARMLEG_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = h * 8 + lane % 4 * 2 + i % 2;
      shared[(part * 8 * kHalves + row) * kOutputs + wave % 2 * 16 + lane / 4 + i / 2 * 8] = sum[h][i];
    }
  }
  BlockSync();
  WARMLEG_UNROLL
  for (int u = 0; u < kHalves; ++u) {
    const int i = u * kBlock + Thread();
    const int n = BlockX() * kOutputs + i % kOutputs;
    const int row = i / kOutputs;
    if (n >= s.n || row >= s.rows) continue;
    float total = shared[i];
    for (int p = 1; p < kParts; ++p) total += shared[p * 8 * kHalves * kOutputs + i];
    out[row * s.out_row + n] = bias != nullptr ? total + ToFloat(bias[n]) : total;
  }
}

template <int kHalves, class B>
__global__ void __launch_bounds__(kBlock, kHalves == 1 ? 2 : 1)
    NarrowKernel(const float* x, const bf16* w, const B* bias, float* out, MatMulShape s) {
  WARMLEG_DYNAMIC_SHARED(bf16, shared);
  const int lane = LaneId<kWaveSize>();
  const int wave = Thread() / kWaveSize;
  const int k_lane = wave / 2 * kPiece + lane % 4 * 8;
  const int n0 = BlockX() * kOutputs + wave % 2 * 16 + lane / 4;
  const bf16* low = w + static_cast<int64_t>(n0 < s.n ? n0 : s.n - 1) * s.k;
  const bf16* high = w + static_cast<int64_t>(n0 + 8 < s.n ? n0 + 8 : s.n - 1) * s.k;
  float sum[kHalves][4] = {};
  Weights next = FetchW(low, high, k_lane, s.k);
  Quartets<kHalves> x_next;
  x_next.Fetch(x, s, 0);
  for (int k0 = 0; k0 < s.k; k0 += kRound) {
    const Weights now = next;
    if (k0 > 0) BlockSync();
    x_next.Put(shared);
    BlockSync();
    if (k0 + kRound < s.k) {
      next = FetchW(low, high, k0 + kRound + k_lane, s.k);
      x_next.Fetch(x, s, k0 + kRound);
    }
    AddPiece(now, shared + lane / 4 * kPitch + k_lane, sum);
  }
  Join(sum, reinterpret_cast<float*>(shared), bias, out, s);
}

template <int kHalves>
void Run(Queue& queue, const MatMulArgs& args, const MatMulShape& shape) {
  WithWeight(args.bias, [&](auto* bias) {
    launch(NarrowKernel<kHalves, Pointee<decltype(bias)>>, DivUp(shape.n, kOutputs), kBlock,
           sizeof(bf16) * kSplits * 8 * kHalves * kPitch, queue, args.x.as<const float>(),
           args.w.as<const bf16>(), bias, args.out.as<float>(), shape);
  });
}

}  // namespace

bool MatMulNarrow(Queue& queue, const MatMulArgs& args) {
  const MatMulShape shape = ShapeOf(args);
  if (shape.rows <= 8) {
    Run<1>(queue, args, shape);
  } else {
    Run<2>(queue, args, shape);
  }
  return true;
}

#else

bool MatMulNarrow(Queue&, const MatMulArgs&) { return false; }

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
