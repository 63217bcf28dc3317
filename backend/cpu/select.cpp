// Choices among scores: ArgMax, TopKPairs, the selector's edges and its greedy walk. A NaN has no place in an
// order: it is refused, naming the op, because it says that the weights or the device are broken.
#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "backend/cpu/kernels.h"
#include "backend/cpu/nan_row.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"

namespace vt::cpu {

void ArgMax(Queue&, const ArgMaxArgs& args) {
  const int64_t n = args.x.dim(1);
  NanRow nan(args.kOp);
  ParallelFor(args.x.dim(0), args.x.count(), [&](int64_t r) {
    const float* x = args.x.as<float>() + r * args.x.step(0);
    int64_t best = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (x[i] > x[best]) best = i;
      if (std::isnan(x[i])) return nan.Set(r);
    }
    args.out.as<int32_t>()[r] = static_cast<int32_t>(best);
  });
  nan.Raise();
}

void TopKPairs(Queue&, const TopKPairsArgs& args) {
  const int64_t n = args.x.dim(1);
  const int64_t k = args.values.dim(1);
  NanRow nan(args.kOp);
  ParallelFor(args.x.dim(0), args.x.count() * (args.softcap > 0 ? 32 : 1), [&](int64_t r) {
    const float* x = args.x.as<float>() + r * args.x.step(0);
    float* values = args.values.as<float>() + r * k;
    int32_t* ids = args.ids.as<int32_t>() + r * k;
    int64_t held = 0;
    for (int64_t i = 0; i < n; ++i) {
      float z = x[i] * args.multiplier;
      if (args.softcap > 0) z = std::tanh(z / args.softcap) * args.softcap;
      if (std::isnan(z)) return nan.Set(r);
      if (held == k && !(z > values[k - 1])) continue;  // an equal one has the lower id already
      int64_t at = held < k ? held++ : k - 1;
      for (; at > 0 && z > values[at - 1]; --at) {
        values[at] = values[at - 1];
        ids[at] = ids[at - 1];
      }
      values[at] = z;
      ids[at] = static_cast<int32_t>(i);
    }
  });
  nan.Raise();
}

void SelectorEdges(Queue&, const SelectorEdgesArgs& args) {
  const int64_t rows = args.values.dim(0);
  const int64_t k = args.values.dim(1);
  const int64_t rank = args.hidden.dim(1);
  const auto* ids = args.ids.as<int32_t>();
  const int32_t anchor = args.anchor.as<int32_t>()[0];
  const auto check = [&](const char* what, int32_t id) {
    if (id < 0 || id >= args.predecessor.dim(0)) {
      throw std::logic_error(fmt::format("op SelectorEdges: {} names token {}, the codebooks have {} rows",
                                         what, id, args.predecessor.dim(0)));
    }
  };
  check("anchor", anchor);
  for (int64_t i = 0; i < args.ids.count(); ++i) check("ids", ids[i]);
  const auto code = [&](const Tensor& book, int32_t id) {
    return book.data + id * rank * SizeOf(book.dtype);
  };
  ParallelFor(rows, rows * k * k * rank, [&](int64_t t) {
    for (int64_t i = 0; i < (t == 0 ? 1 : k); ++i) {
      const int32_t before = t == 0 ? anchor : ids[(t - 1) * k + i];
      for (int64_t j = 0; j < k; ++j) {
        args.edges.as<float>()[(t * k + i) * k + j] =
            args.values.as<float>()[t * k + j] +
            Rows().edge(code(args.predecessor, before), args.predecessor.dtype,
                        args.hidden.as<float>() + t * rank, code(args.successor, ids[t * k + j]),
                        args.successor.dtype, rank);
      }
    }
  });
}

void PathWalk(Queue&, const PathWalkArgs& args) {
  if (args.q) return SampledWalk(args);
  const int64_t k = args.ids.dim(1);
  NanRow nan(args.kOp);
  int64_t chosen = 0;  // of the row before; edges[0, 0] start from the anchor
  for (int64_t t = 0; t < args.ids.dim(0); ++t) {
    const float* edges = args.edges.as<float>() + (t * k + chosen) * k;
    int64_t best = 0;
    for (int64_t j = 0; j < k; ++j) {
      if (std::isnan(edges[j])) nan.Set(t);
      if (edges[j] > edges[best]) best = j;
    }
    nan.Raise();
    args.drafted.as<int32_t>()[t] = args.ids.as<int32_t>()[t * k + best];
    chosen = best;
  }
}

}  // namespace vt::cpu
