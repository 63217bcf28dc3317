// Rows by index: Embedding, IndexSelect, IndexCopy, CopyRows, Positions.
#include <fmt/core.h>

#include <cstring>
#include <stdexcept>

#include "backend/cpu/kernels.h"
#include "backend/cpu/row_kernels.h"

namespace vt::cpu {

namespace {

// Row index[r] of a table with `rows` rows.
int64_t IndexAt(Op op, const Tensor& index, int64_t r, int64_t rows) {
  const int64_t i = index.as<int32_t>()[r];
  if (i < 0 || i >= rows) {
    throw std::logic_error(
        fmt::format("op {}: index[{}] is {}, the table has {} rows", Name(op), r, i, rows));
  }
  return i;
}

}  // namespace

void Embedding(Queue&, const EmbeddingArgs& args) {
  const int64_t n = args.table.dim(1);
  for (int64_t r = 0; r < args.ids.dim(0); ++r) {
    const int64_t id = IndexAt(args.kOp, args.ids, r, args.table.dim(0));
    Rows().widen(args.table.data + id * n * SizeOf(args.table.dtype), args.table.dtype, args.scale,
                 args.out.as<float>() + r * n, n);
  }
}

void IndexSelect(Queue&, const IndexSelectArgs& args) {
  const int64_t bytes = args.src.dim(1) * SizeOf(args.src.dtype);
  for (int64_t r = 0; r < args.index.dim(0); ++r) {
    const int64_t i = IndexAt(args.kOp, args.index, r, args.src.dim(0));
    std::memcpy(args.out.data + r * bytes, args.src.data + i * bytes, static_cast<size_t>(bytes));
  }
}

void IndexCopy(Queue&, const IndexCopyArgs& args) {
  const int64_t bytes = args.dst.dim(1) * SizeOf(args.dst.dtype);
  for (int64_t r = 0; r < args.index.dim(0); ++r) {
    const int64_t i = IndexAt(args.kOp, args.index, r, args.dst.dim(0));
    std::memcpy(args.dst.data + i * bytes, args.src.as<float>() + r * args.src.step(0),
                static_cast<size_t>(bytes));
  }
}

void CopyRows(Queue&, const CopyRowsArgs& args) {
  const int64_t rows = args.src.rank == 2 ? args.src.dim(0) : 1;
  const int64_t bytes = args.src.dim(args.src.rank - 1) * SizeOf(args.src.dtype);
  const int64_t from = args.src.rank == 2 ? args.src.step(0) * SizeOf(args.src.dtype) : 0;
  const int64_t to = args.dst.rank == 2 ? args.dst.step(0) * SizeOf(args.dst.dtype) : 0;
  for (int64_t r = 0; r < rows; ++r) {
    std::memmove(args.dst.data + r * to, args.src.data + r * from, static_cast<size_t>(bytes));
  }
}

void Positions(Queue&, const PositionsArgs& args) {
  const int32_t start = args.start.as<int32_t>()[0];
  for (int64_t r = 0; r < args.out.dim(0); ++r) args.out.as<int32_t>()[r] = start + static_cast<int32_t>(r);
}

}  // namespace vt::cpu
