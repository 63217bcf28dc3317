// A view of device memory. It owns nothing: a Buffer (backend.h) does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "backend/vt/device.h"

namespace vt {

enum class DType : uint8_t { f32, bf16, i32 };

constexpr int64_t SizeOf(DType type) { return type == DType::bf16 ? 2 : 4; }
std::string_view Name(DType type);

// Up to four dimensions; the last one is always contiguous, the others may be strided (a slice of a fused
// row).
struct Tensor {
  static constexpr int kMaxRank = 4;

  std::byte* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};   // elements
  std::array<int64_t, kMaxRank> stride{};  // elements; stride[rank - 1] == 1
  Device device{};

  explicit operator bool() const { return data != nullptr; }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i)]; }
  int64_t step(int i) const { return stride[static_cast<size_t>(i)]; }
  int64_t count() const;                                     // product of the shape
  int64_t bytes() const { return count() * SizeOf(dtype); }  // of the elements seen, gaps not counted
  bool contiguous() const;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }

  // [begin, begin + n) of the first dimension.
  Tensor Rows(int64_t begin, int64_t n) const;
  // [begin, begin + n) of the last dimension.
  Tensor Cols(int64_t begin, int64_t n) const;
  // The last dimension split in two: [..., a * b] -> [..., a, b].
  Tensor SplitLast(int64_t a, int64_t b) const;
  // One element of the first dimension, rank - 1.
  Tensor At(int64_t i) const;
  // The same elements in another shape; the tensor must be contiguous.
  Tensor Reshape(std::initializer_list<int64_t> to) const;
};

// A contiguous view of `data`.
Tensor MakeTensor(void* data, DType dtype, std::initializer_list<int64_t> shape, Device device = {});

std::string ShapeText(const Tensor& t);  // "[4, 192] f32"

}  // namespace vt
