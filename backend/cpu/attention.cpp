// Attention and DFlashBlockAttn: one running softmax for each (row, query head), keys in ascending order in
// tiles of kAttendTile counted from the first visible key, so that neither the number of rows nor the paging
// changes bits.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"

namespace vt::cpu {

namespace {

// Collects visible keys into tiles and feeds them to the running softmax.
class RunningSoftmax {
 public:
  RunningSoftmax(const float* q, float* out, int64_t d, float scale)
      : state_{.q = q, .out = out, .d = d, .scale = scale, .max = -std::numeric_limits<float>::infinity()} {
    std::fill_n(out, d, 0.0F);
  }

  void Add(const float* key, const float* value) {
    keys_[count_] = key;
    values_[count_] = value;
    if (++count_ == kAttendTile) Flush();
  }

  void End() {
    if (count_ > 0) Flush();
    Rows().attend_end(state_);
  }

 private:
  void Flush() {
    Rows().attend(state_, keys_, values_, count_);
    count_ = 0;
  }

  Attend state_;
  const float* keys_[kAttendTile];
  const float* values_[kAttendTile];
  int count_ = 0;
};

const float* Head(const Tensor& t, int64_t row, int64_t head) {
  return t.as<float>() + row * t.step(0) + head * t.step(1);
}

}  // namespace

void Attention(Queue&, const AttentionArgs& args) {
  const int64_t rows = args.q.dim(0);
  const int64_t heads = args.q.dim(1);
  const int64_t d = args.q.dim(2);
  const int64_t group = heads / args.k.dim(1);
  const auto* positions = args.positions.as<int32_t>();
  for (int64_t r = 0; r < rows; ++r) {
    if (positions[r] < 0 || positions[r] >= args.k.dim(0)) {
      throw std::logic_error(fmt::format("op Attention: positions[{}] is {}, the cache holds {} rows", r,
                                         positions[r], args.k.dim(0)));
    }
  }
  const int64_t work = rows * heads * (positions[rows - 1] + 1) * 2 * d;
  ParallelFor(rows * heads, work, [&](int64_t i) {
    const int64_t r = i / heads;
    const int64_t h = i % heads;
    RunningSoftmax softmax(Head(args.q, r, h), args.out.as<float>() + i * d, d, args.scale);
    for (int64_t j = 0; j <= positions[r]; ++j)
      softmax.Add(Head(args.k, j, h / group), Head(args.v, j, h / group));
    softmax.End();
  });
}

void DFlashBlockAttn(Queue&, const DFlashBlockAttnArgs& args) {
  const int64_t rows = args.q.dim(0);
  const int64_t heads = args.q.dim(1);
  const int64_t d = args.q.dim(2);
  const int64_t group = heads / args.k_block.dim(1);
  const int64_t context = args.start.as<int32_t>()[0];
  const auto* pages = args.pages ? args.pages.as<int32_t>() : nullptr;
  const int64_t capacity = pages != nullptr ? args.pages.dim(0) * args.page_size : args.k_ctx.dim(0);
  if (context < 0 || context > capacity) {
    throw std::logic_error(
        fmt::format("op DFlashBlockAttn: start is {}, the context holds {} rows", context, capacity));
  }
  const int64_t physical_pages = pages != nullptr ? args.k_ctx.dim(0) / args.page_size : 0;
  for (int64_t p = 0; pages != nullptr && p * args.page_size < context; ++p) {
    if (pages[p] < 0 || pages[p] >= physical_pages) {
      throw std::logic_error(fmt::format("op DFlashBlockAttn: pages[{}] is {}, the context has {} pages", p,
                                         pages[p], physical_pages));
    }
  }
  const int64_t seen = args.window > 0 ? std::min<int64_t>(context, args.window) : context;
  ParallelFor(rows * heads, rows * heads * (seen + rows) * 2 * d, [&](int64_t i) {
    const int64_t r = i / heads;
    const int64_t kv = i % heads / group;
    RunningSoftmax softmax(Head(args.q, r, i % heads), args.out.as<float>() + i * d, d, args.scale);
    const int64_t first = args.window > 0 ? std::max<int64_t>(0, context + r - args.window + 1) : 0;
    for (int64_t j = first; j < context; ++j) {
      const int64_t row =
          pages != nullptr ? pages[j / args.page_size] * int64_t{args.page_size} + j % args.page_size : j;
      softmax.Add(Head(args.k_ctx, row, kv), Head(args.v_ctx, row, kv));
    }
    for (int64_t m = 0; m < rows; ++m) {
      const bool visible = (!args.causal || m <= r) && (args.window == 0 || std::abs(r - m) < args.window);
      if (visible) softmax.Add(Head(args.k_block, m, kv), Head(args.v_block, m, kv));
    }
    softmax.End();
  });
}

}  // namespace vt::cpu
