#include "backend/bench/data.h"

#include <algorithm>
#include <cstring>

namespace vt::bench {

Tensor Data::Random(DType dtype, std::initializer_list<int64_t> shape) {
  const Tensor t = pool_.New(dtype, shape);
  const int64_t block = std::min<int64_t>(t.count(), (1 << 20) / SizeOf(dtype));
  std::vector<std::byte> host(static_cast<size_t>(block * SizeOf(dtype)));
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < block; ++i) {
    const float value = uniform(random_);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    // the upper half of a float32 is a bf16
    std::memcpy(host.data() + i * SizeOf(dtype), bytes + 4 - SizeOf(dtype),
                static_cast<size_t>(SizeOf(dtype)));
  }
  for (int64_t at = 0; at < t.bytes(); at += static_cast<int64_t>(host.size())) {
    const auto n = std::min<int64_t>(t.bytes() - at, static_cast<int64_t>(host.size()));
    pool_.backend().CopyIn(*queue_, t.data + at, host.data(), static_cast<size_t>(n));
  }
  return t;
}

Tensor Data::Zeros(DType dtype, std::initializer_list<int64_t> shape) {
  const Tensor t = pool_.New(dtype, shape);
  pool_.backend().Fill(*queue_, t.data, 0, static_cast<size_t>(t.bytes()));
  return t;
}

Tensor Data::Ints(const std::vector<int32_t>& values) {
  const Tensor t = pool_.New(DType::i32, {static_cast<int64_t>(values.size())});
  pool_.backend().CopyIn(*queue_, t.data, values.data(), static_cast<size_t>(t.bytes()));
  return t;
}

Tensor Data::RandomInts(std::initializer_list<int64_t> shape, int32_t below) {
  const Tensor t = pool_.New(DType::i32, shape);
  std::vector<int32_t> host(static_cast<size_t>(t.count()));
  std::uniform_int_distribution<int32_t> uniform(0, below - 1);
  std::generate(host.begin(), host.end(), [&] { return uniform(random_); });
  pool_.backend().CopyIn(*queue_, t.data, host.data(), static_cast<size_t>(t.bytes()));
  return t;
}

}  // namespace vt::bench
