// The arithmetic roof of a device for our own matrix products: the loop over their tiles (bf16 operands,
// float32 sums) fed from registers, with no memory in it.
#pragma once

#include <cstdint>

#include "backend/vt/backend.h"

namespace vt {

inline constexpr int kTileSums = 4096;

// Enqueues `turns` turns of the loop in many waves: each multiplies 16 x 32 ones by 32 x 16 ones, several
// times, onto sums that it keeps. Returns the multiply-adds made; all the sums together are as many, and the
// first of the kTileSums device words at `sums`, zeros before, receive them in parts.
using TileLoop = uint64_t (*)(Queue& queue, int turns, uint64_t* sums);
void RegisterTileLoop(DeviceType type, TileLoop kernel);
bool HasTileLoop(Device device);

class TileProbe {
 public:
  // Throws RefusedError on a device without the loop.
  explicit TileProbe(Queue& queue);
  // Multiply-adds and seconds of one launch of at least `least_s`. Throws EnvironmentError when the
  // sums are wrong: then the loop was not run as said.
  struct Run {
    double multiply_adds = 0, seconds = 0;
  };
  Run Measure(double least_s);

 private:
  Run Once();

  Queue& queue_;
  TileLoop kernel_;
  Buffer sums_;
  int turns_ = 1;
};

}  // namespace vt
