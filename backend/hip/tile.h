// One small matrix product of a wave: acc[output][row] += sum over k of w[output][k] * x[row][k], for 16
// outputs, 16 rows and kTileK values of k; bf16 operands in memory (shared or global), float32 sums.
//
//   Tile<kWave>::Part w(at, pitch);    // the lane's part of 16 rows of kTileK values; 16-byte aligned
//   Tile<kWave>::Add(acc, w, x);       // float acc[Tile<kWave>::kValues]
//   Tile<kWave>::Output(lane, i), Row(lane, i)   // where acc[i] of a lane belongs
//
// NVIDIA: mma.sync m16n8k16 (PTX ISA). gfx11: WMMA, both halves of the wave hold the same rows; gfx12: WMMA,
// each half its own k; gfx9: MFMA 16x16x16 (AMD matrix instruction calculator). The order of k inside a tile
// is free as long as both operands agree, so that each lane takes neighbouring values. Elsewhere, and with
// WARMLEG_TILE_FMA, plain multiply-adds. Beside it, for NVIDIA alone, the halves of such a tile and
// MultiplyTf32.
#pragma once

#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

inline constexpr int kTileRows = 16;
inline constexpr int kTileK = 32;

#if defined(WARMLEG_KERNELS)

// The parts of a float32 activation in precision exact. Their products with bf16 weights are exact in
// float32.
inline constexpr int kExactSplits = 2;

// x as bf16 values, each what the ones before leave, rounded to nearest: one is within 2^-8 of x, two are
// within 2^-17.
template <int kSplits>
__device__ inline void SplitBf16(float x, bf16 (&part)[kSplits]) {
  WARMLEG_UNROLL
  for (int i = 0; i < kSplits; ++i) {
    part[i] = ToBf16(x);
    x -= ToFloat(part[i]);
  }
}

// Four values as their parts, part p at to[p * stride].
template <int kSplits>
__device__ inline void PutParts(const Vec<float, 4>& x, bf16* to, int64_t stride) {
  Vec<bf16, 4> part[kSplits];
  WARMLEG_UNROLL
  for (int j = 0; j < 4; ++j) {
    bf16 one[kSplits];
    SplitBf16(x.at[j], one);
    WARMLEG_UNROLL
    for (int p = 0; p < kSplits; ++p) part[p].at[j] = one[p];
  }
  WARMLEG_UNROLL
  for (int p = 0; p < kSplits; ++p) *reinterpret_cast<Vec<bf16, 4>*>(to + p * stride) = part[p];
}

// Takes a tile's sums out of the matrix unit.
template <int kValues>
__device__ inline void Flush(float (&acc)[kValues], float (&sum)[kValues]) {
  WARMLEG_UNROLL
  for (int i = 0; i < kValues; ++i) {
    sum[i] += acc[i];
    acc[i] = 0;
  }
}

#if defined(WARMLEG_VENDOR_NVIDIA) && !defined(WARMLEG_TILE_FMA)
#define WARMLEG_TILE_MMA

// Eight values of k of one row, as the four lanes of a row hold them.
struct Octet {
  uint4 at;
  __device__ static Octet Load(const bf16* p) { return {*reinterpret_cast<const uint4*>(p)}; }
};

// Both rounded to nearest bf16, the first in the lower half (PTX ISA, cvt).
__device__ inline uint32_t RoundedPair(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

// Asynchronous copies of 16 bytes to shared memory, or of zeros where `valid` is false (PTX ISA, cp.async). A
// thread's copies form groups; WaitForCopies returns when all but its newest kNewest groups are there.
__device__ inline void CopyOctet(void* to, const bf16* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(valid ? 16 : 0)
               : "memory");
}
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewest>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
}

// acc[0..3] += 16 outputs x 8 rows. w0: output lane / 4, w1: the output 8 further, x: row lane / 4; each the
// octet lane % 4 of the row's 32 values.
__device__ inline void AddHalf(float* acc, const Octet& w0, const Octet& w1, const Octet& x) {
  const auto step = [&](uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  };
  step(w0.at.x, w1.at.x, w0.at.y, w1.at.y, x.at.x, x.at.y);
  step(w0.at.z, w1.at.z, w0.at.w, w1.at.w, x.at.z, x.at.w);
}

#define WARMLEG_TILE_TF32

// sum += 16 rows x 8 columns of 8 values, tf32. Value i of a lane: of `a` row lane / 4 + i % 2 * 8 and k lane
// % 4
// + i / 2 * 4, of `b` column lane / 4 and k lane % 4 + i * 4, of the sum row lane / 4 + i / 2 * 8 and column
// lane % 4 * 2 + i % 2 (PTX ISA, mma.m16n8k8).
__device__ inline void MultiplyTf32(const uint32_t (&a)[4], const uint32_t (&b)[2], float (&sum)[4]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int kWave>
struct Tile {
  static constexpr int kValues = 8;
  struct Part {
    Octet low, high;
    __device__ Part(const bf16* at, int pitch) {
      const int lane = LaneId<kWave>();
      low = Octet::Load(at + lane / 4 * pitch + lane % 4 * 8);
      high = Octet::Load(at + (lane / 4 + 8) * pitch + lane % 4 * 8);
    }
  };
  __device__ static void Add(float (&acc)[kValues], const Part& w, const Part& x) {
    AddHalf(acc, w.low, w.high, x.low);
    AddHalf(acc + 4, w.low, w.high, x.high);
  }
  __device__ static int Output(int lane, int i) { return lane / 4 + i % 4 / 2 * 8; }
  __device__ static int Row(int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }
};

#elif defined(WARMLEG_VENDOR_AMD) && defined(__HIP_DEVICE_COMPILE__) && !defined(WARMLEG_TILE_FMA)

using Short4 = short __attribute__((ext_vector_type(4)));
using Short8 = short __attribute__((ext_vector_type(8)));
using Short16 = short __attribute__((ext_vector_type(16)));
using Float4 = float __attribute__((ext_vector_type(4)));
using Float8 = float __attribute__((ext_vector_type(8)));

template <int kWave>
struct Tile {
#if defined(__GFX9__)
  static constexpr int kValues = 4;
  struct Part {  // row lane % 16, values of k lane / 16 * 8 ..
    Short8 at;
    __device__ Part(const bf16* p, int pitch) {
      const int lane = LaneId<kWave>();
      at = *reinterpret_cast<const Short8*>(p + lane % 16 * pitch + lane / 16 * 8);
    }
  };
  __device__ static void Add(float (&acc)[kValues], const Part& w, const Part& x) {
    Float4 c = {acc[0], acc[1], acc[2], acc[3]};
    c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(w.at.lo, x.at.lo, c, 0, 0, 0);
    c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(w.at.hi, x.at.hi, c, 0, 0, 0);
    WARMLEG_UNROLL
    for (int i = 0; i < kValues; ++i) acc[i] = c[i];
  }
  __device__ static int Output(int lane, int i) { return lane / 16 * 4 + i; }
#else
  static constexpr int kValues = 8;
#if defined(__GFX12__)
  struct Part {  // row lane % 16, values of k lane / 16 * 16 ..
    Short8 first, second;
    __device__ Part(const bf16* p, int pitch) {
      const int lane = LaneId<kWave>();
      const auto* at = reinterpret_cast<const Short8*>(p + lane % 16 * pitch + lane / 16 * 16);
      first = at[0];
      second = at[1];
    }
  };
  __device__ static Float8 Step(const Short8& w, const Short8& x, const Float8& c) {
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(w, x, c);
  }
  __device__ static int Output(int lane, int i) { return lane / 16 * 8 + i; }
#else
  struct Part {  // row lane % 16, all values of k
    Short16 first, second;
    __device__ Part(const bf16* p, int pitch) {
      const auto* at = reinterpret_cast<const Short8*>(p + LaneId<kWave>() % 16 * pitch);
      first.lo = at[0];
      first.hi = at[1];
      second.lo = at[2];
      second.hi = at[3];
    }
  };
  __device__ static Float8 Step(const Short16& w, const Short16& x, const Float8& c) {
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(w, x, c);
  }
  __device__ static int Output(int lane, int i) { return 2 * i + lane / 16; }
#endif
  __device__ static void Add(float (&acc)[kValues], const Part& w, const Part& x) {
    Float8 c;
    __builtin_memcpy(&c, acc, sizeof c);  // indexing a vector keeps it in memory
    c = Step(w.second, x.second, Step(w.first, x.first, c));
    __builtin_memcpy(acc, &c, sizeof c);
  }
#endif
  __device__ static int Row(int lane, int) { return lane % 16; }
};

#else

// A part is where the operand lies: each lane reads what its sums need.
template <int kWave>
struct Tile {
  static constexpr int kValues = kTileRows * kTileRows / kWave;
  struct Part {
    const bf16* at;
    int pitch;
    __device__ Part(const bf16* at_, int pitch_) : at(at_), pitch(pitch_) {}
  };
  __device__ static void Add(float (&acc)[kValues], const Part& w, const Part& x) {
    const int lane = LaneId<kWave>();
    for (int i = 0; i < kValues; ++i) {
      const bf16* a = w.at + Output(lane, i) * w.pitch;
      const bf16* b = x.at + Row(lane, i) * x.pitch;
      for (int k = 0; k < kTileK; ++k) acc[i] = fmaf(ToFloat(a[k]), ToFloat(b[k]), acc[i]);
    }
  }
  __device__ static int Output(int lane, int i) { return (i * kWave + lane) / kTileRows; }
  __device__ static int Row(int lane, int) { return lane % kTileRows; }
};

#if defined(WARMLEG_VENDOR_SIM)
#define WARMLEG_TILE_TF32

// As on NVIDIA, so that its kernels are tested without one. Of the operands the upper 19 bits count.
inline void MultiplyTf32(const uint32_t (&a)[4], const uint32_t (&b)[2], float (&sum)[4]) {
  constexpr int kLanes = 32;
  uint32_t of_a[4][kLanes], of_b[2][kLanes];
  const auto exchange = [](uint32_t first, uint32_t second, uint32_t(&to)[kLanes],
                           uint32_t(&to_second)[kLanes]) {
    const uint64_t* all = WaveExchange(kLanes, first | uint64_t{second} << 32);
    for (int lane = 0; lane < kLanes; ++lane) {
      to[lane] = static_cast<uint32_t>(all[lane]);
      to_second[lane] = static_cast<uint32_t>(all[lane] >> 32);
    }
  };
  exchange(a[0], a[1], of_a[0], of_a[1]);
  exchange(a[2], a[3], of_a[2], of_a[3]);
  exchange(b[0], b[1], of_b[0], of_b[1]);
  const auto value = [](uint32_t bits) { return __builtin_bit_cast(float, bits & 0xffffe000U); };
  const int lane = LaneId<kLanes>();
  for (int i = 0; i < 4; ++i) {
    const int column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 8; ++k) {
      const float x = value(of_a[k / 4 * 2 + i / 2][lane / 4 * 4 + k % 4]);
      sum[i] = fmaf(x, value(of_b[k / 4][column * 4 + k % 4]), sum[i]);
    }
  }
}
#endif

#endif
#endif  // WARMLEG_KERNELS

}  // namespace vt::hip::WARMLEG_VENDOR
