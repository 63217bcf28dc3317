// GatedDeltaRule: S *= exp(g); d = (v - S^T k) beta; S += k d^T; out = S^T q, per value head, row after row.
// Decomposition: a block owns kColumns columns of one head's state and keeps them in registers for the whole
// call: thread (part, column) holds kDepth entries of its column. Two exchanges a row: the parts of S^T k and
// of |k|^2, |q|^2, then those of S^T q. Columns are independent, so that a head spreads over several blocks.
// Bytes: the state once in, once out (once a row when rows are kept). Bound: memory when rows are kept,
// latency else. Prefill goes through delta_rule_chunks.hip.
#include <cmath>

#include "backend/hip/delta_rule.h"
#include "backend/vt/check.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kColumns = 32;  // of the state, of one block
constexpr int kDepth = 32;    // entries of a column, of one thread
constexpr int kMaxParts = static_cast<int>(kMaxHeadDim) / kDepth;

struct Sums {
  float kk[kMaxParts], qq[kMaxParts];
  float seen[kMaxParts][kColumns], out[kMaxParts][kColumns];
};

// q and k of one row, raw.
struct Keys {
  float q[kMaxHeadDim], k[kMaxHeadDim];
};

__device__ void Stage(const Rule& a, int r, int key_head, Keys& to) {
  const int i = Thread();  // the block has kDepth threads a part and at least dk
  to.q[i] = i < a.dk ? a.q.At(r, key_head)[i] : 0;
  to.k[i] = i < a.dk ? a.k.At(r, key_head)[i] : 0;
}

__device__ void WriteOut(const Rule& a, int r, int h, int column, int parts, const Sums& sums) {
  if (Thread() >= kColumns || column >= a.dv) return;
  float total = sums.out[0][Thread()];
  for (int p = 1; p < parts; ++p) total += sums.out[p][Thread()];
  a.out[(static_cast<int64_t>(r) * a.nv + h) * a.dv + column] = total;
}

template <class A, class B>
__global__ void __launch_bounds__(kColumns* kMaxParts)
    DeltaRuleKernel(Rule a, const A* a_log, const B* dt_bias) {
  WARMLEG_SHARED(Keys, keys, [2]);
  WARMLEG_SHARED(Sums, sums, [2]);
  const int h = BlockX();
  const int c = Thread() % kColumns;
  const int column = BlockY() * kColumns + c;
  const int part = Thread() / kColumns;
  const int parts = Threads() / kColumns;
  const bool mine = column < a.dv;
  const int64_t head_size = static_cast<int64_t>(a.dk) * a.dv;
  const int32_t slot = a.slot[0] >= 0 && a.slot[0] < a.slots ? a.slot[0] : 0;
  // Entries past dk repeat the last one: q and k are 0 there, and its own value is stored after theirs.
  const int64_t corner =
      h * head_size + static_cast<int64_t>(part) * kDepth * a.dv + (mine ? column : a.dv - 1);
  const int deepest = a.dk - 1 - part * kDepth;
  const auto at = [&](int i) { return static_cast<int64_t>(i < deepest ? i : deepest) * a.dv; };
  float state[kDepth];
  WARMLEG_UNROLL
  for (int i = 0; i < kDepth; ++i) state[i] = a.states[slot * a.nv * head_size + corner + at(i)];
  if (slot != a.slot[0]) state[0] = NotANumber();
  const float rate = -expf(ToFloat(a_log[h]));
  const float bias = ToFloat(dt_bias[h]);
  Stage(a, 0, h / a.served, keys[0]);
  BlockSync();
  for (int r = 0; r < a.rows; ++r) {
    const float* k = keys[r % 2].k + part * kDepth;
    const float* q = keys[r % 2].q + part * kDepth;
    Sums& sum = sums[r % 2];
    float seen = 0;
    float kk = 0;
    float qq = 0;
    WARMLEG_UNROLL
    for (int i = 0; i < kDepth; ++i) {
      seen = fmaf(k[i], state[i], seen);
      kk = fmaf(k[i], k[i], kk);
      qq = fmaf(q[i], q[i], qq);
    }
    sum.seen[part][c] = seen;
    if (c == 0) {
      sum.kk[part] = kk;
      sum.qq[part] = qq;
    }
    if (r + 1 < a.rows) Stage(a, r + 1, h / a.served, keys[(r + 1) % 2]);
    BlockSync();
    seen = sum.seen[0][c];
    kk = sum.kk[0];
    qq = sum.qq[0];
    for (int p = 1; p < parts; ++p) {
      seen += sum.seen[p][c];
      kk += sum.kk[p];
      qq += sum.qq[p];
    }
    const float decay = expf(rate * Softplus(a.a[r * a.a_row + h] + bias));
    const float beta = Sigmoid(a.b[r * a.b_row + h]);
    const float k_norm = Rsqrt(kk + 1e-6F);
    const float q_norm = Rsqrt(qq + 1e-6F) * a.q_scale;
    const float value = mine ? a.v.At(r, h)[column] : 0;
    const float change = (value - seen * k_norm * decay) * beta * k_norm;
    float out = 0;
    WARMLEG_UNROLL
    for (int i = 0; i < kDepth; ++i) {
      state[i] = fmaf(k[i], change, state[i] * decay);
      out = fmaf(q[i], state[i], out);
    }
    sum.out[part][c] = out * q_norm;
    if (mine && (a.keep_rows || r + 1 == a.rows)) {
      float* to = a.states + (a.keep_rows ? r : 0) * a.nv * head_size + corner;
      WARMLEG_UNROLL
      for (int i = kDepth - 1; i >= 0; --i) to[at(i)] = state[i];
    }
    BlockSync();
    WriteOut(a, r, h, column, parts, sum);
  }
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
  WithWeight(args.a_log, [&](auto* a_log) {
    WithWeight(args.dt_bias, [&](auto* dt_bias) {
      launch(DeltaRuleKernel<Pointee<decltype(a_log)>, Pointee<decltype(dt_bias)>>,
             Blocks(rule.nv, DivUp(rule.dv, kColumns)), kColumns * DivUp(rule.dk, kDepth), 0, queue, rule,
             a_log, dt_bias);
    });
  });
}

}  // namespace vt::hip::WARMLEG_VENDOR
