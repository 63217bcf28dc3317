// Embedding, IndexSelect, IndexCopy, CopyRows, Positions: rows of a table by an index in device memory.
// Decomposition: blockIdx.x owns a row, blockIdx.y 256 of its elements; a thread moves one element.
// Bytes: each row read once and written once. Bound: launch latency at decode, memory at prefill.
#include "backend/hip/common.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

constexpr int kBlock = 256;

template <class W>
__global__ void EmbeddingKernel(const W* table, int64_t vocab, const int32_t* ids, float scale, float* out,
                                int n) {
  StartInOrder();
  const int c = BlockY() * kBlock + Thread();
  if (c >= n) return;
  const int32_t id = ids[BlockX()];
  const bool known = id >= 0 && id < vocab;
  out[static_cast<int64_t>(BlockX()) * n + c] =
      known ? ToFloat(table[id * int64_t{n} + c]) * scale : NotANumber();
}

template <class T>
__global__ void IndexSelectKernel(const T* src, int64_t m, const int32_t* index, T* out, int n) {
  StartInOrder();
  const int c = BlockY() * kBlock + Thread();
  if (c >= n) return;
  const int32_t i = index[BlockX()];
  const bool known = i >= 0 && i < m;
  out[static_cast<int64_t>(BlockX()) * n + c] = known ? src[i * int64_t{n} + c] : static_cast<T>(~T{0});
}

__global__ void IndexCopyKernel(const float* src, int64_t src_row, const int32_t* index, float* dst,
                                int64_t m, int n) {
  StartInOrder();
  const int c = BlockY() * kBlock + Thread();
  const int32_t i = index[BlockX()];
  if (c >= n || i < 0 || i >= m) return;
  dst[i * int64_t{n} + c] = src[BlockX() * src_row + c];
}

__global__ void CopyRowsKernel(const uint32_t* src, int64_t src_row, uint32_t* dst, int64_t dst_row, int n) {
  StartInOrder();
  const int c = BlockY() * kBlock + Thread();
  if (c < n) dst[BlockX() * dst_row + c] = src[BlockX() * src_row + c];
}

__global__ void PositionsKernel(const int32_t* start, int32_t* out, int rows) {
  StartInOrder();
  const int r = BlockX() * kBlock + Thread();
  if (r < rows) out[r] = start[0] + r;
}

template <class T>
void SelectRows(Queue& queue, const IndexSelectArgs& args) {
  const int64_t n = args.src.dim(1);
  launch_early(IndexSelectKernel<T>, Blocks(args.index.dim(0), DivUp<int64_t>(n, kBlock)), kBlock, 0, queue,
               args.src.as<const T>(), args.src.dim(0), args.index.as<const int32_t>(), args.out.as<T>(), n);
}

}  // namespace

void Embedding(Queue& queue, const EmbeddingArgs& args) {
  const int64_t n = args.table.dim(1);
  WithWeight(args.table, [&](auto* table) {
    launch_early(EmbeddingKernel<Pointee<decltype(table)>>,
                 Blocks(args.ids.dim(0), DivUp<int64_t>(n, kBlock)), kBlock, 0, queue, table,
                 args.table.dim(0), args.ids.as<const int32_t>(), args.scale, args.out.as<float>(), n);
  });
}

void IndexSelect(Queue& queue, const IndexSelectArgs& args) {
  if (SizeOf(args.src.dtype) == 2) {
    SelectRows<uint16_t>(queue, args);
  } else {
    SelectRows<uint32_t>(queue, args);
  }
}

void IndexCopy(Queue& queue, const IndexCopyArgs& args) {
  const int64_t n = args.dst.dim(1);
  launch_early(IndexCopyKernel, Blocks(args.index.dim(0), DivUp<int64_t>(n, kBlock)), kBlock, 0, queue,
               args.src.as<const float>(), args.src.step(0), args.index.as<const int32_t>(),
               args.dst.as<float>(), args.dst.dim(0), n);
}

void CopyRows(Queue& queue, const CopyRowsArgs& args) {
  const bool matrix = args.src.rank == 2;
  const int64_t n = args.src.dim(args.src.rank - 1);
  launch_early(CopyRowsKernel, Blocks(matrix ? args.src.dim(0) : 1, DivUp<int64_t>(n, kBlock)), kBlock, 0,
               queue, args.src.as<const uint32_t>(), matrix ? args.src.step(0) : 0, args.dst.as<uint32_t>(),
               matrix ? args.dst.step(0) : 0, n);
}

void Positions(Queue& queue, const PositionsArgs& args) {
  launch_early(PositionsKernel, DivUp<int64_t>(args.out.dim(0), kBlock), kBlock, 0, queue,
               args.start.as<const int32_t>(), args.out.as<int32_t>(), args.out.dim(0));
}

}  // namespace vt::hip::WARMLEG_VENDOR
