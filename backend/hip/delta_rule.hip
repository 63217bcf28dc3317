// GatedDeltaRule: S *= exp(g); d = (v - S^T k) beta; S += k d^T; out = S^T q, per value head, row after row;
// and CommitDelta, which has the d of rows that were held and repeats S *= exp(g); S += k d^T.
// Decomposition: a block owns kColumns columns of one head's state and keeps them in registers for the whole
// call: kParts lanes of one wave share kOwn columns, so that the sums S^T k and S^T q of a row are shuffles
// and no barrier. q, k, v and what the gates say of kStaged rows stand in shared memory, which would bound
// the kernel if what a lane reads of q and k met one entry of the state: it meets kOwn. Bytes: the state once
// in, and once out unless the block is held. Bound: latency. CommitDelta has no exchange: its blocks share
// the depth too, and all layers are one launch. Bytes: the states once in, once out. Bound: memory. Prefill
// goes through delta_rule_chunks.hip.
#include <cmath>

#include "backend/hip/delta_rule.h"
#include "backend/vt/check.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kColumns = 32;  // of the state, of a block
constexpr int kEntries = 32;  // of the state, of a thread
constexpr int kParts = 16;    // lanes that share columns
constexpr int kStaged = 8;    // rows

// What the staged rows bring. Keys are raw and followed by zeros; the norms are 1 / |q|, scaled, and 1 / |k|.
template <int kWidth>
struct alignas(16) Staged {
  float q[kStaged][kWidth], k[kStaged][kWidth], value[kStaged][kColumns];
  float decay[kStaged], beta[kStaged], q_norm[kStaged], k_norm[kStaged];
};

// q and k of rows first .. first + rows - 1.
template <int kWidth>
__device__ void StageKeys(const Rule& a, int first, int rows, int key_head, Staged<kWidth>& s) {
  if (!a.aligned_keys) {
    for (int i = Thread(); i < rows * kWidth; i += Threads()) {
      const int r = i / kWidth;
      const int c = i % kWidth;
      s.q[r][c] = c < a.dk ? a.q.At(first + r, key_head)[c] : 0;
      s.k[r][c] = c < a.dk ? a.k.At(first + r, key_head)[c] : 0;
    }
    return;
  }
  constexpr int kVector = kWidth / 4;
  const int c = Thread() % kVector * 4;
  const int step = Threads() / kVector;
  const auto load = [&](const HeadView<float>& x, int r) {
    Vec<float, 4> four = {};
    if (r < rows && c < a.dk) four = *reinterpret_cast<const Vec<float, 4>*>(x.At(first + r, key_head) + c);
    return four;
  };
  const auto store = [&](float(&to)[kStaged][kWidth], int r, const Vec<float, 4>& four) {
    if (r < rows) *reinterpret_cast<Vec<float, 4>*>(to[r] + c) = four;
  };
  for (int r = Thread() / kVector; r < rows; r += 2 * step) {
    const Vec<float, 4> q = load(a.q, r);
    const Vec<float, 4> k = load(a.k, r);
    const Vec<float, 4> next_q = load(a.q, r + step);
    const Vec<float, 4> next_k = load(a.k, r + step);
    store(s.q, r, q);
    store(s.k, r, k);
    store(s.q, r + step, next_q);
    store(s.k, r + step, next_k);
  }
}

// A wave owns a row.
template <int kWave, int kWidth>
__device__ void StageNorms(const Rule& a, int rows, Staged<kWidth>& s) {
  const int lane = LaneId<kWave>();
  for (int r = Thread() / kWave; r < rows; r += Threads() / kWave) {
    float q = 0;
    float k = 0;
    WARMLEG_UNROLL
    for (int c = 0; c < kWidth; c += kWave) {
      q = fmaf(s.q[r][c + lane], s.q[r][c + lane], q);
      k = fmaf(s.k[r][c + lane], s.k[r][c + lane], k);
    }
    q = Rsqrt(WaveSum<kWave>(q) + 1e-6F) * a.q_scale;
    k = Rsqrt(WaveSum<kWave>(k) + 1e-6F);
    if (lane != 0) continue;
    s.q_norm[r] = q;
    s.k_norm[r] = k;
  }
}

// The column whose sums a lane ends with, from its first on.
template <int kWave, int kOwn>
__device__ int OwnColumn(int lane) {
  return lane / (kWave / kOwn);
}

// A thread's sums, one a column, added over the kParts lanes that share them: each lane keeps half of what it
// has and is given the other half's, until it ends with that of column OwnColumn(lane). No loop: compilers
// then keep the sums in registers.
template <int kWave, int kCount, int kMask = kWave / 2>
__device__ float SumOfOwn(const float (&x)[kCount], int lane) {
  if constexpr (kCount > 1) {
    const bool upper = (lane & kMask) != 0;
    float kept[kCount / 2];
    WARMLEG_UNROLL
    for (int i = 0; i < kCount / 2; ++i) {
      const float given = upper ? x[i] : x[kCount / 2 + i];
      kept[i] = (upper ? x[kCount / 2 + i] : x[i]) + ShuffleXor<kWave>(given, kMask);
    }
    return SumOfOwn<kWave, kCount / 2, kMask / 2>(kept, lane);
  } else {
    float total = x[0];
    WARMLEG_UNROLL
    for (int lanes = kMask; lanes >= kWave / kParts; lanes /= 2) total += ShuffleXor<kWave>(total, lanes);
    return total;
  }
}

// x of a thread's depths: every kParts-th four, so that the lanes read neighbouring ones.
template <int kDepth>
__device__ void LoadDepths(const float* x, int part, float (&to)[kDepth]) {
  WARMLEG_UNROLL
  for (int i = 0; i < kDepth; i += 4) {
    const auto four = *reinterpret_cast<const Vec<float, 4>*>(x + (i / 4 * kParts + part) * 4);
    WARMLEG_UNROLL
    for (int e = 0; e < 4; ++e) to[i + e] = four.at[e];
  }
}

// (S^T x) of column OwnColumn(lane).
template <int kWave, int kOwn, int kDepth>
__device__ float Product(const float (&x)[kDepth], const Vec<float, kOwn> (&state)[kDepth], int lane) {
  float sum[kOwn] = {};
  WARMLEG_UNROLL
  for (int d = 0; d < kDepth; ++d) {
    WARMLEG_UNROLL
    for (int e = 0; e < kOwn; ++e) sum[e] = fmaf(x[d], state[d].at[e], sum[e]);
  }
  return SumOfOwn<kWave>(sum, lane);
}

// `change` is what a row does to column OwnColumn(lane).
template <int kWave, int kOwn, int kDepth>
__device__ void Advance(const float (&k)[kDepth], float decay, float change, int lane,
                        Vec<float, kOwn> (&state)[kDepth]) {
  WARMLEG_UNROLL
  for (int e = 0; e < kOwn; ++e) {
    const float of_column = Shuffle<kWave>(change, e * (kWave / kOwn) + lane % (kWave / kOwn));
    WARMLEG_UNROLL
    for (int d = 0; d < kDepth; ++d) state[d].at[e] = Advanced(state[d].at[e], decay, k[d], of_column);
  }
}

// kOwn columns of a row of the state, as far as they are there. `whole`: they are, and lie as a Vec does.
template <int kOwn>
__device__ Vec<float, kOwn> LoadColumns(const float* from, int columns, bool whole) {
  if (whole) return *reinterpret_cast<const Vec<float, kOwn>*>(from);
  Vec<float, kOwn> value = {};
  WARMLEG_UNROLL
  for (int e = 0; e < kOwn; ++e) {
    if (e < columns) value.at[e] = from[e];
  }
  return value;
}
template <int kOwn>
__device__ void StoreColumns(float* to, int columns, bool whole, const Vec<float, kOwn>& value) {
  if (whole) {
    *reinterpret_cast<Vec<float, kOwn>*>(to) = value;
    return;
  }
  WARMLEG_UNROLL
  for (int e = 0; e < kOwn; ++e) {
    if (e < columns) to[e] = value.at[e];
  }
}

template <int kOwn>
inline constexpr int kThreads = kColumns / kOwn* kParts;
template <int kOwn>
inline constexpr int kDeepest = kEntries / kOwn* kParts;  // head
static_assert(kDeepest<1> >= kMaxHeadDim);

// Rows first .. first + rows - 1. What no thread needs to wait for twice is asked for before any is used.
template <int kOwn, class A, class B>
__device__ void Stage(const Rule& a, const A* a_log, const B* dt_bias, int first, int rows, int h,
                      Staged<kDeepest<kOwn>>& s) {
  constexpr int kAtOnce = kThreads<kOwn> / kColumns;  // rows of v
  constexpr int kValues = (kStaged + kAtOnce - 1) / kAtOnce;
  const int t = Thread();
  const int column = BlockX() * kColumns + t % kColumns;
  float value[kValues];
  WARMLEG_UNROLL
  for (int i = 0; i < kValues; ++i) {
    const int r = i * kAtOnce + t / kColumns;
    value[i] = r < rows && column < a.dv ? a.v.At(first + r, h)[column] : 0;
  }
  const float step = t < rows ? a.a[(first + t) * a.a_row + h] + ToFloat(dt_bias[h]) : 0;
  const float beta = t < rows ? a.b[(first + t) * a.b_row + h] : 0;
  const float rate = ToFloat(a_log[h]);
  StageKeys(a, first, rows, h / a.served, s);
  WARMLEG_UNROLL
  for (int i = 0; i < kValues; ++i) {
    const int r = i * kAtOnce + t / kColumns;
    if (r < rows) s.value[r][t % kColumns] = value[i];
  }
  if (t >= rows) return;
  s.decay[t] = expf(-expf(rate) * Softplus(step));
  s.beta[t] = Sigmoid(beta);
}

template <int kWave, int kOwn, class A, class B>
__global__ void __launch_bounds__(kThreads<kOwn>)
    DeltaRuleKernel(Rule a, const A* a_log, const B* dt_bias, bool whole) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_SHARED(Staged<kDeepest<kOwn>>, shared, [1]);
  auto& s = shared[0];
  constexpr int kGroups = kWave / kParts;  // of kOwn columns, of a wave
  constexpr int kDepth = kEntries / kOwn;
  const int lane = LaneId<kWave>();
  const int part = lane / kGroups;
  const int group = (Thread() / kWave * kGroups + lane % kGroups) * kOwn;
  const int c = group + OwnColumn<kWave, kOwn>(lane);
  const int column0 = BlockX() * kColumns;
  const int h = BlockY();
  const int columns = a.dv - column0 - group;  // that are there, from the thread's first
  float* const own = a.state + static_cast<int64_t>(h) * a.dk * a.dv + column0 + group;
  const auto depth_of = [&](int d) { return (d / 4 * kParts + part) * 4 + d % 4; };
  Vec<float, kOwn> state[kDepth] = {};
  // past dk the last entry again: q and k are 0 there
  const auto at = [&](int d) {
    return own + static_cast<uint32_t>((depth_of(d) < a.dk ? depth_of(d) : a.dk - 1) * a.dv);
  };
  if (whole && columns > 0) {  // decided once, not for each load
    WARMLEG_UNROLL
    for (int d = 0; d < kDepth; ++d) state[d] = LoadColumns<kOwn>(at(d), columns, true);
  } else {
    WARMLEG_UNROLL
    for (int d = 0; d < kDepth; ++d) state[d] = LoadColumns<kOwn>(at(d), columns, false);
  }
  // of the lanes that know a column, the first writes it
  const bool writes = column0 + c < a.dv && lane % (kWave / kOwn) < kGroups;
  for (int r = 0; r < a.rows; ++r) {
    const int staged = r % kStaged;
    if (staged == 0) {
      const int rows = a.rows - r < kStaged ? a.rows - r : kStaged;
      BlockSync();
      Stage<kOwn>(a, a_log, dt_bias, r, rows, h, s);
      BlockSync();
      StageNorms<kWave>(a, rows, s);
      BlockSync();
    }
    const float decay = s.decay[staged];
    const float k_norm = s.k_norm[staged];
    float x[kDepth];
    LoadDepths(s.k[staged], part, x);
    const float seen = Product<kWave>(x, state, lane);
    const float change = (s.value[staged][c] - seen * k_norm * decay) * s.beta[staged] * k_norm;
    Advance<kWave>(x, decay, change, lane, state);
    LoadDepths(s.q[staged], part, x);
    const float out = Product<kWave>(x, state, lane) * s.q_norm[staged];
    const int64_t head_row = static_cast<int64_t>(r) * a.nv + h;
    const int64_t to = head_row * a.dv + column0 + c;
    if (writes) a.out[to] = out;
    if (a.changes == nullptr) continue;
    if (writes) a.changes[to] = change;
    if (writes && column0 + c == 0) a.decays[head_row] = decay;
  }
  if (a.changes != nullptr || columns <= 0) return;
  WARMLEG_UNROLL
  for (int d = 0; d < kDepth; ++d) {
    if (depth_of(d) >= a.dk) continue;
    StoreColumns(own + static_cast<uint32_t>(depth_of(d) * a.dv), columns, whole, state[d]);
  }
}

template <int kOwn>
void RunRows(Queue& queue, const Rule& rule, const GatedDeltaRuleArgs& args) {
  constexpr size_t kHas = sizeof(Staged<kDeepest<kOwn>>);
  const int slices = DivUp(rule.dv, kColumns);
  const size_t all = SharedToSpread(queue, int64_t{slices} * rule.nv);
  const size_t more = all > kHas ? all - kHas : 0;
  WithWave(queue, [&](auto wave) {
    WithWeight(args.a_log, [&](auto* a_log) {
      WithWeight(args.dt_bias, [&](auto* dt_bias) {
        launch_early(DeltaRuleKernel<wave(), kOwn, Pointee<decltype(a_log)>, Pointee<decltype(dt_bias)>>,
                     Blocks(slices, rule.nv), kThreads<kOwn>, more, queue, rule, a_log, dt_bias,
                     kOwn == 1 || Aligned({ViewOf(args.state)}, rule.dv));
      });
    });
  });
}

constexpr int kLanes = 32;  // that share an entry's row in CommitDelta, four columns each
constexpr int kFours = 8;   // of entries, of a block
constexpr int kSlab = 4 * kFours;
constexpr int kWide = 4 * kLanes;

struct HeldDelta {
  const float* k;  // [layers, rows, nk, dk]
  int64_t k_layer, k_row, k_head;
  const float *changes, *decays;  // [layers, rows, nv, dv], [layers, rows, nv]
  float* states;                  // [layers, nv, dk, dv]
  const int32_t* last;
  int rows, nv, served, dk, dv;
  bool whole = false;  // as LoadColumns
};

// What the rows of a held block do to a block's part of the state.
struct HeldRows {
  float k[kMaxRows][kSlab], change[kMaxRows][kWide], decay[kMaxRows];
};

__device__ void StageHeld(const HeldDelta& a, int rows, int h, int slab, int column0, HeldRows& s) {
  const float* k = a.k + BlockZ() * a.k_layer + h / a.served * a.k_head + slab;
  const int lane = Thread() % kLanes;
  for (int r = Thread() / kLanes; r < rows; r += kFours) {
    s.k[r][lane] = slab + lane < a.dk ? k[r * a.k_row + lane] : 0;
    const int64_t at = (static_cast<int64_t>(BlockZ()) * a.rows + r) * a.nv + h;
    WARMLEG_UNROLL
    for (int e = 0; e < kWide; e += kLanes) {
      const int column = column0 + e + lane;
      s.change[r][e + lane] = column < a.dv ? a.changes[at * a.dv + column] : 0;
    }
    if (lane == 0) s.decay[r] = a.decays[at];
  }
}

__global__ void WARMLEG_BOUNDS(kLanes* kFours, 4) CommitDeltaKernel(HeldDelta a) {
  StartInOrder();
  WARMLEG_SHARED(HeldRows, shared, [1]);
  HeldRows& s = shared[0];
  const int counted = a.last[0] + 1;
  if (counted <= 0) return;
  const int rows = counted < a.rows ? counted : a.rows;
  const int h = BlockY();
  const int wides = DivUp(a.dv, kWide);
  const int column0 = BlockX() % wides * kWide;
  const int slab = BlockX() / wides * kSlab;
  const int own_column = Thread() % kLanes * 4;
  const int own_depth = Thread() / kLanes * 4;
  const int column = column0 + own_column;
  const int columns = a.dv - column;  // that are there, from the first of this thread's
  const int depths = a.dk - slab - own_depth;
  float* const own =
      a.states + ((static_cast<int64_t>(BlockZ()) * a.nv + h) * a.dk + slab + own_depth) * a.dv + column;
  Vec<float, 4> state[4] = {};
  WARMLEG_UNROLL
  for (int d = 0; d < 4; ++d) {
    if (d < depths && columns > 0)
      state[d] = LoadColumns<4>(own + static_cast<int64_t>(d) * a.dv, columns, a.whole);
  }
  StageHeld(a, rows, h, slab, column0, s);
  BlockSync();
  for (int r = 0; r < rows; ++r) {
    const auto k = *reinterpret_cast<const Vec<float, 4>*>(s.k[r] + own_depth);
    const auto change = *reinterpret_cast<const Vec<float, 4>*>(s.change[r] + own_column);
    WARMLEG_UNROLL
    for (int d = 0; d < 4; ++d) {
      WARMLEG_UNROLL
      for (int e = 0; e < 4; ++e) {
        state[d].at[e] = Advanced(state[d].at[e], s.decay[r], k.at[d], change.at[e]);
      }
    }
  }
  if (counted > a.rows) state[0].at[0] = NotANumber();
  WARMLEG_UNROLL
  for (int d = 0; d < 4; ++d) {
    if (d < depths && columns > 0)
      StoreColumns(own + static_cast<int64_t>(d) * a.dv, columns, a.whole, state[d]);
  }
}

}  // namespace

void GatedDeltaRule(Queue& queue, const GatedDeltaRuleArgs& args) {
  Rule rule = {.q = ViewOf(args.q),
               .k = ViewOf(args.k),
               .v = ViewOf(args.v),
               .a = args.a.as<const float>(),
               .b = args.b.as<const float>(),
               .a_row = args.a.step(0),
               .b_row = args.b.step(0),
               .state = args.state.as<float>(),
               .out = args.out.as<float>(),
               .changes = args.changes.as<float>(),
               .decays = args.decays.as<float>(),
               .rows = static_cast<int>(args.q.dim(0)),
               .nv = static_cast<int>(args.v.dim(1)),
               .served = static_cast<int>(args.v.dim(1) / args.q.dim(1)),
               .dk = static_cast<int>(args.q.dim(2)),
               .dv = static_cast<int>(args.v.dim(2)),
               .q_scale = 1.0F / std::sqrt(static_cast<float>(args.q.dim(2)))};
  rule.aligned_keys = Aligned({rule.q, rule.k}, rule.dk);
  if (rule.rows > kMaxRows && rule.dk <= kChunkedDepth) {
    return DeltaRuleChunks(queue, rule, args);
  }
  if (rule.dk <= kDeepest<4>) {
    RunRows<4>(queue, rule, args);
  } else {
    RunRows<1>(queue, rule, args);
  }
}

void CommitDelta(Queue& queue, const CommitDeltaArgs& args) {
  HeldDelta held = {.k = args.k.as<const float>(),
                    .k_layer = args.k.step(0),
                    .k_row = args.k.step(1),
                    .k_head = args.k.step(2),
                    .changes = args.changes.as<const float>(),
                    .decays = args.decays.as<const float>(),
                    .states = args.states.as<float>(),
                    .last = args.last.as<const int32_t>(),
                    .rows = static_cast<int>(args.k.dim(1)),
                    .nv = static_cast<int>(args.changes.dim(2)),
                    .served = static_cast<int>(args.changes.dim(2) / args.k.dim(2)),
                    .dk = static_cast<int>(args.k.dim(3)),
                    .dv = static_cast<int>(args.changes.dim(3))};
  held.whole = Aligned({ViewOf(args.states.At(0))}, held.dv);
  launch_early(CommitDeltaKernel,
               Blocks(DivUp(held.dv, kWide) * DivUp(held.dk, kSlab), held.nv, args.k.dim(0)), kLanes * kFours,
               0, queue, held);
}

}  // namespace vt::hip::WARMLEG_VENDOR
