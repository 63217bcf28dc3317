// GatedDeltaRule: S *= exp(g); d = (v - S^T k) beta; S += k d^T; out = S^T q, per value head, row after row.
// Decomposition: a block owns kColumns columns of one head's state and keeps them in registers for the whole
// call: thread (part, column) holds kDepth entries of its column, at most kMaxParts parts. q, k and what the
// gates say of kStaged rows stand in shared memory. One exchange a row: the parts of S^T k, and those of the
// rows' S^T q in the end. Bytes: the state once in, once out (once a row when rows are kept). Bound: memory
// when rows are kept, latency else. Prefill goes through delta_rule_chunks.hip.
#include <cmath>

#include "backend/hip/delta_rule.h"
#include "backend/vt/check.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kColumns = 32;   // of the state, of one block
constexpr int kMaxParts = 16;  // of a column
constexpr int kStaged = 8;     // rows
#if defined(WARMLEG_VENDOR_NVIDIA)
constexpr int kKeysAhead = kStaged;
#else
constexpr int kKeysAhead = 2;  // rows whose keys are on the way: more would spill scalar registers
#endif

struct Gates {
  float decay, beta, k_norm, q_norm;
};

// The parts of S^T k, of two rows in turn, and of S^T q, of the staged rows.
struct Sums {
  float seen[2][kMaxParts][kColumns], out[kStaged][kMaxParts][kColumns];
};

// q and k of rows first .. first + rows - 1, raw and followed by zeros: [rows][q, k][width].
__device__ void StageKeys(const Rule& a, int first, int rows, int key_head, int width, float* shared) {
  for (int c = Thread(); c < width; c += Threads()) {
    for (int i0 = 0; i0 < rows; i0 += kKeysAhead) {
      float value[kKeysAhead][2];
      WARMLEG_UNROLL
      for (int e = 0; e < kKeysAhead; ++e) {
        const bool there = i0 + e < rows && c < a.dk;
        value[e][0] = there ? a.q.At(first + i0 + e, key_head)[c] : 0;
        value[e][1] = there ? a.k.At(first + i0 + e, key_head)[c] : 0;
      }
      WARMLEG_UNROLL
      for (int e = 0; e < kKeysAhead && i0 + e < rows; ++e) {
        shared[2 * (i0 + e) * width + c] = value[e][0];
        shared[(2 * (i0 + e) + 1) * width + c] = value[e][1];
      }
    }
  }
}

// 1 / |q|, 1 / |k|; a wave owns a vector.
template <int kWave>
__device__ void StageNorms(const Rule& a, int rows, int width, const float* shared, Gates* gates) {
  const int lane = LaneId<kWave>();
  for (int n = Thread() / kWave; n < rows * 2; n += Threads() / kWave) {
    float sum = 0;
    for (int c = lane; c < width; c += kWave) sum = fmaf(shared[n * width + c], shared[n * width + c], sum);
    const float norm = Rsqrt(WaveSum<kWave>(sum) + 1e-6F);
    if (lane != 0) continue;
    if (n % 2 == 0) {
      gates[n / 2].q_norm = norm * a.q_scale;
    } else {
      gates[n / 2].k_norm = norm;
    }
  }
}

template <int kDepth>
__device__ float Dot(const float* x, const float (&state)[kDepth]) {
  float sum[4] = {};
  WARMLEG_UNROLL
  for (int i = 0; i < kDepth; i += 4) {
    const auto of_x = *reinterpret_cast<const Vec<float, 4>*>(x + i);
    WARMLEG_UNROLL
    for (int e = 0; e < 4; ++e) sum[e] = fmaf(of_x.at[e], state[i + e], sum[e]);
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

__device__ float Join(const float (&of_part)[kMaxParts][kColumns], int c, int parts) {
  float total = of_part[0][c];
  for (int p = 1; p < parts; ++p) total += of_part[p][c];
  return total;
}

// state = state decay + k change
template <int kDepth>
__device__ void Update(const float* k, float decay, float change, float (&state)[kDepth]) {
  WARMLEG_UNROLL
  for (int i = 0; i < kDepth; i += 4) {
    const auto of_k = *reinterpret_cast<const Vec<float, 4>*>(k + i);
    WARMLEG_UNROLL
    for (int e = 0; e < 4; ++e) state[i + e] = fmaf(of_k.at[e], change, state[i + e] * decay);
  }
}

template <int kWave, int kDepth, class A, class B>
__global__ void WARMLEG_BOUNDS(kColumns* kMaxParts, 1)
    DeltaRuleKernel(Rule a, const A* a_log, const B* dt_bias) {
  WARMLEG_WAVE_KERNEL(kWave);
  StartInOrder();
  WARMLEG_DYNAMIC_SHARED(float, keys);
  WARMLEG_SHARED(Gates, gates, [kStaged]);
  WARMLEG_SHARED(Sums, sums, [1]);
  const int h = BlockX();
  const int c = Thread() % kColumns;
  const int column = BlockY() * kColumns + c;
  const int part = Thread() / kColumns;
  const int parts = Threads() / kColumns;
  const int width = parts * kDepth;
  const bool mine = column < a.dv;
  const int deepest = a.dk - 1 - part * kDepth;
  const int64_t head_size = static_cast<int64_t>(a.dk) * a.dv;
  const int32_t slot = a.slot[0] >= 0 && a.slot[0] < a.slots ? a.slot[0] : 0;
  // Where an entry stands in the head's state. Entries past dk repeat the last one: q and k are 0 there, and
  // its own value is stored after theirs.
  uint32_t at[kDepth];
  WARMLEG_UNROLL
  for (int i = 0; i < kDepth; ++i) {
    at[i] = static_cast<uint32_t>((part * kDepth + (i < deepest ? i : deepest)) * a.dv +
                                  (mine ? column : a.dv - 1));
  }
  const float* v = a.v.At(0, h) + column;
  float* const out = a.out + static_cast<int64_t>(h) * a.dv + column;
  const int64_t out_step = static_cast<int64_t>(a.nv) * a.dv;
  const auto value_of = [&](int r) { return r < a.rows && mine ? v[r * a.v.row] : 0; };
  // After the staged rows, not row by row: the part that joined them held up all others.
  const auto write_out = [&](int begin, int end) {
    for (int r = begin + part; r < end && mine; r += parts) {
      out[r * out_step] = Join(sums[0].out[r % kStaged], c, parts);
    }
  };
  float state[kDepth];
  float* const states = a.states + h * head_size;  // of slot 0
  const int64_t slot_size = a.nv * head_size;
  WARMLEG_UNROLL
  for (int i = 0; i < kDepth; ++i) state[i] = states[slot * slot_size + at[i]];
  if (slot != a.slot[0]) state[0] = NotANumber();
  float value = value_of(0);
  for (int r = 0; r < a.rows; ++r) {
    const int staged = r % kStaged;
    if (staged == 0) {
      const int rows = a.rows - r < kStaged ? a.rows - r : kStaged;
      BlockSync();
      if (r > 0) write_out(r - kStaged, r);
      StageKeys(a, r, rows, h / a.served, width, keys);
      // by the last threads, which have few keys or none: the first would wait for the memory twice
      if (const int gated = Threads() - 1 - Thread(); gated < rows) {
        const float step = Softplus(a.a[(r + gated) * a.a_row + h] + ToFloat(dt_bias[h]));
        gates[gated].decay = expf(-expf(ToFloat(a_log[h])) * step);
        gates[gated].beta = Sigmoid(a.b[(r + gated) * a.b_row + h]);
      }
      BlockSync();
      StageNorms<kWave>(a, rows, width, keys, gates);
    }
    const float* q = keys + 2 * staged * width + part * kDepth;
    const float* k = q + width;
    sums[0].seen[r % 2][part][c] = Dot(k, state);
    const float following = value_of(r + 1);
    BlockSync();
    const Gates gate = gates[staged];
    const float seen = Join(sums[0].seen[r % 2], c, parts);
    Update(k, gate.decay, (value - seen * gate.k_norm * gate.decay) * gate.beta * gate.k_norm, state);
    sums[0].out[staged][part][c] = Dot(q, state) * gate.q_norm;
    if (mine && deepest >= 0 && (a.keep_rows || r + 1 == a.rows)) {
      float* to = states + (a.keep_rows ? r : 0) * slot_size;
      WARMLEG_UNROLL
      for (int j = kDepth - 1; j >= 0; --j) StoreStreaming(to + at[j], state[j]);
    }
    value = following;
  }
  BlockSync();
  write_out((a.rows - 1) / kStaged * kStaged, a.rows);
}

template <int kDepth>
void RunRows(Queue& queue, const Rule& rule, const GatedDeltaRuleArgs& args) {
  WithWave(queue, [&](auto wave) {
    // whole waves: a part more than dk has holds nothing
    const int threads = DivUp(kColumns * DivUp(rule.dk, kDepth), wave()) * wave();
    const size_t shared = sizeof(float) * 2 * kStaged * kDepth * static_cast<size_t>(threads / kColumns);
    WithWeight(args.a_log, [&](auto* a_log) {
      WithWeight(args.dt_bias, [&](auto* dt_bias) {
        launch_early(DeltaRuleKernel<wave(), kDepth, Pointee<decltype(a_log)>, Pointee<decltype(dt_bias)>>,
                     Blocks(rule.nv, DivUp(rule.dv, kColumns)), threads, shared, queue, rule, a_log, dt_bias);
      });
    });
  });
}

}  // namespace

void GatedDeltaRule(Queue& queue, const GatedDeltaRuleArgs& args) {
  const Rule rule = {.q = ViewOf(args.q),
                     .k = ViewOf(args.k),
                     .v = ViewOf(args.v),
                     .a = args.a.as<const float>(),
                     .b = args.b.as<const float>(),
                     .a_row = args.a.step(0),
                     .b_row = args.b.step(0),
                     .states = args.states.as<float>(),
                     .slot = args.slot.as<const int32_t>(),
                     .out = args.out.as<float>(),
                     .slots = static_cast<int>(args.states.dim(0)),
                     .rows = static_cast<int>(args.q.dim(0)),
                     .nv = static_cast<int>(args.v.dim(1)),
                     .served = static_cast<int>(args.v.dim(1) / args.q.dim(1)),
                     .dk = static_cast<int>(args.q.dim(2)),
                     .dv = static_cast<int>(args.v.dim(2)),
                     .q_scale = 1.0F / std::sqrt(static_cast<float>(args.q.dim(2))),
                     .keep_rows = args.keep_rows};
  if (rule.rows > kMaxRows && !rule.keep_rows && rule.dk <= kChunkedDepth) {
    return DeltaRuleChunks(queue, rule, args);
  }
  if (rule.dk <= 16 * kMaxParts) {
    RunRows<16>(queue, rule, args);
  } else {
    RunRows<static_cast<int>(kMaxHeadDim) / kMaxParts>(queue, rule, args);
  }
}

}  // namespace vt::hip::WARMLEG_VENDOR
