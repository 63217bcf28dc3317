// Stand-ins for what a run of shapes alone does not have: trained weights, and drafts that a target agrees
// with. They are no ops of the chain: no statistics, no reference tier; each device type registers its own
// kernels.
#pragma once

#include <cstdint>

#include "backend/vt/backend.h"

namespace vt {

// Element i is FillValue (random_bits.h) of word i / kFillGroup of the stream `key`: the same bits on every
// device.
struct RandomFill {
  uint64_t key = 0;
  float amplitude = 1;  // a power of two
  float centre = 0;
};

// Rewrites the target's argmax of a round so that AcceptGreedy accepts counts[round % n] drafts, all of them
// where the round has fewer, and then meets another token. Everything before it has really run.
struct ForcedAccept {
  Tensor counts;  // [n] i32
  Tensor round;   // [1] i32, in place: advances by one
  Tensor block;   // [rows] i32: anchor, then the drafts
  Tensor target;  // [rows] i32, in place
};

struct MadeUpKernels {
  void (*fill)(Queue& queue, const Tensor& out, const RandomFill& fill) = nullptr;
  void (*accept)(Queue& queue, const ForcedAccept& args) = nullptr;
};
void RegisterMadeUp(DeviceType type, const MadeUpKernels& kernels);

// In the queue's order; out is contiguous bf16 or f32. Both throw RefusedError on a device without the
// kernels.
void FillRandom(Queue& queue, const Tensor& out, const RandomFill& fill);
void ForceAccept(Queue& queue, const ForcedAccept& args);

}  // namespace vt
