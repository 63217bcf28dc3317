// Random tensors in host memory for op tests. Gaps of strided tensors hold NaN, so that a kernel that reads
// one is seen.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include "backend/vt/tensor.h"

namespace testing_support {

class HostTensors {
 public:
  explicit HostTensors(uint32_t seed) : random_(seed) {}

  vt::Tensor Empty(vt::DType dtype, std::initializer_list<int64_t> shape) {
    const vt::Tensor t = vt::MakeTensor(nullptr, dtype, shape);
    return vt::MakeTensor(Bytes(t.bytes()), dtype, shape);
  }

  // Uniform in [low, high); f32 or bf16.
  vt::Tensor Random(vt::DType dtype, std::initializer_list<int64_t> shape, float low = -1, float high = 1) {
    vt::Tensor t = Empty(dtype, shape);
    std::uniform_real_distribution<float> uniform(low, high);
    for (int64_t i = 0; i < t.count(); ++i) {
      const float value = uniform(random_);
      if (dtype == vt::DType::f32) {
        t.as<float>()[i] = value;
      } else {
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        t.as<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
      }
    }
    return t;
  }

  // f32 with `gap` unseen elements after each row of the last dimension, and as many again after each row of
  // the first.
  vt::Tensor Strided(std::initializer_list<int64_t> shape, int64_t gap = 3, float low = -1, float high = 1) {
    vt::Tensor t = vt::MakeTensor(nullptr, vt::DType::f32, shape);
    int64_t step = 1;
    for (int i = t.rank - 1; i >= 0; --i) {
      t.stride[static_cast<size_t>(i)] = step;
      step = step * t.dim(i) + (i > 0 ? gap : 0);
    }
    t.data = Bytes(4 * step);
    for (int64_t i = 0; i < step; ++i) t.as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
    std::uniform_real_distribution<float> uniform(low, high);
    ForEach(t, [&](int64_t at) { t.as<float>()[at] = uniform(random_); });
    return t;
  }

  vt::Tensor Ints(const std::vector<int32_t>& values) {
    vt::Tensor t = Empty(vt::DType::i32, {static_cast<int64_t>(values.size())});
    std::memcpy(t.data, values.data(), values.size() * sizeof(int32_t));
    return t;
  }

  vt::Tensor RandomInts(std::initializer_list<int64_t> shape, int32_t below) {
    vt::Tensor t = Empty(vt::DType::i32, shape);
    std::uniform_int_distribution<int32_t> uniform(0, below - 1);
    for (int64_t i = 0; i < t.count(); ++i) t.as<int32_t>()[i] = uniform(random_);
    return t;
  }

  // A contiguous copy.
  vt::Tensor Copy(const vt::Tensor& from) {
    vt::Tensor t = from;
    int64_t step = 1;
    for (int i = t.rank - 1; i >= 0; --i) {
      t.stride[static_cast<size_t>(i)] = step;
      step *= t.dim(i);
    }
    const int64_t size = vt::SizeOf(t.dtype);
    t.data = Bytes(step * size);
    int64_t at = 0;
    ForEach(from, [&](int64_t offset) {
      std::memcpy(t.data + size * at++, from.data + size * offset, static_cast<size_t>(size));
    });
    return t;
  }

  std::mt19937& random() { return random_; }

  // fn(offset in elements) for every element, row-major.
  template <class Fn>
  static void ForEach(const vt::Tensor& t, const Fn& fn) {
    for (int64_t i = 0; i < t.count(); ++i) {
      int64_t rest = i;
      int64_t offset = 0;
      for (int d = t.rank - 1; d >= 0; --d) {
        offset += rest % t.dim(d) * t.step(d);
        rest /= t.dim(d);
      }
      fn(offset);
    }
  }

 private:
  std::byte* Bytes(int64_t n) {
    // poisoned: a result that nobody wrote is a NaN
    return memory_.emplace_back(static_cast<size_t>(n), std::byte{0xff}).data();
  }

  std::mt19937 random_;
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace testing_support
