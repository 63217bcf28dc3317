// Device tensors of one benchmark case, filled with random values through CopyIn.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "backend/vt/backend.h"

namespace vt::bench {

class Data {
 public:
  explicit Data(Backend& backend) : pool_(backend), queue_(backend.CreateQueue()) {}

  Queue& queue() { return *queue_; }
  // f32 or bf16 in [-1, 1); large tensors repeat a random block of 1 MiB.
  Tensor Random(DType dtype, std::initializer_list<int64_t> shape);
  Tensor Zeros(DType dtype, std::initializer_list<int64_t> shape);
  Tensor Ints(const std::vector<int32_t>& values);
  Tensor RandomInts(std::initializer_list<int64_t> shape, int32_t below);

 private:
  TensorPool pool_;
  std::unique_ptr<Queue> queue_;
  std::mt19937 random_{20261130};
};

}  // namespace vt::bench
