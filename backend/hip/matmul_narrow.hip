// MatMul of up to kMaxRows rows on matrix instructions (NVIDIA): one sweep over bf16 weights.
// Decomposition: a block a multiprocessor owns an equal share of the outputs, in units of up to kTiles tiles
// of 16. Its waves take turns over spans of k: a wave splits a piece of x into two bf16 parts (tile.h), and
// the piece of each tile of the unit goes past them. Weights come through a ring in
// shared memory in which each lane reads what it copied itself, so that no barrier is met before the waves'
// sums are added at the end of a unit. The ring is filled before earlier work has ended: weights are
// constant. A row's sums, over a wave's pieces and then over the waves, depend on k alone, as do those of its
// squares, by which a norm scales the sums at the end. 9..16 rows differ from 1..8 in the columns of the
// tile, and take a span in two pieces, for which registers suffice; sums are rounded alike. Two blocks on one
// multiprocessor would leave another idle: registers allow one, and the ring is small so that x stays in the
// cache beside it. Bytes: w once, x once a unit from the cache. Bound: memory.
#include "backend/hip/matmul.h"
#include "backend/hip/tile.h"

namespace vt::hip::WARMLEG_VENDOR {

#if defined(WARMLEG_VENDOR_NVIDIA) && defined(WARMLEG_TILE_MMA)

namespace {

constexpr int kWaveSize = 32;
constexpr int kWaves = 8;
constexpr int kBlock = kWaves * kWaveSize;
constexpr int kSpan = 128;
constexpr int kSummed = 2;  // chunks of kTileK added up before they join the sum

template <int kHalves>
inline constexpr int kPiece = kSpan / kHalves;
template <int kHalves>
inline constexpr int kChunks = kPiece<kHalves> / kTileK;
template <int kHalves>
inline constexpr int kSlot = kChunks<kHalves> * 2 * kWaveSize;  // octets of a tile's piece
template <int kHalves>
inline constexpr int kDepth = kHalves == 1 ? 4 : 5;  // tiles of a wave on the way
// As many as registers hold: each unit reads all of x.
template <int kHalves>
inline constexpr int kTiles = kHalves == 1 ? 9 : 4;
template <int kHalves>
inline constexpr int kSums = kTileRows * 8 * kHalves;  // of a tile

// What becomes of an output. SiluMul: a tile holds the gates of up to 8 outputs, then their ups.
enum class End { plain, silu_mul };
template <End kEnd>
inline constexpr int kTileOutputs = kEnd == End::silu_mul ? kTileRows / 2 : kTileRows;

// Outputs first .. first + count - 1 in tiles of `height`.
struct Unit {
  int first, count, tiles, height;
};

template <End kEnd>
struct Share {
  int first, count, units;

  __device__ Share(int n, int tiles) {
    const auto blocks = static_cast<int64_t>(gridDim.x);
    first = static_cast<int>(BlockX() * int64_t{n} / blocks);
    count = static_cast<int>((BlockX() + 1) * int64_t{n} / blocks) - first;
    units = DivUp(count, tiles * kTileOutputs<kEnd>);
  }
  __device__ Unit At(int i) const {
    const int begin = static_cast<int>(int64_t{count} * i / units);
    const int outputs = static_cast<int>(int64_t{count} * (i + 1) / units) - begin;
    const int tiles = DivUp(outputs, kTileOutputs<kEnd>);
    return {first + begin, outputs, tiles, DivUp(outputs, tiles)};
  }
};

// Where a wave's piece begins that follows the one at k0.
template <int kHalves>
__device__ inline int Following(int k0) {
  k0 += kPiece<kHalves>;
  return k0 / kPiece<kHalves> % kHalves == 0 ? k0 + (kWaves - 1) * kSpan : k0;
}

template <int kHalves>
struct WeightTile {
  Octet low[kChunks<kHalves>], high[kChunks<kHalves>];
};

// A wave's weights, in the order in which they are used: unit, piece, tile.
template <End kEnd, int kHalves>
class Weights {
 public:
  __device__ Weights(const bf16* w, const MatMulShape& s, const Share<kEnd>& share, Octet* ring)
      : w_(w),
        k_(s.k),
        further_(int64_t{s.k} * (kEnd == End::silu_mul ? s.n : 8)),
        share_(share),
        ring_(ring + (Thread() / kWaveSize * kRing + Lane())) {
    Enter(0);
    for (int d = 0; d < kDepth<kHalves>; ++d) Fetch(d);
  }
  // The tile in slot `d`: outputs lane / 4 and 8 further, or their ups. The slot is filled anew.
  __device__ WeightTile<kHalves> Take(int d) const {
    WaitForCopies<kDepth<kHalves> - 1>();
    WeightTile<kHalves> tile;
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<kHalves>; ++c) {
      tile.low[c] = ring_[d * kSlot<kHalves> + c * 2 * kWaveSize];
      tile.high[c] = ring_[d * kSlot<kHalves> + (c * 2 + 1) * kWaveSize];
    }
    return tile;
  }
  __device__ void Fetch(int d) {
    if (next_ < share_.units) {
      const bool low = Lane() / 4 < unit_.height && output_ < unit_.count;
      const bool high =
          kEnd == End::silu_mul ? low : Lane() / 4 + 8 < unit_.height && output_ + 8 < unit_.count;
      WARMLEG_UNROLL
      for (int c = 0; c < kChunks<kHalves>; ++c) {
        const bool valid = k0_ + c * kTileK < k_;
        Octet* to = ring_ + (d * kSlot<kHalves> + c * 2 * kWaveSize);
        if (low) CopyOctet(to, at_ + c * kTileK, valid);
        if (high) CopyOctet(to + kWaveSize, at_ + further_ + c * kTileK, valid);
      }
      Advance();
      // The next kernel's blocks come when the memory is about to fall idle, not to take turns with this one.
      if (next_ == share_.units) LetNextStart();
    }
    CommitCopies();
  }

 private:
  static constexpr int kRing = kDepth<kHalves> * kSlot<kHalves>;

  __device__ static int Lane() { return LaneId<kWaveSize>(); }
  __device__ static int FirstK() { return Thread() / kWaveSize * kSpan + Lane() % 4 * 8; }

  __device__ void Enter(int unit) {
    next_ = unit;
    if (unit == share_.units) return;
    unit_ = share_.At(unit);
    Aim(FirstK());
  }
  // The first tile of a piece.
  __device__ void Aim(int k0) {
    k0_ = k0;
    output_ = Lane() / 4;
    at_ = w_ + static_cast<int64_t>(unit_.first + output_) * k_ + k0;
  }
  __device__ void Advance() {
    output_ += unit_.height;
    at_ += static_cast<int64_t>(unit_.height) * k_;
    if (output_ - Lane() / 4 < unit_.count) return;
    const int following = Following<kHalves>(k0_);
    if (following - FirstK() < k_) {
      Aim(following);
    } else {
      Enter(next_ + 1);
    }
  }

  const bf16* w_;
  int k_;
  int64_t further_;  // from an output's weights to those that share its place in a tile
  const Share<kEnd>& share_;
  Octet* ring_;
  int next_ = 0;  // of the fetch: the unit, the lane's output in it, its k
  Unit unit_ = {};
  int output_ = 0, k0_ = 0;
  const bf16* at_ = nullptr;
};

// As SplitBf16, eight values at once.
__device__ inline void SplitOctet(const Vec<float, 4> (&x)[2], Octet (&part)[kExactSplits]) {
  float rest[8];
  WARMLEG_UNROLL
  for (int i = 0; i < 8; ++i) rest[i] = x[i / 4].at[i % 4];
  WARMLEG_UNROLL
  for (int p = 0; p < kExactSplits; ++p) {
    uint32_t pair[4];
    WARMLEG_UNROLL
    for (int i = 0; i < 4; ++i) {
      pair[i] = RoundedPair(rest[2 * i], rest[2 * i + 1]);
      rest[2 * i] -= __builtin_bit_cast(float, pair[i] << 16);
      rest[2 * i + 1] -= __builtin_bit_cast(float, pair[i] & 0xffff0000U);
    }
    part[p].at = {pair[0], pair[1], pair[2], pair[3]};
  }
}

// RmsNorm of x: its weight, or none.
struct Norm {
  const bf16* weight;
  float eps, plus;
};

// A lane's values of a piece of x: row lane / 4 (and 8 further), octet lane % 4 of each chunk. Past the last
// row they are 0, on which the matrix unit spends less power; past k something is read that meets weights of
// 0. With kNorm a row is multiplied by the norm's weight here and by 1 / its root mean square at the end.
template <int kHalves, bool kNorm>
struct Activations {
  const float* row[kHalves];
  bool there[kHalves];
  Vec<float, 4> at[kChunks<kHalves>][kHalves][2] = {};
  Octet gain[kNorm ? kChunks<kHalves> : 1];

  __device__ Activations(const float* x, const MatMulShape& s) {
    WARMLEG_UNROLL
    for (int h = 0; h < kHalves; ++h) {
      const int r = h * 8 + LaneId<kWaveSize>() / 4;
      row[h] = x + r * s.x_row;
      there[h] = r < s.rows;
    }
  }
  __device__ void Load(const MatMulShape& s, const Norm& norm, int k0) {
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<kHalves>; ++c) {
      const int k = k0 + c * kTileK + LaneId<kWaveSize>() % 4 * 8;
      if constexpr (kNorm) gain[c] = Octet::Load(norm.weight + (k < s.k ? k : 0));
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        if (!there[h]) continue;
        const float* from = row[h] + (k < s.k ? k : 0);
        WARMLEG_UNROLL
        for (int e = 0; e < 2; ++e) {
          if (s.aligned_x) {
            at[c][h][e] = *reinterpret_cast<const Vec<float, 4>*>(from + e * 4);
          } else {
            at[c][h][e] = {{from[e * 4], from[e * 4 + 1], from[e * 4 + 2], from[e * 4 + 3]}};
          }
        }
      }
    }
  }
  // Adds the squares of the piece at k0 to each row's, then multiplies by the norm's weight.
  __device__ void Normalise(const MatMulShape& s, const Norm& norm, int k0, float (&squares)[kHalves]) {
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<kHalves>; ++c) {
      const bool inside = k0 + c * kTileK + LaneId<kWaveSize>() % 4 * 8 < s.k;
      const uint32_t pairs[4] = {gain[c].at.x, gain[c].at.y, gain[c].at.z, gain[c].at.w};
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        WARMLEG_UNROLL
        for (int i = 0; i < 8; ++i) {
          float& value = at[c][h][i / 4].at[i % 4];
          squares[h] = fmaf(value, inside ? value : 0, squares[h]);
          const uint32_t bits = i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000U;
          value *= norm.plus + __builtin_bit_cast(float, bits);
        }
      }
    }
  }
};

// sum += the tile times a piece of x.
template <int kHalves>
__device__ void AddPiece(const WeightTile<kHalves>& w,
                         const Octet (&x)[kChunks<kHalves>][kHalves][kExactSplits],
                         float (&sum)[kHalves][4]) {
  WARMLEG_UNROLL
  for (int first = 0; first < kChunks<kHalves>; first += kSummed) {
    WARMLEG_UNROLL
    for (int h = 0; h < kHalves; ++h) {
      float acc[kExactSplits][4] = {};
      WARMLEG_UNROLL
      for (int c = first; c < first + kSummed; ++c) {
        WARMLEG_UNROLL
        for (int p = 0; p < kExactSplits; ++p) AddHalf(acc[p], w.low[c], w.high[c], x[c][h][p]);
      }
      WARMLEG_UNROLL
      for (int i = 0; i < 4; ++i) sum[h][i] += acc[0][i] + acc[1][i];
    }
  }
}

// The squares of each row, of each wave.
template <int kHalves>
using Squares = float[kWaves][8 * kHalves];

// Where the waves' sums of a unit stand, so that lanes that write at once meet all banks.
template <int kHalves>
__device__ int SumAt(int tile, int wave, int row, int output) {
  const int place = row / 2 + row % 2 * (4 * kHalves);
  return (tile * kWaves + wave) * kSums<kHalves> + place * kTileRows + (output ^ place / 2 % 2 * 8);
}

// The sum of the waves' values, in their order.
template <int kStep>
__device__ float OverWaves(const float* of_first) {
  float total = of_first[0];
  WARMLEG_UNROLL
  for (int wave = 1; wave < kWaves; ++wave) total += of_first[wave * kStep];
  return total;
}

// Adds the waves' sums and writes the unit's outputs; all tiles at once, since a barrier stops every wave.
template <End kEnd, int kHalves, bool kNorm, class B>
__device__ void Join(const Unit& unit, const float (&sum)[kTiles<kHalves>][kHalves][4], float* shared,
                     const Squares<kHalves>& squares, const B* bias, float* out, const MatMulShape& s,
                     const Norm& norm) {
  const int lane = LaneId<kWaveSize>();
  WARMLEG_UNROLL
  for (int m = 0; m < kTiles<kHalves>; ++m) {
    if (m >= unit.tiles) break;
    WARMLEG_UNROLL
    for (int h = 0; h < kHalves; ++h) {
      WARMLEG_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int row = h * 8 + lane % 4 * 2 + i % 2;
        const int at = SumAt<kHalves>(m, Thread() / kWaveSize, row, lane / 4 + i / 2 * 8);
        if (row < s.rows) shared[at] = sum[m][h][i];
      }
    }
  }
  // a thread keeps its row and its place in a tile
  constexpr int kOutputs = kTileOutputs<kEnd>;
  constexpr int kOwn = DivUp(kTiles<kHalves> * kOutputs * 8 * kHalves, kBlock);
  const int at_once = kBlock / kOutputs / s.rows;
  const int place = Thread() % kOutputs;
  const int row = Thread() / kOutputs % s.rows;
  const int first = Thread() / kOutputs / s.rows;
  const bool mine = first < at_once && place < unit.height;
  const auto output_of = [&](int e) { return (first + e * at_once) * unit.height + place; };
  float residual[kOwn] = {};  // on its way while the waves meet
  if constexpr (kEnd == End::plain) {
    WARMLEG_UNROLL
    for (int e = 0; e < kOwn; ++e) {
      if (mine && output_of(e) < unit.count) residual[e] = ResidualAt(s, row, unit.first + output_of(e));
    }
  }
  BlockSync();
  if (!mine) return;
  float scale = 1;
  if constexpr (kNorm) {
    scale = Rsqrt(OverWaves<8 * kHalves>(squares[0] + row) / static_cast<float>(s.k) + norm.eps);
  }
  WARMLEG_UNROLL
  for (int e = 0; e < kOwn; ++e) {
    if (output_of(e) >= unit.count) break;
    const int m = first + e * at_once;
    const float total = OverWaves<kSums<kHalves>>(shared + SumAt<kHalves>(m, 0, row, place)) * scale;
    const int n = unit.first + output_of(e);
    if constexpr (kEnd == End::silu_mul) {
      const float* up = shared + SumAt<kHalves>(m, 0, row, place + kTileRows / 2);
      out[row * s.out_row + n] = Silu(total) * (OverWaves<kSums<kHalves>>(up) * scale);
    } else {
      out[row * s.out_row + n] = Finished(total, bias, s, n, residual[e]);
    }
  }
}

template <End kEnd, int kHalves, bool kNorm, class B>
__global__ void __launch_bounds__(kBlock, 1)
    NarrowKernel(const float* x, const bf16* w, const B* bias, float* out, MatMulShape s, Norm norm) {
  WARMLEG_DYNAMIC_SHARED(Octet, ring);
  WARMLEG_SHARED(Squares<kHalves>, squares_of, [1]);
  auto* joined = reinterpret_cast<float*>(ring + kWaves * kDepth<kHalves> * kSlot<kHalves>);
  const Share<kEnd> share(s.n, kTiles<kHalves>);
  const int first_k = Thread() / kWaveSize * kSpan;
  Weights<kEnd, kHalves> weights(w, s, share, ring);
  AwaitPrevious();
  Activations<kHalves, kNorm> next(x, s);
  next.Load(s, norm, first_k);
  int slot = 0;
  for (int u = 0; u < share.units; ++u) {
    const Unit unit = share.At(u);
    float sum[kTiles<kHalves>][kHalves][4] = {};
    float squares[kHalves] = {};
    for (int k0 = first_k; k0 - first_k < s.k;) {
      if constexpr (kNorm) next.Normalise(s, norm, k0, squares);
      Octet part[kChunks<kHalves>][kHalves][kExactSplits];
      WARMLEG_UNROLL
      for (int c = 0; c < kChunks<kHalves>; ++c) {
        WARMLEG_UNROLL
        for (int h = 0; h < kHalves; ++h) SplitOctet(next.at[c][h], part[c][h]);
      }
      k0 = Following<kHalves>(k0);
      next.Load(s, norm, k0 - first_k < s.k ? k0 : first_k);
      WARMLEG_UNROLL
      for (int m = 0; m < kTiles<kHalves>; ++m) {
        if (m >= unit.tiles) break;
        AddPiece(weights.Take(slot), part, sum[m]);
        weights.Fetch(slot);
        slot = slot + 1 < kDepth<kHalves> ? slot + 1 : 0;
      }
    }
    if constexpr (kNorm) {
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        squares[h] += ShuffleXor<kWaveSize>(squares[h], 1);
        squares[h] += ShuffleXor<kWaveSize>(squares[h], 2);
        // every unit finds the same
        if (u == 0) squares_of[0][Thread() / kWaveSize][h * 8 + LaneId<kWaveSize>() / 4] = squares[h];
      }
    }
    if (u > 0) BlockSync();  // the sums of the unit before are read
    Join<kEnd, kHalves, kNorm>(unit, sum, joined, squares_of[0], bias, out, s, norm);
  }
}

template <End kEnd, int kHalves, bool kNorm>
void Run(Queue& queue, const MatMulArgs& args, const MatMulShape& shape) {
  const Norm norm = {args.norm.as<const bf16>(), args.eps, args.one_plus ? 1.0F : 0.0F};
  const int blocks = shape.n < ComputeUnits(queue) ? shape.n : ComputeUnits(queue);
  constexpr size_t kShared = sizeof(Octet) * kWaves * kDepth<kHalves> * kSlot<kHalves> +
                             sizeof(float) * kTiles<kHalves> * kWaves * kSums<kHalves>;
  WithWeight(args.bias, [&](auto* bias) {
    launch_early(NarrowKernel<kEnd, kHalves, kNorm, Pointee<decltype(bias)>>, blocks, kBlock, kShared, queue,
                 args.x.as<const float>(), args.w.as<const bf16>(), bias, args.out.as<float>(), shape, norm);
  });
}

template <End kEnd>
void Run(Queue& queue, const MatMulArgs& args) {
  const MatMulShape shape = ShapeOf(args);
  if (shape.rows <= 8) {
    args.norm ? Run<kEnd, 1, true>(queue, args, shape) : Run<kEnd, 1, false>(queue, args, shape);
  } else {
    args.norm ? Run<kEnd, 2, true>(queue, args, shape) : Run<kEnd, 2, false>(queue, args, shape);
  }
}

}  // namespace

bool MatMulNarrow(Queue& queue, const MatMulArgs& args) {
  if (args.norm && (args.norm.dtype != DType::bf16 || reinterpret_cast<uintptr_t>(args.norm.data) % 16 != 0))
    return false;
  args.silu_mul ? Run<End::silu_mul>(queue, args) : Run<End::plain>(queue, args);
  return true;
}

#else

bool MatMulNarrow(Queue&, const MatMulArgs&) { return false; }

#endif

}  // namespace vt::hip::WARMLEG_VENDOR
