#include "backend/vt/tensor.h"

#include <fmt/core.h>

#include <stdexcept>

namespace vt {

namespace {

void Require(bool ok, const char* what, const Tensor& t) {
  if (!ok) throw std::logic_error(fmt::format("tensor {}: {}", ShapeText(t), what));
}

size_t Index(int i) { return static_cast<size_t>(i); }

}  // namespace

std::string_view Name(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
  }
  return "?";
}

int64_t Tensor::count() const {
  int64_t n = rank > 0 ? 1 : 0;
  for (int i = 0; i < rank; ++i) n *= dim(i);
  return n;
}

bool Tensor::contiguous() const {
  int64_t expect = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (dim(i) != 1 && step(i) != expect) return false;
    expect *= dim(i);
  }
  return true;
}

Tensor Tensor::Rows(int64_t begin, int64_t n) const {
  Require(rank >= 1 && begin >= 0 && n >= 0 && begin + n <= dim(0), "rows outside the tensor", *this);
  Tensor t = *this;
  t.data += begin * step(0) * SizeOf(dtype);
  t.shape[0] = n;
  return t;
}

Tensor Tensor::Cols(int64_t begin, int64_t n) const {
  Require(rank >= 1 && begin >= 0 && n >= 0 && begin + n <= dim(rank - 1), "columns outside the tensor",
          *this);
  Tensor t = *this;
  t.data += begin * SizeOf(dtype);
  t.shape[Index(rank - 1)] = n;
  return t;
}

Tensor Tensor::SplitLast(int64_t a, int64_t b) const {
  Require(rank >= 1 && rank < kMaxRank && a * b == dim(rank - 1), "the last dimension does not split so",
          *this);
  Tensor t = *this;
  t.shape[Index(rank - 1)] = a;
  t.stride[Index(rank - 1)] = b;
  t.shape[Index(rank)] = b;
  t.stride[Index(rank)] = 1;
  ++t.rank;
  return t;
}

Tensor Tensor::At(int64_t i) const {
  Require(rank >= 2 && i >= 0 && i < dim(0), "index outside the tensor", *this);
  Tensor t = *this;
  t.data += i * step(0) * SizeOf(dtype);
  for (int d = 1; d < rank; ++d) {
    t.shape[Index(d - 1)] = shape[Index(d)];
    t.stride[Index(d - 1)] = stride[Index(d)];
  }
  --t.rank;
  return t;
}

Tensor Tensor::Reshape(std::initializer_list<int64_t> to) const {
  Require(contiguous(), "only a contiguous tensor can be reshaped", *this);
  const Tensor t = MakeTensor(data, dtype, to, device);
  Require(t.count() == count(), "reshaped to another number of elements", *this);
  return t;
}

Tensor MakeTensor(void* data, DType dtype, std::initializer_list<int64_t> shape, Device device) {
  Tensor t;
  t.data = static_cast<std::byte*>(data);
  t.dtype = dtype;
  t.device = device;
  for (int64_t n : shape) {
    if (t.rank == Tensor::kMaxRank) throw std::logic_error("tensor of more than four dimensions");
    t.shape[Index(t.rank++)] = n;
  }
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    t.stride[Index(i)] = step;
    step *= t.dim(i);
  }
  return t;
}

std::string ShapeText(const Tensor& t) {
  std::string text = "[";
  for (int i = 0; i < t.rank; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", t.dim(i));
  return text + fmt::format("] {}", Name(t.dtype));
}

}  // namespace vt
