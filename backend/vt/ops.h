// The ops of the plain and the DFlash2 chain: one argument struct each. The struct is the contract that the
// CPU reference and every native kernel share.
//
// Rules for every kernel:
//  - float32 arithmetic; weights are bf16 or f32 tensors, activations f32, ids and positions i32;
//  - a row's result is bit-identical whatever the number of rows in the call (1..16): same tiles, same
//  reduction order;
//  - positions, row counts and token ids are read from device memory, so that a captured graph replays at
//  another position;
//  - nothing allocates: temporary memory comes from the queue's scratch.
//
// "in place" tensors are read and written. Strided tensors are marked; all others are contiguous.
// bytes() is the least that must move through device memory: each input read once, each output written once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "backend/vt/tensor.h"

namespace vt {

#define WARMLEG_VT_OPS(X) \
  X(Embedding)            \
  X(RmsNorm)              \
  X(AddRmsNorm)           \
  X(MatMul)               \
  X(SiluMul)              \
  X(Positions)            \
  X(Rope)                 \
  X(PrepareHeads)         \
  X(Attention)            \
  X(CausalConv1d)         \
  X(GatedDeltaRule)       \
  X(CommitConv)           \
  X(CommitDelta)          \
  X(GatedRmsNorm)         \
  X(SigmoidGate)          \
  X(IndexSelect)          \
  X(IndexCopy)            \
  X(CopyRows)             \
  X(DFlashGroupedConv)    \
  X(DFlashBlockAttn)      \
  X(TopKPairs)            \
  X(SelectorEdges)        \
  X(PathWalk)             \
  X(ArgMax)               \
  X(ApplyTemperature)     \
  X(ApplyTopKTopP)        \
  X(Softmax)              \
  X(RandomSample)         \
  X(RejectionSample)      \
  X(AcceptGreedy)

enum class Op : uint8_t {
#define WARMLEG_VT_OP_ENUM(name) name,
  WARMLEG_VT_OPS(WARMLEG_VT_OP_ENUM)
#undef WARMLEG_VT_OP_ENUM
};
#define WARMLEG_VT_OP_LISTED(name) Op::name,
inline constexpr int kOps =
    static_cast<int>(std::initializer_list<Op>{WARMLEG_VT_OPS(WARMLEG_VT_OP_LISTED)}.size());
#undef WARMLEG_VT_OP_LISTED

std::string_view Name(Op op);

inline constexpr int kMaxRows =
    16;  // rows of a verify block; up to here a row's result does not depend on the count

// How MatMul treats its float32 activations when it has more than kMaxRows rows. Up to kMaxRows it is always
// exact.
enum class Precision : uint8_t { exact, bf16 };

// out[r, :] = table[ids[r], :] * scale
struct EmbeddingArgs {
  static constexpr Op kOp = Op::Embedding;
  Tensor table;  // [V, n] bf16 | f32
  Tensor ids;    // [rows] i32
  Tensor out;    // [rows, n] f32
  float scale = 1;
  int64_t bytes() const;
};

// out = x * rsqrt(mean(x^2) + eps) * (one_plus ? 1 + weight : weight), over the last dimension.
struct RmsNormArgs {
  static constexpr Op kOp = Op::RmsNorm;
  Tensor x;       // [rows, n] or [rows, heads, n] f32, strided
  Tensor weight;  // [n] bf16 | f32
  Tensor out;     // as x, strided; may be x itself
  float eps = 0;
  bool one_plus = false;
  int64_t bytes() const;
};

// h += delta; out = rmsnorm(h), as RmsNorm. One pass over the residual stream.
struct AddRmsNormArgs {
  static constexpr Op kOp = Op::AddRmsNorm;
  Tensor h;       // [rows, n] f32, in place
  Tensor delta;   // [rows, n] f32
  Tensor weight;  // [n] bf16 | f32
  Tensor out;     // [rows, n] f32; neither h nor delta. No data: only h is updated (weight is not read)
  float eps = 0;
  bool one_plus = false;
  int64_t bytes() const;
};

// out = x w^T (+ bias) (+ residual); with `norm` of x normalised as by RmsNorm; with silu_mul SiluMul of x
// w^T.
struct MatMulArgs {
  static constexpr Op kOp = Op::MatMul;
  Tensor x;     // [rows, k] f32, rows strided
  Tensor w;     // [n, k] bf16 | f32
  Tensor bias;  // [n] bf16 | f32, or no data
  Tensor out;   // [rows, n] f32, rows strided (not with silu_mul)
  Precision precision = Precision::exact;
  Tensor norm = {};  // [k] bf16 | f32: RmsNorm's weight, or no data
  float eps = 0;     // with norm
  bool one_plus = false;
  Tensor residual = {};   // [rows, n] f32, rows strided, or no data; may be out itself
  bool silu_mul = false;  // w is [2n, k], gate before up; neither bias nor residual
  int64_t bytes() const;
};

// out[r, i] = silu(gate_up[r, i]) * gate_up[r, m + i]
struct SiluMulArgs {
  static constexpr Op kOp = Op::SiluMul;
  Tensor gate_up;  // [rows, 2m] f32
  Tensor out;      // [rows, m] f32
  int64_t bytes() const;
};

// out[r] = start[0] + r
struct PositionsArgs {
  static constexpr Op kOp = Op::Positions;
  Tensor start;  // [1] i32
  Tensor out;    // [rows] i32
  int64_t bytes() const;
};

// Half-split rotation of the first 2 * len(inv_freq) entries of each head, in place:
// (a, b) -> (a cos - b sin, b cos + a sin), angle = float(position) * inv_freq[i], all float32.
struct RopeArgs {
  static constexpr Op kOp = Op::Rope;
  Tensor x;          // [rows, heads, d] f32, strided, in place
  Tensor positions;  // [rows] i32
  Tensor inv_freq;   // [r / 2] f32
  int64_t bytes() const;
};

// Each head of q and k normalised (as RmsNorm) and rotated (as Rope).
struct PrepareHeadsArgs {
  static constexpr Op kOp = Op::PrepareHeads;
  Tensor q;               // [rows, nq, d] f32, strided, in place, or no data
  Tensor k;               // [rows, nkv, d] f32, strided, in place
  Tensor q_norm, k_norm;  // [d] bf16 | f32, both alike
  Tensor positions;       // [rows] i32
  Tensor inv_freq;        // [r / 2] f32
  float eps = 0;
  bool one_plus = false;
  int64_t bytes() const;
};

// Causal softmax attention over the cache: row r sees keys 0..positions[r]. Query head i reads KV head i /
// (nq / nkv).
struct AttentionArgs {
  static constexpr Op kOp = Op::Attention;
  Tensor q;          // [rows, nq, d] f32, strided
  Tensor k, v;       // [capacity, nkv, d] f32: the cache; the rows' own keys are already in it
  Tensor positions;  // [rows] i32, ascending by one
  Tensor out;        // [rows, nq, d] f32
  float scale = 1;
  int64_t bytes() const;  // counts the whole visible context at the capacity's worst case
};

// out[r, c] = silu(sum_j weight[c, j] * x[r - (K - 1) + j, c]); inputs before row 0 come from the state,
// which then holds the last K - 1 inputs. With `hold` it stays as it was: CommitConv follows, when it is
// known how many rows count.
struct CausalConv1dArgs {
  static constexpr Op kOp = Op::CausalConv1d;
  Tensor x;       // [rows, C] f32, rows strided
  Tensor weight;  // [C, K] bf16 | f32; the last tap is the current token
  Tensor state;   // [K - 1, C] f32, in place, oldest input first
  Tensor out;     // [rows, C] f32
  bool hold = false;
  int64_t bytes() const;
};

// The gated delta rule, per value head with state S [dk, dv]; key head j serves value heads j*nv/nk ...
//   q, k: x * rsqrt(sum x^2 + 1e-6) per head, q also / sqrt(dk)
//   beta = sigmoid(b), g = -exp(a_log) * softplus(a + dt_bias)
//   S *= exp(g); d = (v - S^T k) * beta; S += k d^T; out = S^T q
// With `changes` and `decays` S stays as it was and they say what the rows do to it: CommitDelta follows.
struct GatedDeltaRuleArgs {
  static constexpr Op kOp = Op::GatedDeltaRule;
  Tensor q, k;     // [rows, nk, dk] f32, strided
  Tensor v;        // [rows, nv, dv] f32, strided
  Tensor a, b;     // [rows, nv] f32, rows strided
  Tensor a_log;    // [nv] bf16 | f32
  Tensor dt_bias;  // [nv] bf16 | f32
  Tensor state;    // [nv, dk, dv] f32, in place
  Tensor out;      // [rows, nv, dv] f32
  Tensor changes;  // [rows, nv, dv] f32, out: d / |k|, as S += k changes^T with k as given; or no data
  Tensor decays;   // [rows, nv] f32, out: exp(g); with changes
  int64_t bytes() const;
};

// The states of all layers after rows 0 .. last of blocks that CausalConv1d and GatedDeltaRule held: to the
// bit those that the same rows leave one by one. last < 0: no row counts. Rows after `last` are not read.
struct CommitConvArgs {
  static constexpr Op kOp = Op::CommitConv;
  Tensor x;               // [layers, rows, C] f32, strided: as CausalConv1d took it
  Tensor states;          // [layers, K - 1, C] f32, in place
  Tensor last;            // [1] i32
  int64_t bytes() const;  // at all rows
};
struct CommitDeltaArgs {
  static constexpr Op kOp = Op::CommitDelta;
  Tensor k;               // [layers, rows, nk, dk] f32, strided: as GatedDeltaRule took it
  Tensor changes;         // [layers, rows, nv, dv] f32
  Tensor decays;          // [layers, rows, nv] f32
  Tensor states;          // [layers, nv, dk, dv] f32, in place
  Tensor last;            // [1] i32
  int64_t bytes() const;  // at all rows
};

// out = weight * rmsnorm(x) * silu(z), over the last dimension.
struct GatedRmsNormArgs {
  static constexpr Op kOp = Op::GatedRmsNorm;
  Tensor x;       // [rows, heads, d] f32
  Tensor z;       // [rows, heads, d] f32, strided
  Tensor weight;  // [d] bf16 | f32
  Tensor out;     // [rows, heads, d] f32; may be x itself
  float eps = 0;
  int64_t bytes() const;
};

// x *= sigmoid(gate)
struct SigmoidGateArgs {
  static constexpr Op kOp = Op::SigmoidGate;
  Tensor x;     // [rows, heads, d] f32, in place
  Tensor gate;  // [rows, heads, d] f32, strided
  int64_t bytes() const;
};

// out[r, :] = src[index[r], :]
struct IndexSelectArgs {
  static constexpr Op kOp = Op::IndexSelect;
  Tensor src;    // [m, n] f32 | bf16 | i32
  Tensor index;  // [rows] i32
  Tensor out;    // [rows, n], dtype of src
  int64_t bytes() const;
};

// dst[index[r], :] = src[r, :]
struct IndexCopyArgs {
  static constexpr Op kOp = Op::IndexCopy;
  Tensor src;    // [rows, n] f32, rows strided
  Tensor index;  // [rows] i32, no value twice
  Tensor dst;    // [m, n] f32, in place
  int64_t bytes() const;
};

// dst = src; either may have strided rows.
struct CopyRowsArgs {
  static constexpr Op kOp = Op::CopyRows;
  Tensor src;  // [rows, n] or [n], f32 | i32, rows strided
  Tensor dst;  // as src
  int64_t bytes() const;
};

// out[i, c] = sum_t (base[side, t, c] + delta[i, side, t, c / group]) * y[i - t, c] (+ residual[i, c]);
// rows before the block are 0.
struct DFlashGroupedConvArgs {
  static constexpr Op kOp = Op::DFlashGroupedConv;
  Tensor y;         // [rows, h] f32
  Tensor base;      // [2, taps, h] bf16 | f32
  Tensor delta;     // [rows, 2, taps, h / group] f32
  Tensor residual;  // [rows, h] f32, or no data; may be out itself
  Tensor out;       // [rows, h] f32; not y
  int side = 0;     // 0 before the mixer, 1 after it
  int64_t bytes() const;
};

// Attention of one draft block over the context before it and over itself.
// With p = start[0], query i at p + i: context key j < p is visible when window == 0 or p + i - j < window;
// block key m when (not causal or m <= i) and (window == 0 or |i - m| < window).
struct DFlashBlockAttnArgs {
  static constexpr Op kOp = Op::DFlashBlockAttn;
  Tensor q;                 // [rows, nq, d] f32, strided
  Tensor k_block, v_block;  // [rows, nkv, d] f32, strided
  Tensor k_ctx, v_ctx;      // [capacity, nkv, d] f32; paged: [pages * page_size, nkv, d]
  Tensor pages;             // [n] i32: logical page i stands at physical page pages[i]; no data: contiguous
  Tensor start;             // [1] i32: number of context rows, position of row 0
  Tensor out;               // [rows, nq, d] f32
  float scale = 1;
  bool causal = false;
  int window = 0;     // 0: the whole context
  int page_size = 0;  // rows a page, when pages has data
  int64_t bytes() const;
};

// z = x * multiplier, then softcap > 0: tanh(z / softcap) * softcap; the k largest in descending order, ties
// to the lower id.
struct TopKPairsArgs {
  static constexpr Op kOp = Op::TopKPairs;
  Tensor x;       // [rows, V] f32, rows strided
  Tensor values;  // [rows, k] f32
  Tensor ids;     // [rows, k] i32
  float multiplier = 1;
  float softcap = 0;  // 0: off
  int64_t bytes() const;
};

// edges[t, i, j] = values[t, j] + sum_r P[a, r] * hidden[t, r] * S[ids[t, j], r] with a = ids[t - 1, i]; t =
// 0: a = anchor[0], in edges[0, 0, :] alone (the other i of t = 0 are not written).
struct SelectorEdgesArgs {
  static constexpr Op kOp = Op::SelectorEdges;
  Tensor values;       // [rows, k] f32: unary logits of the candidates
  Tensor ids;          // [rows, k] i32
  Tensor hidden;       // [rows, r] f32: hidden_projection applied
  Tensor predecessor;  // P: [V, r] bf16 | f32
  Tensor successor;    // S: [V, r] bf16 | f32
  Tensor anchor;       // [1] i32
  Tensor edges;        // [rows, k, k] f32
  int64_t bytes() const;
};

// Where the random numbers of a row come from: row r decides the token at position[0] + offset + r.
struct Draws {
  Tensor seed;      // [3] i32: low and high word of the seed, request (index of the prompt, 0 in generate)
  Tensor position;  // [1] i32
  int32_t offset = 0;
};

// The walk over the candidates; drafted[t] is the token chosen at row t.
// Without q, greedy: the best edge from the candidate chosen before (ties: lower rank, that is the candidate
// earlier in ids). With q, sampled: argmax(edge / temperature + gumbel), purpose draft, and q[t, :] is the
// distribution it was drawn from: softmax(edge / temperature) over the k candidates.
struct PathWalkArgs {
  static constexpr Op kOp = Op::PathWalk;
  Tensor edges;           // [rows, k, k] f32
  Tensor ids;             // [rows, k] i32
  Tensor drafted;         // [rows] i32
  Tensor q = {};          // [rows, k] f32, or no data
  Draws draws = {};       // with q
  float temperature = 0;  // with q; > 0
  int64_t bytes() const;
};

// out[r] = index of the largest x[r, :], ties to the lowest.
struct ArgMaxArgs {
  static constexpr Op kOp = Op::ArgMax;
  Tensor x;    // [rows, V] f32, rows strided
  Tensor out;  // [rows] i32
  int64_t bytes() const;
};

// out = x / temperature
struct ApplyTemperatureArgs {
  static constexpr Op kOp = Op::ApplyTemperature;
  Tensor x;               // [rows, V] f32, rows strided
  Tensor out;             // as x; may be x itself
  float temperature = 1;  // > 0
  int64_t bytes() const;
};

// x = -inf for every token that is not among the top_k best of its row (0: all), and of those beyond the
// shortest prefix, best first, whose softmax mass reaches top_p (1: all). Ties: the lower index is better.
// The best token stays. The arithmetic is sampler.h's.
struct ApplyTopKTopPArgs {
  static constexpr Op kOp = Op::ApplyTopKTopP;
  Tensor x;  // [rows, V] f32, rows strided, in place
  int64_t top_k = 0;
  float top_p = 1;
  int64_t bytes() const;
};

// out = softmax(x) over the last dimension, by the masses of sampler.h: the same bits on every device.
struct SoftmaxArgs {
  static constexpr Op kOp = Op::Softmax;
  Tensor x;    // [rows, V] f32, rows strided
  Tensor out;  // as x; may be x itself
  int64_t bytes() const;
};

// Which half of a split RandomSample to run. Tests overlap the halves of several queues.
enum class SamplePhase : uint8_t { both, partials, combine };

// out[r] = argmax(x[r, :] + gumbel), purpose sample, ties to the lowest index. Split over blocks: the
// partials phase writes the best (score, index) of each block to the queue's scratch, the combine phase takes
// the best of those; no split changes the result. One block, and the cpu, do all in the combine phase.
struct RandomSampleArgs {
  static constexpr Op kOp = Op::RandomSample;
  Tensor x;    // [rows, V] f32, rows strided: logits after temperature, top-k and top-p
  Tensor out;  // [rows] i32
  Draws draws;
  int blocks = 0;  // of a row; 0: the kernel chooses
  SamplePhase phase = SamplePhase::both;
  int64_t bytes() const;
};

// What the target says to each draft of a sampled round, for AcceptGreedy: draft t survives with probability
// min(1, p / q) (purpose accept); target[t] is then the draft itself. The first that does not is replaced by
// a token drawn from the normalised positive part of p - q (purpose resample), never the draft; when all
// survive, the last target is the bonus token. What follows a replaced draft is -1.
struct RejectionSampleArgs {
  static constexpr Op kOp = Op::RejectionSample;
  Tensor block;   // [rows] i32: anchor, then the drafts; rows >= 2
  Tensor p;       // [rows - 1, V] f32, rows strided: the target's distribution where each draft stands
  Tensor q;       // [rows - 1, k] f32: what PathWalk drew the drafts from; 0 for every other token
  Tensor ids;     // [rows - 1, k] i32: the candidates, no id twice in a row
  Tensor bonus;   // [1] i32: the token drawn after the last draft
  Tensor target;  // [rows] i32, out
  Draws draws;
  int64_t bytes() const;  // at the one row that a replacement reads
};

// The end of a round. accepted = how many drafts equal the target's choice before the first that does not;
// the new tokens are those drafts and the target's next token, cut at `limit` positions and then after the
// first stop token. Greedy: the choice is the argmax; sampled: RejectionSample's.
//   position += emitted; last = emitted - 1; newest = last new token
//   result = [accepted, emitted, new tokens..., (rest untouched)]
struct AcceptGreedyArgs {
  static constexpr Op kOp = Op::AcceptGreedy;
  Tensor block;     // [rows] i32: anchor, then the drafts
  Tensor target;    // [rows] i32: the target's choice of each row
  Tensor stop_ids;  // [n] i32, or no data
  Tensor limit;     // [1] i32: prompt + max_new_tokens; position + 1 < limit holds
  Tensor position;  // [1] i32, in place: position of the anchor
  Tensor last;      // [1] i32, out: the last row that counts, negative when none does
  Tensor newest;    // [1] i32, out; may be block's row 0: every input is read before anything is written
  Tensor result;    // [2 + kMaxRows] i32, out
  int64_t bytes() const;
};

}  // namespace vt
