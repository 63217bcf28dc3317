#include "backend/vt/check.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace vt {

namespace {

enum class Layout { contiguous, strided };

constexpr unsigned Bit(DType type) { return 1U << static_cast<unsigned>(type); }
constexpr unsigned kF32 = Bit(DType::f32);
constexpr unsigned kI32 = Bit(DType::i32);
constexpr unsigned kWeight = Bit(DType::f32) | Bit(DType::bf16);

// Collects what is wrong; allocates only when something is.
class Checker {
 public:
  explicit Checker(Op op) : op_(op) {}

  // `shape` -1: any size. Every dimension is at least 1.
  void Is(const char* name, const Tensor& t, std::initializer_list<int64_t> shape, unsigned dtypes = kF32,
          Layout layout = Layout::contiguous) {
    if (t.data == nullptr) return Fault(fmt::format("{} has no data", name));
    bool ok = t.rank == static_cast<int>(shape.size()) && (Bit(t.dtype) & dtypes) != 0;
    int i = 0;
    for (const int64_t n : shape) {
      if (i >= t.rank) break;
      ok = ok && t.dim(i) >= 1 && (n < 0 || t.dim(i) == n);
      ++i;
    }
    if (!ok) return Fault(fmt::format("{} is {}, expected {}", name, ShapeText(t), Expected(shape, dtypes)));
    const bool last = t.dim(t.rank - 1) == 1 || t.step(t.rank - 1) == 1;
    if (!last || (layout == Layout::contiguous && !t.contiguous())) {
      Fault(fmt::format("{} {} is not contiguous", name, ShapeText(t)));
    }
  }

  void Require(bool ok, const char* what) {
    if (!ok) Fault(what);
  }

  void Done() const {
    if (!faults_.empty())
      throw std::logic_error(fmt::format("op {}: {}", Name(op_), fmt::join(faults_, "; ")));
  }

 private:
  static std::string Expected(std::initializer_list<int64_t> shape, unsigned dtypes) {
    std::vector<std::string> dims;
    for (const int64_t n : shape) dims.push_back(n < 0 ? "*" : std::to_string(n));
    std::vector<std::string_view> types;
    for (const DType type : {DType::f32, DType::bf16, DType::i32}) {
      if ((Bit(type) & dtypes) != 0) types.push_back(Name(type));
    }
    return fmt::format("[{}] {}", fmt::join(dims, ", "), fmt::join(types, " or "));
  }

  void Fault(std::string text) { faults_.push_back(std::move(text)); }

  Op op_;
  std::vector<std::string> faults_;
};

// 0 when the tensor has no such dimension, so that a wrong rank is reported by Is and not by an index.
int64_t Dim(const Tensor& t, int i) { return i < t.rank ? t.dim(i) : 0; }

void CheckDraws(Checker& c, const Draws& draws) {
  c.Is("draws.seed", draws.seed, {3}, kI32);
  c.Is("draws.position", draws.position, {1}, kI32);
}

void CheckVocabulary(Checker& c, const Tensor& x) {
  c.Require(Dim(x, 1) <= kMaxSampledVocabulary, "a row is larger than 2^18");
}

// A verify block.
void CheckBlock(Checker& c, int64_t rows) { c.Require(rows <= kMaxRows, "a block has more than 16 rows"); }

}  // namespace

void Check(const EmbeddingArgs& a) {
  Checker c(a.kOp);
  c.Is("table", a.table, {-1, -1}, kWeight);
  c.Is("ids", a.ids, {-1}, kI32);
  c.Is("out", a.out, {Dim(a.ids, 0), Dim(a.table, 1)});
  c.Done();
}

void Check(const RmsNormArgs& a) {
  Checker c(a.kOp);
  const int64_t n = Dim(a.x, a.x.rank - 1);
  if (a.x.rank == 3) {
    c.Is("x", a.x, {-1, -1, -1}, kF32, Layout::strided);
    c.Is("out", a.out, {Dim(a.x, 0), Dim(a.x, 1), n}, kF32, Layout::strided);
  } else {
    c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
    c.Is("out", a.out, {Dim(a.x, 0), n}, kF32, Layout::strided);
  }
  c.Is("weight", a.weight, {n}, kWeight);
  c.Done();
}

void Check(const AddRmsNormArgs& a) {
  Checker c(a.kOp);
  const int64_t rows = Dim(a.h, 0);
  const int64_t n = Dim(a.h, 1);
  c.Is("h", a.h, {-1, -1});
  c.Is("delta", a.delta, {rows, n});
  if (a.out) {
    c.Is("weight", a.weight, {n}, kWeight);
    c.Is("out", a.out, {rows, n});
    c.Require(a.out.data != a.h.data && a.out.data != a.delta.data, "out must be neither h nor delta");
  }
  c.Done();
}

void Check(const MatMulArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  c.Is("w", a.w, {-1, Dim(a.x, 1)}, kWeight);
  if (a.bias) c.Is("bias", a.bias, {Dim(a.w, 0)}, kWeight);
  c.Is("out", a.out, {Dim(a.x, 0), a.silu_mul ? Dim(a.w, 0) / 2 : Dim(a.w, 0)}, kF32,
       a.silu_mul ? Layout::contiguous : Layout::strided);
  c.Require(!a.silu_mul || Dim(a.w, 0) % 2 == 0, "silu_mul needs an even number of outputs");
  c.Require(!a.silu_mul || (!a.bias && !a.residual), "silu_mul takes neither bias nor residual");
  if (a.norm) c.Is("norm", a.norm, {Dim(a.x, 1)}, kWeight);
  if (a.residual) c.Is("residual", a.residual, {Dim(a.x, 0), Dim(a.w, 0)}, kF32, Layout::strided);
  c.Done();
}

void Check(const SiluMulArgs& a) {
  Checker c(a.kOp);
  c.Is("out", a.out, {-1, -1});
  c.Is("gate_up", a.gate_up, {Dim(a.out, 0), 2 * Dim(a.out, 1)});
  c.Done();
}

void Check(const PositionsArgs& a) {
  Checker c(a.kOp);
  c.Is("start", a.start, {1}, kI32);
  c.Is("out", a.out, {-1}, kI32);
  c.Done();
}

void Check(const RopeArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1, -1}, kF32, Layout::strided);
  c.Is("positions", a.positions, {Dim(a.x, 0)}, kI32);
  c.Is("inv_freq", a.inv_freq, {-1});
  c.Require(2 * Dim(a.inv_freq, 0) <= Dim(a.x, 2), "inv_freq is longer than half a head");
  c.Require(Dim(a.x, 2) <= kMaxHeadDim, "a head of x is larger than 512");
  c.Done();
}

void Check(const PrepareHeadsArgs& a) {
  Checker c(a.kOp);
  const int64_t rows = Dim(a.k, 0);
  const int64_t d = Dim(a.k, 2);
  c.Is("k", a.k, {-1, -1, -1}, kF32, Layout::strided);
  c.Is("k_norm", a.k_norm, {d}, kWeight);
  if (a.q) {
    c.Is("q", a.q, {rows, -1, d}, kF32, Layout::strided);
    c.Is("q_norm", a.q_norm, {d}, Bit(a.k_norm.dtype));
  }
  c.Is("positions", a.positions, {rows}, kI32);
  c.Is("inv_freq", a.inv_freq, {-1});
  c.Require(2 * Dim(a.inv_freq, 0) <= d, "inv_freq is longer than half a head");
  c.Require(d <= kMaxHeadDim, "a head is larger than 512");
  c.Done();
}

void Check(const AttentionArgs& a) {
  Checker c(a.kOp);
  const int64_t d = Dim(a.q, 2);
  c.Is("q", a.q, {-1, -1, -1}, kF32, Layout::strided);
  c.Is("k", a.k, {-1, -1, d});
  c.Is("v", a.v, {Dim(a.k, 0), Dim(a.k, 1), d});
  c.Is("positions", a.positions, {Dim(a.q, 0)}, kI32);
  c.Is("out", a.out, {Dim(a.q, 0), Dim(a.q, 1), d});
  c.Require(Dim(a.k, 1) > 0 && Dim(a.q, 1) % Dim(a.k, 1) == 0, "query heads are not a multiple of KV heads");
  c.Require(d <= kMaxHeadDim, "a head is larger than 512");
  c.Done();
}

void Check(const CausalConv1dArgs& a) {
  Checker c(a.kOp);
  const int64_t channels = Dim(a.x, 1);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  c.Is("weight", a.weight, {channels, -1}, kWeight);
  c.Require(Dim(a.weight, 1) >= 2 && Dim(a.weight, 1) <= kMaxConvTaps, "weight has not 2 to 16 taps");
  c.Is("state", a.state, {Dim(a.weight, 1) - 1, channels});
  c.Is("out", a.out, {Dim(a.x, 0), channels});
  c.Require(a.out.data != a.x.data, "out must not be x");
  if (a.hold) CheckBlock(c, Dim(a.x, 0));
  c.Done();
}

void Check(const GatedDeltaRuleArgs& a) {
  Checker c(a.kOp);
  const int64_t rows = Dim(a.q, 0);
  const int64_t nk = Dim(a.q, 1);
  const int64_t dk = Dim(a.q, 2);
  const int64_t nv = Dim(a.v, 1);
  const int64_t dv = Dim(a.v, 2);
  c.Is("q", a.q, {-1, -1, -1}, kF32, Layout::strided);
  c.Is("k", a.k, {rows, nk, dk}, kF32, Layout::strided);
  c.Is("v", a.v, {rows, -1, -1}, kF32, Layout::strided);
  c.Is("a", a.a, {rows, nv}, kF32, Layout::strided);
  c.Is("b", a.b, {rows, nv}, kF32, Layout::strided);
  c.Is("a_log", a.a_log, {nv}, kWeight);
  c.Is("dt_bias", a.dt_bias, {nv}, kWeight);
  c.Is("state", a.state, {nv, dk, dv});
  c.Is("out", a.out, {rows, nv, dv});
  if (a.changes || a.decays) {
    c.Is("changes", a.changes, {rows, nv, dv});
    c.Is("decays", a.decays, {rows, nv});
    CheckBlock(c, rows);
  }
  c.Require(nk > 0 && nv % nk == 0, "value heads are not a multiple of key heads");
  c.Require(dk <= kMaxHeadDim && dv <= kMaxHeadDim, "a head is larger than 512");
  c.Done();
}

void Check(const CommitConvArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1, -1}, kF32, Layout::strided);
  c.Is("states", a.states, {Dim(a.x, 0), -1, Dim(a.x, 2)});
  c.Is("last", a.last, {1}, kI32);
  c.Require(Dim(a.states, 1) < kMaxConvTaps, "states are of more than 16 taps");
  CheckBlock(c, Dim(a.x, 1));
  c.Done();
}

void Check(const CommitDeltaArgs& a) {
  Checker c(a.kOp);
  const int64_t layers = Dim(a.k, 0);
  const int64_t rows = Dim(a.k, 1);
  const int64_t nk = Dim(a.k, 2);
  const int64_t nv = Dim(a.changes, 2);
  c.Is("k", a.k, {-1, -1, -1, -1}, kF32, Layout::strided);
  c.Is("changes", a.changes, {layers, rows, -1, -1});
  c.Is("decays", a.decays, {layers, rows, nv});
  c.Is("states", a.states, {layers, nv, Dim(a.k, 3), Dim(a.changes, 3)});
  c.Is("last", a.last, {1}, kI32);
  c.Require(nk > 0 && nv % nk == 0, "value heads are not a multiple of key heads");
  c.Require(Dim(a.k, 3) <= kMaxHeadDim && Dim(a.changes, 3) <= kMaxHeadDim, "a head is larger than 512");
  CheckBlock(c, rows);
  c.Done();
}

void Check(const GatedRmsNormArgs& a) {
  Checker c(a.kOp);
  const int64_t d = Dim(a.x, 2);
  c.Is("x", a.x, {-1, -1, -1});
  c.Is("z", a.z, {Dim(a.x, 0), Dim(a.x, 1), d}, kF32, Layout::strided);
  c.Is("weight", a.weight, {d}, kWeight);
  c.Require(d <= kMaxHeadDim, "a head of x is larger than 512");
  c.Is("out", a.out, {Dim(a.x, 0), Dim(a.x, 1), d});
  c.Done();
}

void Check(const SigmoidGateArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1, -1});
  c.Is("gate", a.gate, {Dim(a.x, 0), Dim(a.x, 1), Dim(a.x, 2)}, kF32, Layout::strided);
  c.Done();
}

void Check(const IndexSelectArgs& a) {
  Checker c(a.kOp);
  c.Is("src", a.src, {-1, -1}, kWeight | kI32);
  c.Is("index", a.index, {-1}, kI32);
  c.Is("out", a.out, {Dim(a.index, 0), Dim(a.src, 1)}, Bit(a.src.dtype));
  c.Done();
}

void Check(const IndexCopyArgs& a) {
  Checker c(a.kOp);
  c.Is("src", a.src, {-1, -1}, kF32, Layout::strided);
  c.Is("index", a.index, {Dim(a.src, 0)}, kI32);
  c.Is("dst", a.dst, {-1, Dim(a.src, 1)});
  c.Done();
}

void Check(const CopyRowsArgs& a) {
  Checker c(a.kOp);
  if (a.src.rank == 1) {
    c.Is("src", a.src, {-1}, kF32 | kI32);
    c.Is("dst", a.dst, {Dim(a.src, 0)}, Bit(a.src.dtype));
  } else {
    c.Is("src", a.src, {-1, -1}, kF32 | kI32, Layout::strided);
    c.Is("dst", a.dst, {Dim(a.src, 0), Dim(a.src, 1)}, Bit(a.src.dtype), Layout::strided);
  }
  c.Done();
}

void Check(const DFlashGroupedConvArgs& a) {
  Checker c(a.kOp);
  const int64_t rows = Dim(a.y, 0);
  const int64_t h = Dim(a.y, 1);
  c.Is("y", a.y, {-1, -1});
  c.Is("base", a.base, {2, -1, h}, kWeight);
  c.Is("delta", a.delta, {rows, 2, Dim(a.base, 1), -1});
  if (a.residual) c.Is("residual", a.residual, {rows, h});
  c.Is("out", a.out, {rows, h});
  c.Require(Dim(a.delta, 3) > 0 && h % Dim(a.delta, 3) == 0,
            "channels are not a multiple of the groups of delta");
  c.Require(Dim(a.base, 1) <= kMaxConvTaps, "base has more than 16 taps");
  c.Require(a.out.data != a.y.data, "out must not be y");
  c.Require(a.side == 0 || a.side == 1, "side is neither 0 nor 1");
  c.Done();
}

void Check(const DFlashBlockAttnArgs& a) {
  Checker c(a.kOp);
  const int64_t rows = Dim(a.q, 0);
  const int64_t d = Dim(a.q, 2);
  const int64_t nkv = Dim(a.k_block, 1);
  c.Is("q", a.q, {-1, -1, -1}, kF32, Layout::strided);
  c.Is("k_block", a.k_block, {rows, -1, d}, kF32, Layout::strided);
  c.Is("v_block", a.v_block, {rows, nkv, d}, kF32, Layout::strided);
  c.Is("k_ctx", a.k_ctx, {-1, nkv, d});
  c.Is("v_ctx", a.v_ctx, {Dim(a.k_ctx, 0), nkv, d});
  c.Is("start", a.start, {1}, kI32);
  c.Is("out", a.out, {rows, Dim(a.q, 1), d});
  if (a.pages) {
    c.Is("pages", a.pages, {-1}, kI32);
    c.Require(a.page_size > 0 && Dim(a.k_ctx, 0) % a.page_size == 0, "k_ctx is not a whole number of pages");
  }
  c.Require(nkv > 0 && Dim(a.q, 1) % nkv == 0, "query heads are not a multiple of KV heads");
  c.Require(d <= kMaxHeadDim, "a head is larger than 512");
  CheckBlock(c, rows);
  c.Require(a.window >= 0, "window is negative");
  c.Done();
}

void Check(const TopKPairsArgs& a) {
  Checker c(a.kOp);
  const int64_t k = Dim(a.values, 1);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  c.Is("values", a.values, {Dim(a.x, 0), -1});
  c.Is("ids", a.ids, {Dim(a.x, 0), k}, kI32);
  c.Require(k <= Dim(a.x, 1) && k <= kMaxCandidates, "k is larger than the vocabulary or than 64");
  c.Require(a.softcap >= 0, "softcap is negative");
  c.Done();
}

void Check(const SelectorEdgesArgs& a) {
  Checker c(a.kOp);
  const int64_t rows = Dim(a.values, 0);
  const int64_t k = Dim(a.values, 1);
  c.Is("values", a.values, {-1, -1});
  c.Is("ids", a.ids, {rows, k}, kI32);
  c.Is("hidden", a.hidden, {rows, -1});
  c.Is("predecessor", a.predecessor, {-1, Dim(a.hidden, 1)}, kWeight);
  c.Is("successor", a.successor, {Dim(a.predecessor, 0), Dim(a.hidden, 1)}, kWeight);
  c.Is("anchor", a.anchor, {1}, kI32);
  c.Is("edges", a.edges, {rows, k, k});
  c.Require(k <= kMaxCandidates, "k is larger than 64");
  c.Done();
}

void Check(const PathWalkArgs& a) {
  Checker c(a.kOp);
  const int64_t rows = Dim(a.ids, 0);
  const int64_t k = Dim(a.ids, 1);
  c.Is("ids", a.ids, {-1, -1}, kI32);
  c.Is("edges", a.edges, {rows, k, k});
  c.Is("drafted", a.drafted, {rows}, kI32);
  c.Require(k <= kMaxCandidates, "k is larger than 64");
  if (a.q) {
    c.Is("q", a.q, {rows, k});
    CheckDraws(c, a.draws);
    CheckBlock(c, rows);
    c.Require(a.temperature > 0, "temperature is not above 0");
  }
  c.Done();
}

void Check(const ArgMaxArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  c.Is("out", a.out, {Dim(a.x, 0)}, kI32);
  c.Done();
}

void Check(const ApplyTemperatureArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  c.Is("out", a.out, {Dim(a.x, 0), Dim(a.x, 1)}, kF32, Layout::strided);
  c.Require(a.temperature > 0, "temperature is not above 0");
  c.Done();
}

void Check(const ApplyTopKTopPArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  CheckVocabulary(c, a.x);
  c.Require(a.top_k >= 0, "top_k is negative");
  c.Require(a.top_p >= 0 && a.top_p <= 1, "top_p is not in 0..1");
  c.Done();
}

void Check(const SoftmaxArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  c.Is("out", a.out, {Dim(a.x, 0), Dim(a.x, 1)}, kF32, Layout::strided);
  CheckVocabulary(c, a.x);
  c.Done();
}

void Check(const RandomSampleArgs& a) {
  Checker c(a.kOp);
  c.Is("x", a.x, {-1, -1}, kF32, Layout::strided);
  c.Is("out", a.out, {Dim(a.x, 0)}, kI32);
  CheckDraws(c, a.draws);
  c.Require(a.blocks >= 0 && a.blocks <= kMaxSampleBlocks, "blocks is not in 0..1024");
  c.Done();
}

void Check(const RejectionSampleArgs& a) {
  Checker c(a.kOp);
  const int64_t drafts = Dim(a.block, 0) - 1;
  c.Is("block", a.block, {-1}, kI32);
  c.Require(drafts >= 1, "a block has less than two rows");
  c.Is("p", a.p, {drafts, -1}, kF32, Layout::strided);
  c.Is("q", a.q, {drafts, -1});
  c.Is("ids", a.ids, {drafts, Dim(a.q, 1)}, kI32);
  c.Is("bonus", a.bonus, {1}, kI32);
  c.Is("target", a.target, {drafts + 1}, kI32);
  CheckDraws(c, a.draws);
  CheckBlock(c, drafts + 1);
  c.Require(Dim(a.q, 1) <= kMaxCandidates, "k is larger than 64");
  c.Done();
}

void Check(const AcceptGreedyArgs& a) {
  Checker c(a.kOp);
  c.Is("block", a.block, {-1}, kI32);
  c.Is("target", a.target, {Dim(a.block, 0)}, kI32);
  if (a.stop_ids) c.Is("stop_ids", a.stop_ids, {-1}, kI32);
  c.Is("limit", a.limit, {1}, kI32);
  c.Is("position", a.position, {1}, kI32);
  c.Is("last", a.last, {1}, kI32);
  c.Is("newest", a.newest, {1}, kI32);
  c.Is("result", a.result, {2 + kMaxRows}, kI32);
  CheckBlock(c, Dim(a.block, 0));
  c.Done();
}

}  // namespace vt
