// GatedDeltaRule over chunks of kChunk tokens (UT transform: Yang et al., "Parallelizing linear transformers
// with the delta rule over sequence length", 2024; with decays: "Gated delta networks", 2024). With S the
// state before a chunk, D(i, j) = exp(sum of g over j < l <= i), e_i the decay from the chunk's start to i:
//   T = (I + strictly lower part of beta_i D(i, j) k_i.k_j)^-1     changes = T diag(beta) (V - diag(e) K S)
//   P = lower part of D(i, j) q_i.k_j                               out = diag(e) Q S + P changes
//   S' = e_last S + sum over j of D(last, j) k_j changes_j^T
// Each D is the exponential of a sum of its own g, all <= 0: nothing overflows and nothing cancels. The
// entries of T are at most 1, since a token's change of the state never lengthens it.
// Decomposition: ChunkKernel, a block a chunk and value head, all at once: T diag(beta), P, decays and norms
// into scratch. PassKernel, a block kColumns columns of a head's state, kept in registers with a copy in
// shared memory, over the chunks in order; the next chunk's q and k are on the way while one is worked on.
// Bytes: q and k once a block (of a head: dv / kColumns), v and out once, the state once in and once out,
// 2.3 KB of scratch a chunk and head. Flops: 6 dk dv + 4 kChunk dv a token and head. Bound: multiply-adds.
#include "backend/hip/delta_rule.h"
#include "backend/vt/scratch.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kChunk = 16;    // tokens
constexpr int kColumns = 32;  // of the state, of one block
constexpr int kBlock = 256;
constexpr int kPitch = kChunkedDepth + 4;  // 16-byte aligned, neighbouring rows on other banks
constexpr int kStaged = kChunk * kChunkedDepth / kBlock;

// What the pass needs to know of a chunk; rows past the end have beta, g, k and q 0.
struct alignas(16) Chunk {
  float change[kChunk * kChunk];  // T diag(beta), [token][token]
  float out[kChunk * kChunk];     // P
  float decay[kChunk];            // e
  float rest[kChunk];             // D(last, i)
  float k_norm[kChunk], q_norm[kChunk];
};
constexpr int kChunkFloats = sizeof(Chunk) / sizeof(float);

// Raw q and k of a chunk.
struct alignas(16) Rows {
  float k[kChunk * kPitch], q[kChunk * kPitch];
};

__device__ float Dot(const float* x, const float* y, int depth) {
  float sum = 0;
  for (int c = 0; c < depth; c += 4) {
    const auto a = *reinterpret_cast<const Vec<float, 4>*>(x + c);
    const auto b = *reinterpret_cast<const Vec<float, 4>*>(y + c);
    WARMLEG_UNROLL
    for (int e = 0; e < 4; ++e) sum = fmaf(a.at[e], b.at[e], sum);
  }
  return sum;
}

// Column `column` of (I + lower)^-1, from the top.
__device__ void Solve(const float* lower, int column, float (&x)[kChunk]) {
  WARMLEG_UNROLL
  for (int i = 0; i < kChunk; ++i) {
    float sum = 0;
    WARMLEG_UNROLL
    for (int l = 0; l < i; ++l) sum = fmaf(lower[i * kChunk + l], x[l], sum);
    x[i] = i < column ? 0 : i == column ? 1 : -sum;
  }
}

template <class A, class B>
__global__ void __launch_bounds__(kBlock)
    ChunkKernel(Rule a, const A* a_log, const B* dt_bias, Chunk* chunks) {
  StartInOrder();
  WARMLEG_SHARED(Rows, rows, [1]);
  WARMLEG_SHARED(float, lower, [kChunk * kChunk]);
  WARMLEG_SHARED(float, k_norm, [kChunk]);
  WARMLEG_SHARED(float, q_norm, [kChunk]);
  WARMLEG_SHARED(float, g, [kChunk]);
  WARMLEG_SHARED(float, beta, [kChunk]);
  const int h = BlockY();
  const int first = BlockX() * kChunk;
  const int present = a.rows - first < kChunk ? a.rows - first : kChunk;
  const int depth = DivUp(a.dk, 4) * 4;
  Chunk& to = chunks[static_cast<int64_t>(BlockX()) * a.nv + h];
  for (int n = Thread(); n < kChunk * kChunkedDepth; n += kBlock) {
    const int r = n / kChunkedDepth;
    const int c = n % kChunkedDepth;
    const bool is = r < present && c < a.dk;
    rows[0].k[r * kPitch + c] = is ? a.k.At(first + r, h / a.served)[c] : 0;
    rows[0].q[r * kPitch + c] = is ? a.q.At(first + r, h / a.served)[c] : 0;
  }
  if (Thread() < kChunk) {
    const int r = first + Thread();
    const bool is = Thread() < present;
    g[Thread()] = is ? -expf(ToFloat(a_log[h])) * Softplus(a.a[r * a.a_row + h] + ToFloat(dt_bias[h])) : 0;
    beta[Thread()] = is ? Sigmoid(a.b[r * a.b_row + h]) : 0;
  }
  BlockSync();
  const int i = Thread() / kChunk;
  const int j = Thread() % kChunk;
  const float* k = rows[0].k;
  const float* q = rows[0].q;
  const float kk = Dot(k + i * kPitch, k + j * kPitch, depth);
  const float qk = Dot(q + i * kPitch, k + j * kPitch, depth);
  if (i == j) {
    k_norm[i] = Rsqrt(kk + 1e-6F);
    q_norm[i] = Rsqrt(Dot(q + i * kPitch, q + i * kPitch, depth) + 1e-6F) * a.q_scale;
  }
  BlockSync();
  float between = 0;
  for (int l = j + 1; l <= i; ++l) between += g[l];
  const float decay = expf(between);
  lower[i * kChunk + j] = j < i ? beta[i] * decay * (kk * k_norm[i] * k_norm[j]) : 0;
  to.out[i * kChunk + j] = j <= i ? decay * (qk * q_norm[i] * k_norm[j]) : 0;
  if (i == kChunk - 1) to.rest[j] = decay;
  if (Thread() < kChunk) {
    float since = 0;
    for (int l = 0; l <= Thread(); ++l) since += g[l];
    to.decay[Thread()] = expf(since);
    to.k_norm[Thread()] = k_norm[Thread()];
    to.q_norm[Thread()] = q_norm[Thread()];
  }
  BlockSync();
  if (Thread() >= kChunk) return;
  float x[kChunk];
  Solve(lower, Thread(), x);
  WARMLEG_UNROLL
  for (int t = 0; t < kChunk; ++t) to.change[t * kChunk + Thread()] = x[t] * beta[Thread()];
}

struct Pass {
  Rows rows;  // normalised
  float state[kChunkedDepth * kColumns];
  float value[kChunk * kColumns];   // V - diag(e) K S
  float change[kChunk * kColumns];  // of the tokens
  float late[kChunk * kColumns];    // the same as it reaches the chunk's end
  Chunk chunk;
};

// A thread's part of the products: two tokens of k (first half of the block) or q, two columns.
struct Place {
  int token, column;
  bool is_q;
};

// q and k of the chunk at row `first`, from memory into registers.
__device__ void Fetch(const Rule& a, int first, int key_head, float (&k)[kStaged], float (&q)[kStaged]) {
  const int c = Thread() % kChunkedDepth;
  WARMLEG_UNROLL
  for (int n = 0; n < kStaged; ++n) {
    const int r = first + Thread() / kChunkedDepth + n * (kBlock / kChunkedDepth);
    const bool is = r < a.rows && c < a.dk;
    k[n] = is ? a.k.At(r, key_head)[c] : 0;
    q[n] = is ? a.q.At(r, key_head)[c] : 0;
  }
}

__device__ void Stage(const Chunk& chunk, const float (&k)[kStaged], const float (&q)[kStaged], Rows& to) {
  const int c = Thread() % kChunkedDepth;
  WARMLEG_UNROLL
  for (int n = 0; n < kStaged; ++n) {
    const int r = Thread() / kChunkedDepth + n * (kBlock / kChunkedDepth);
    to.k[r * kPitch + c] = k[n] * chunk.k_norm[r];
    to.q[r * kPitch + c] = q[n] * chunk.q_norm[r];
  }
}

// sum[m][u] = rows of k or q times columns of the state, decayed from the chunk's start.
__device__ void Products(const Pass& s, const Place& at, int depth, float (&sum)[2][2]) {
  const float* x = (at.is_q ? s.rows.q : s.rows.k) + at.token * kPitch;
  const float* state = s.state + at.column;
  for (int d = 0; d < depth; d += 4) {
    const auto x0 = *reinterpret_cast<const Vec<float, 4>*>(x + d);
    const auto x1 = *reinterpret_cast<const Vec<float, 4>*>(x + kPitch + d);
    WARMLEG_UNROLL
    for (int e = 0; e < 4; ++e) {
      const auto of = *reinterpret_cast<const Vec<float, 2>*>(state + (d + e) * kColumns);
      WARMLEG_UNROLL
      for (int u = 0; u < 2; ++u) {
        sum[0][u] = fmaf(x0.at[e], of.at[u], sum[0][u]);
        sum[1][u] = fmaf(x1.at[e], of.at[u], sum[1][u]);
      }
    }
  }
  WARMLEG_UNROLL
  for (int u = 0; u < 2; ++u) {
    sum[0][u] *= s.chunk.decay[at.token];
    sum[1][u] *= s.chunk.decay[at.token + 1];
  }
}

// changes = T diag(beta) (V - diag(e) K S): one token, two columns a thread.
__device__ void Changes(Pass& s) {
  const int token = Thread() / (kColumns / 2);
  const int column = Thread() % (kColumns / 2) * 2;
  float sum[2] = {};
  WARMLEG_UNROLL
  for (int j = 0; j < kChunk; ++j) {
    const float weight = s.chunk.change[token * kChunk + j];
    sum[0] = fmaf(weight, s.value[j * kColumns + column], sum[0]);
    sum[1] = fmaf(weight, s.value[j * kColumns + column + 1], sum[1]);
  }
  WARMLEG_UNROLL
  for (int u = 0; u < 2; ++u) {
    s.change[token * kColumns + column + u] = sum[u];
    s.late[token * kColumns + column + u] = sum[u] * s.chunk.rest[token];
  }
}

// out = diag(e) Q S (already in `sum`) + P changes.
__device__ void WriteOut(const Rule& a, const Pass& s, const Place& at, int first, int h, int column0,
                         float (&sum)[2][2]) {
  WARMLEG_UNROLL
  for (int j = 0; j < kChunk; ++j) {
    WARMLEG_UNROLL
    for (int m = 0; m < 2; ++m) {
      const float weight = s.chunk.out[(at.token + m) * kChunk + j];
      WARMLEG_UNROLL
      for (int u = 0; u < 2; ++u) {
        sum[m][u] = fmaf(weight, s.change[j * kColumns + at.column + u], sum[m][u]);
      }
    }
  }
  for (int m = 0; m < 2; ++m) {
    const int r = first + at.token + m;
    for (int u = 0; u < 2; ++u) {
      const int column = column0 + at.column + u;
      if (r < a.rows && column < a.dv)
        a.out[(static_cast<int64_t>(r) * a.nv + h) * a.dv + column] = sum[m][u];
    }
  }
}

// The thread's 4 x 4 entries of the state at the chunk's end.
__device__ void Advance(const Pass& s, int depth, int column, float (&state)[4][4]) {
  WARMLEG_UNROLL
  for (int d = 0; d < 4; ++d) {
    WARMLEG_UNROLL
    for (int u = 0; u < 4; ++u) state[d][u] *= s.chunk.decay[kChunk - 1];
  }
  for (int j = 0; j < kChunk; ++j) {
    const auto k = *reinterpret_cast<const Vec<float, 4>*>(s.rows.k + j * kPitch + depth);
    const auto change = *reinterpret_cast<const Vec<float, 4>*>(s.late + j * kColumns + column);
    WARMLEG_UNROLL
    for (int d = 0; d < 4; ++d) {
      WARMLEG_UNROLL
      for (int u = 0; u < 4; ++u) state[d][u] = fmaf(k.at[d], change.at[u], state[d][u]);
    }
  }
}

__global__ void __launch_bounds__(kBlock) PassKernel(Rule a, const Chunk* chunks) {
  StartInOrder();
  WARMLEG_SHARED(Pass, shared, [1]);
  Pass& s = shared[0];
  const int h = BlockX();
  const int column0 = BlockY() * kColumns;
  const int half = Thread() % (kBlock / 2);
  const Place at = {half / (kColumns / 2) * 2, half % (kColumns / 2) * 2, Thread() >= kBlock / 2};
  const int own_depth = Thread() / (kColumns / 4) * 4;  // of the state
  const int own_column = Thread() % (kColumns / 4) * 4;
  const int depth = DivUp(a.dk, 4) * 4;
  const int64_t head_size = static_cast<int64_t>(a.dk) * a.dv;
  const auto entry = [&](int d, int u) {
    return static_cast<int64_t>(own_depth + d) * a.dv + column0 + own_column + u;
  };
  const auto is_entry = [&](int d, int u) { return own_depth + d < a.dk && column0 + own_column + u < a.dv; };
  float state[4][4];
  float* const own = a.state + h * head_size;
  WARMLEG_UNROLL
  for (int d = 0; d < 4; ++d) {
    WARMLEG_UNROLL
    for (int u = 0; u < 4; ++u) {
      state[d][u] = is_entry(d, u) ? own[entry(d, u)] : 0;
    }
  }
  float k[kStaged];
  float q[kStaged];
  Fetch(a, 0, h / a.served, k, q);
  for (int first = 0; first < a.rows; first += kChunk) {
    const auto* chunk =
        reinterpret_cast<const float*>(chunks + static_cast<int64_t>(first / kChunk) * a.nv + h);
    BlockSync();  // the last chunk is done with
    for (int i = Thread(); i < kChunkFloats; i += kBlock) reinterpret_cast<float*>(&s.chunk)[i] = chunk[i];
    WARMLEG_UNROLL
    for (int d = 0; d < 4; ++d) {
      WARMLEG_UNROLL
      for (int u = 0; u < 4; ++u) s.state[(own_depth + d) * kColumns + own_column + u] = state[d][u];
    }
    float value[2][2];
    WARMLEG_UNROLL
    for (int m = 0; m < 2; ++m) {
      const int r = first + at.token + m;
      WARMLEG_UNROLL
      for (int u = 0; u < 2; ++u) {
        const int column = column0 + at.column + u;
        value[m][u] = !at.is_q && r < a.rows && column < a.dv ? a.v.At(r, h)[column] : 0;
      }
    }
    BlockSync();
    Stage(s.chunk, k, q, s.rows);
    BlockSync();
    Fetch(a, first + kChunk, h / a.served, k, q);
    float sum[2][2] = {};
    Products(s, at, depth, sum);
    if (!at.is_q) {
      WARMLEG_UNROLL
      for (int m = 0; m < 2; ++m) {
        WARMLEG_UNROLL
        for (int u = 0; u < 2; ++u) {
          s.value[(at.token + m) * kColumns + at.column + u] = value[m][u] - sum[m][u];
        }
      }
    }
    BlockSync();
    Changes(s);
    BlockSync();
    if (at.is_q) WriteOut(a, s, at, first, h, column0, sum);
    Advance(s, own_depth, own_column, state);
  }
  WARMLEG_UNROLL
  for (int d = 0; d < 4; ++d) {
    WARMLEG_UNROLL
    for (int u = 0; u < 4; ++u) {
      if (is_entry(d, u)) own[entry(d, u)] = state[d][u];
    }
  }
}

}  // namespace

void DeltaRuleChunks(Queue& queue, const Rule& rule, const GatedDeltaRuleArgs& args) {
  const int count = DivUp(rule.rows, kChunk);
  auto* chunks = Scratch<Chunk>(queue, "GatedDeltaRule.chunks", static_cast<size_t>(count) * rule.nv);
  WithWeight(args.a_log, [&](auto* a_log) {
    WithWeight(args.dt_bias, [&](auto* dt_bias) {
      launch_early(ChunkKernel<Pointee<decltype(a_log)>, Pointee<decltype(dt_bias)>>, Blocks(count, rule.nv),
                   kBlock, 0, queue, rule, a_log, dt_bias, chunks);
    });
  });
  launch_early(PassKernel, Blocks(rule.nv, DivUp(rule.dv, kColumns)), kBlock, 0, queue, rule, chunks);
}

}  // namespace vt::hip::WARMLEG_VENDOR
