// MatMul of up to kMaxRows rows on matrix instructions (NVIDIA): one sweep over bf16 weights.
// Decomposition: a block a multiprocessor owns an equal share of the outputs, in units of up to kTiles tiles
// of 16. Its waves take turns over spans of k: a wave splits a piece of x into two bf16 parts (tile.h), and
// the piece of each tile of the unit goes past them. Weights come through a ring in shared memory in which
// each lane reads what it copied itself, so that no barrier is met before the waves' sums are added at the
// end of a unit. The ring is filled before earlier work has ended: weights are constant. A row's sums, over a
// wave's pieces and then over the waves, depend on k alone, as do those of its squares, by which a norm
// scales the sums at the end. Three forms, whose sums are rounded alike. 9..16 rows fill two columns of tiles
// and take a span in two pieces, for which registers suffice. One row is split once, for all units, into
// shared memory, and its two parts are two columns of one tile, so that half the products are made: a card at
// its power limit is faster by that. Two blocks on one multiprocessor would leave another idle: shared memory
// allows one, and the ring is small so that x stays in the cache beside it. Bytes: w once, x once a unit from
// the cache. Bound: memory.
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

constexpr int kStride = kWaves * kSpan;  // from a wave's span to its next
// The longest row that fits shared memory beside the rest, and the octets that hold one of k values.
constexpr int kMostStaged = 20 * kStride;
constexpr int StagedOctets(int k) { return DivUp(k, kStride) * kStride / 8 * kExactSplits; }

// Forms for 1 row, up to 8 and up to 16: kRows. A tile has eight columns, of which one row takes two.
template <int kRows>
inline constexpr int kHalves = kRows > 8 ? 2 : 1;
template <int kRows>
inline constexpr int kPiece = kSpan / kHalves<kRows>;
template <int kRows>
inline constexpr int kChunks = kPiece<kRows> / kTileK;
template <int kRows>
inline constexpr int kSlot = kChunks<kRows> * 2 * kWaveSize;  // octets of a tile's piece
template <int kRows>
inline constexpr int kDepth = kRows > 8 ? 5 : 4;  // tiles of a wave on the way
// As many as registers hold: each unit reads all of x. For one row that costs little, and fewer are faster.
template <int kRows>
inline constexpr int kTiles = kRows > 8    ? 4
                              : kRows == 1 ? 6
                                           : 9;
template <int kRows>
inline constexpr int kSums = kTileRows* kRows;  // of a tile
template <int kRows>
inline constexpr int kLaneSums = kRows == 1 ? 2 : 4 * kHalves<kRows>;

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
template <int kRows>
__device__ inline int Following(int k0) {
  k0 += kPiece<kRows>;
  return k0 / kPiece<kRows> % kHalves<kRows> == 0 ? k0 + kStride - kSpan : k0;
}

template <int kRows>
struct WeightTile {
  Octet low[kChunks<kRows>], high[kChunks<kRows>];
};

// A wave's weights, in the order in which they are used: unit, piece, tile.
template <End kEnd, int kRows>
class Weights {
 public:
  __device__ Weights(const bf16* w, const MatMulShape& s, const Share<kEnd>& share, Octet* ring)
      : w_(w),
        k_(s.k),
        further_(int64_t{s.k} * (kEnd == End::silu_mul ? s.n : 8)),
        share_(share),
        ring_(ring + (Thread() / kWaveSize * kRing + Lane())) {
    Enter(0);
    for (int d = 0; d < kDepth<kRows>; ++d) Fetch(d);
  }
  // The tile in slot `d`: outputs lane / 4 and 8 further, or their ups. The slot is filled anew.
  __device__ WeightTile<kRows> Take(int d) const {
    WaitForCopies<kDepth<kRows> - 1>();
    WeightTile<kRows> tile;
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<kRows>; ++c) {
      tile.low[c] = ring_[d * kSlot<kRows> + c * 2 * kWaveSize];
      tile.high[c] = ring_[d * kSlot<kRows> + (c * 2 + 1) * kWaveSize];
    }
    return tile;
  }
  __device__ void Fetch(int d) {
    if (next_ < share_.units) {
      const bool low = Lane() / 4 < unit_.height && output_ < unit_.count;
      const bool high =
          kEnd == End::silu_mul ? low : Lane() / 4 + 8 < unit_.height && output_ + 8 < unit_.count;
      WARMLEG_UNROLL
      for (int c = 0; c < kChunks<kRows>; ++c) {
        const bool valid = k0_ + c * kTileK < k_;
        Octet* to = ring_ + (d * kSlot<kRows> + c * 2 * kWaveSize);
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
  static constexpr int kRing = kDepth<kRows> * kSlot<kRows>;

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
    const int following = Following<kRows>(k0_);
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

__device__ inline float GainAt(const Norm& norm, const uint32_t* pairs, int i) {
  return norm.plus + __builtin_bit_cast(float, i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000U);
}

// A piece of x as the tiles take it: octet lane % 4 of each chunk, of row lane / 4 (and 8 further) in parts,
// of one row part lane / 4. Columns that stand for nothing are 0, on which the matrix unit spends less power.
template <int kRows>
struct Piece {
  Octet at[kChunks<kRows>][kHalves<kRows>][kExactSplits];
};
template <>
struct Piece<1> {
  Octet at[kChunks<1>];
};

// Where a lane's octet of chunk c of a piece begins, and 8 values of x from `k` on.
__device__ inline int LaneK(int k0, int c) { return k0 + c * kTileK + LaneId<kWaveSize>() % 4 * 8; }
__device__ inline void LoadOctet(const float* from, bool aligned, Vec<float, 4> (&to)[2]) {
  WARMLEG_UNROLL
  for (int e = 0; e < 2; ++e) {
    if (aligned) {
      to[e] = *reinterpret_cast<const Vec<float, 4>*>(from + e * 4);
    } else {
      to[e] = {{from[e * 4], from[e * 4 + 1], from[e * 4 + 2], from[e * 4 + 3]}};
    }
  }
}
// A lane's share of a row's squares, in the order of k: the same in every form.
__device__ inline void AddSquares(const Vec<float, 4> (&x)[2], bool inside, float& squares) {
  WARMLEG_UNROLL
  for (int i = 0; i < 8; ++i) {
    const float value = x[i / 4].at[i % 4];
    squares = fmaf(value, inside ? value : 0, squares);
  }
}

// The pieces of 2 rows and more, the next one on its way. Past k something is read that meets weights of 0.
// With kNorm a row is multiplied by the norm's weight here and by 1 / its root mean square at the end.
template <int kRows, bool kNorm>
class Activations {
 public:
  float squares[kHalves<kRows>] = {};

  __device__ Activations(const float* x, const MatMulShape& s, const Norm& norm, int k0, Octet*)
      : s_(s), norm_(norm) {
    WARMLEG_UNROLL
    for (int h = 0; h < kHalves<kRows>; ++h) {
      const int r = h * 8 + LaneId<kWaveSize>() / 4;
      row_[h] = x + r * s.x_row;
      there_[h] = r < s.rows;
    }
    Load(k0);
  }
  __device__ Piece<kRows> Take(int k0, int next_k0, bool) {
    if constexpr (kNorm) Normalise(k0);
    Piece<kRows> piece;
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<kRows>; ++c) {
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves<kRows>; ++h) SplitOctet(at_[c][h], piece.at[c][h]);
    }
    Load(next_k0);
    return piece;
  }

 private:
  __device__ void Load(int k0) {
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<kRows>; ++c) {
      const int k = LaneK(k0, c) < s_.k ? LaneK(k0, c) : 0;
      if constexpr (kNorm) gain_[c] = Octet::Load(norm_.weight + k);
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves<kRows>; ++h) {
        if (there_[h]) LoadOctet(row_[h] + k, s_.aligned_x, at_[c][h]);
      }
    }
  }
  __device__ void Normalise(int k0) {
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<kRows>; ++c) {
      const uint32_t pairs[4] = {gain_[c].at.x, gain_[c].at.y, gain_[c].at.z, gain_[c].at.w};
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves<kRows>; ++h) {
        AddSquares(at_[c][h], LaneK(k0, c) < s_.k, squares[h]);
        WARMLEG_UNROLL
        for (int i = 0; i < 8; ++i) at_[c][h][i / 4].at[i % 4] *= GainAt(norm_, pairs, i);
      }
    }
  }

  const MatMulShape& s_;
  const Norm& norm_;
  const float* row_[kHalves<kRows>];
  bool there_[kHalves<kRows>];
  Vec<float, 4> at_[kChunks<kRows>][kHalves<kRows>][2] = {};
  Octet gain_[kNorm ? kChunks<kRows> : 1];
};

// The pieces of one row, split in the first unit and kept for the others: shared memory has room for it. A
// wave reads what it wrote.
template <bool kNorm>
class Activations<1, kNorm> {
 public:
  float squares[1] = {};

  __device__ Activations(const float* x, const MatMulShape& s, const Norm& norm, int k0, Octet* staged)
      : x_(x), s_(s), norm_(norm), staged_(staged) {
    Load(k0);
  }
  __device__ Piece<1> Take(int k0, int next_k0, bool first_unit) {
    if (first_unit) {
      Stage(k0);
      if (next_k0 > k0) Load(next_k0);
      if constexpr (kNorm) Square(k0);
      WaveSync();
    }
    const int lane = LaneId<kWaveSize>();
    Piece<1> piece;
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<1>; ++c) {
      piece.at[c] = {};
      if (lane < kOctets) piece.at[c] = staged_[At(k0 + c * kTileK) + lane];
    }
    return piece;
  }

 private:
  static constexpr int kOctets = kTileK / 8 * kExactSplits;  // of a chunk, part after part

  __device__ static int At(int k) { return k / kTileK * kOctets; }

  // Four neighbouring values a lane.
  __device__ void Load(int k0) {
    const int k = k0 + LaneId<kWaveSize>() * 4;
    next_ = LoadX(x_, s_, 0, k);
    if constexpr (kNorm) gain_ = *reinterpret_cast<const uint2*>(norm_.weight + (k < s_.k ? k : 0));
  }
  __device__ void Stage(int k0) {
    if constexpr (kNorm) {
      const uint32_t pairs[2] = {gain_.x, gain_.y};
      WARMLEG_UNROLL
      for (int i = 0; i < 4; ++i) next_.at[i] *= GainAt(norm_, pairs, i);
    }
    const int lane = LaneId<kWaveSize>();
    auto* to = reinterpret_cast<bf16*>(staged_ + At(k0 + lane * 4));
    PutParts<kExactSplits>(next_, to + lane * 4 % kTileK, kTileK);
  }
  __device__ void Square(int k0) {
    WARMLEG_UNROLL
    for (int c = 0; c < kChunks<1>; ++c) {
      const bool inside = LaneK(k0, c) < s_.k;
      Vec<float, 4> x[2];
      LoadOctet(x_ + (inside ? LaneK(k0, c) : 0), s_.aligned_x, x);
      AddSquares(x, inside, squares[0]);
    }
  }

  const float* x_;
  const MatMulShape& s_;
  const Norm& norm_;
  Octet* staged_;
  Vec<float, 4> next_;
  uint2 gain_ = {};
};

// sum += the tile times a piece of x.
template <int kRows>
__device__ void AddPiece(const WeightTile<kRows>& w, const Piece<kRows>& x, float (&sum)[kLaneSums<kRows>]) {
  WARMLEG_UNROLL
  for (int first = 0; first < kChunks<kRows>; first += kSummed) {
    if constexpr (kRows == 1) {
      float acc[4] = {};  // of the lanes that count: the first part of two outputs beside their second
      WARMLEG_UNROLL
      for (int c = first; c < first + kSummed; ++c) AddHalf(acc, w.low[c], w.high[c], x.at[c]);
      sum[0] += acc[0] + acc[1];
      sum[1] += acc[2] + acc[3];
    } else {
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves<kRows>; ++h) {
        float acc[kExactSplits][4] = {};
        WARMLEG_UNROLL
        for (int c = first; c < first + kSummed; ++c) {
          WARMLEG_UNROLL
          for (int p = 0; p < kExactSplits; ++p) AddHalf(acc[p], w.low[c], w.high[c], x.at[c][h][p]);
        }
        WARMLEG_UNROLL
        for (int i = 0; i < 4; ++i) sum[h * 4 + i] += acc[0][i] + acc[1][i];
      }
    }
  }
}

// The squares of each row, of each wave.
template <int kRows>
using Squares = float[kWaves][kRows];

// Where the waves' sums of a unit stand, so that lanes that write at once meet all banks.
template <int kRows>
__device__ int SumAt(int tile, int wave, int row, int output) {
  const int place = row / 2 + row % 2 * (kRows / 2);
  return (tile * kWaves + wave) * kSums<kRows> + place * kTileRows + (output ^ place / 2 % 2 * 8);
}

// The sum of the waves' values, in their order.
template <int kStep>
__device__ float OverWaves(const float* of_first) {
  float total = of_first[0];
  WARMLEG_UNROLL
  for (int wave = 1; wave < kWaves; ++wave) total += of_first[wave * kStep];
  return total;
}

// Leaves a wave's sums of a unit to the block.
template <int kRows>
__device__ void PutSums(const Unit& unit, const float (&sum)[kTiles<kRows>][kLaneSums<kRows>], int rows,
                        float* shared) {
  const int lane = LaneId<kWaveSize>();
  WARMLEG_UNROLL
  for (int m = 0; m < kTiles<kRows>; ++m) {
    if (m >= unit.tiles) break;
    WARMLEG_UNROLL
    for (int i = 0; i < kLaneSums<kRows>; ++i) {
      const int row = kRows == 1 ? lane % 4 : i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int output = lane / 4 + (kRows == 1 ? i : i / 2 % 2) * 8;
      if (row < rows) shared[SumAt<kRows>(m, Thread() / kWaveSize, row, output)] = sum[m][i];
    }
  }
}

// Adds the waves' sums and writes the unit's outputs; all tiles at once, since a barrier stops every wave.
template <End kEnd, int kRows, bool kNorm, class B>
__device__ void Join(const Unit& unit, const float* shared, const Squares<kRows>& squares, const B* bias,
                     float* out, const MatMulShape& s, const Norm& norm) {
  // a thread keeps its row and its place in a tile
  constexpr int kOutputs = kTileOutputs<kEnd>;
  constexpr int kOwn = DivUp(kTiles<kRows> * kOutputs * kRows, kBlock);
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
    scale = Rsqrt(OverWaves<kRows>(squares[0] + row) / static_cast<float>(s.k) + norm.eps);
  }
  WARMLEG_UNROLL
  for (int e = 0; e < kOwn; ++e) {
    if (output_of(e) >= unit.count) break;
    const int m = first + e * at_once;
    const float total = OverWaves<kSums<kRows>>(shared + SumAt<kRows>(m, 0, row, place)) * scale;
    const int n = unit.first + output_of(e);
    if constexpr (kEnd == End::silu_mul) {
      const float* up = shared + SumAt<kRows>(m, 0, row, place + kTileRows / 2);
      out[row * s.out_row + n] = Silu(total) * (OverWaves<kSums<kRows>>(up) * scale);
    } else {
      out[row * s.out_row + n] = Finished(total, bias, s, n, residual[e]);
    }
  }
}

template <End kEnd, int kRows, bool kNorm, class B>
__global__ void __launch_bounds__(kBlock, 1)
    NarrowKernel(const float* x, const bf16* w, const B* bias, float* out, MatMulShape s, Norm norm) {
  WARMLEG_DYNAMIC_SHARED(Octet, ring);
  WARMLEG_SHARED(Squares<kRows>, squares_of, [1]);
  auto* joined = reinterpret_cast<float*>(ring + kWaves * kDepth<kRows> * kSlot<kRows>);
  auto* staged = reinterpret_cast<Octet*>(joined + kTiles<kRows> * kWaves * kSums<kRows>);
  const Share<kEnd> share(s.n, kTiles<kRows>);
  const int first_k = Thread() / kWaveSize * kSpan;
  Weights<kEnd, kRows> weights(w, s, share, ring);
  AwaitPrevious();
  Activations<kRows, kNorm> activations(x, s, norm, first_k, staged);
  int slot = 0;
  for (int u = 0; u < share.units; ++u) {
    const Unit unit = share.At(u);
    float sum[kTiles<kRows>][kLaneSums<kRows>] = {};
    for (int k0 = first_k; k0 - first_k < s.k;) {
      const int next_k0 = Following<kRows>(k0);
      const Piece<kRows> piece = activations.Take(k0, next_k0 - first_k < s.k ? next_k0 : first_k, u == 0);
      k0 = next_k0;
      WARMLEG_UNROLL
      for (int m = 0; m < kTiles<kRows>; ++m) {
        if (m >= unit.tiles) break;
        AddPiece<kRows>(weights.Take(slot), piece, sum[m]);
        weights.Fetch(slot);
        slot = slot + 1 < kDepth<kRows> ? slot + 1 : 0;
      }
    }
    if (kNorm && u == 0) {  // every unit would find the same
      WARMLEG_UNROLL
      for (int h = 0; h < kHalves<kRows>; ++h) {
        float squares = activations.squares[h];
        squares += ShuffleXor<kWaveSize>(squares, 1);
        squares += ShuffleXor<kWaveSize>(squares, 2);
        const int row = h * 8 + LaneId<kWaveSize>() / 4;
        if (row < kRows) squares_of[0][Thread() / kWaveSize][row] = squares;
      }
    }
    if (u > 0) BlockSync();  // the sums of the unit before are read
    PutSums<kRows>(unit, sum, s.rows, joined);
    Join<kEnd, kRows, kNorm>(unit, joined, squares_of[0], bias, out, s, norm);
  }
}

template <End kEnd, int kRows, bool kNorm>
void Run(Queue& queue, const MatMulArgs& args, const MatMulShape& shape) {
  const Norm norm = {args.norm.as<const bf16>(), args.eps, args.one_plus ? 1.0F : 0.0F};
  const int blocks = shape.n < ComputeUnits(queue) ? shape.n : ComputeUnits(queue);
  size_t shared = sizeof(Octet) * kWaves * kDepth<kRows> * kSlot<kRows> +
                  sizeof(float) * kTiles<kRows> * kWaves * kSums<kRows>;
  if constexpr (kRows == 1) shared += sizeof(Octet) * static_cast<size_t>(StagedOctets(shape.k));
  WithWeight(args.bias, [&](auto* bias) {
    launch_early(NarrowKernel<kEnd, kRows, kNorm, Pointee<decltype(bias)>>, blocks, kBlock, shared, queue,
                 args.x.as<const float>(), args.w.as<const bf16>(), bias, args.out.as<float>(), shape, norm);
  });
}

template <End kEnd, int kRows>
void Run(Queue& queue, const MatMulArgs& args, const MatMulShape& shape) {
  args.norm ? Run<kEnd, kRows, true>(queue, args, shape) : Run<kEnd, kRows, false>(queue, args, shape);
}

template <End kEnd>
void Run(Queue& queue, const MatMulArgs& args) {
  const MatMulShape shape = ShapeOf(args);
  if (shape.rows == 1 && shape.k <= kMostStaged) return Run<kEnd, 1>(queue, args, shape);
  shape.rows <= 8 ? Run<kEnd, 8>(queue, args, shape) : Run<kEnd, 16>(queue, args, shape);
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
