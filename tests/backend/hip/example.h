// Host entries of the example kernels, one build a vendor.
#pragma once

#include "backend/hip/vendor/vendor.h"

namespace vt::hip::WARMLEG_VENDOR {

void FillFloats(Queue& queue, float* out, float value, int n);
// The same after `wall_ticks` of the device's clock: work that is still under way when its launch has
// returned.
void FillFloatsLate(Queue& queue, float* out, float value, int n, uint64_t wall_ticks);
// A launch that every runtime refuses: more threads than a block may have.
void LaunchTooLarge(Queue& queue, float* out);
void AddFloats(Queue& queue, const float* a, const float* b, float* out, int n);
// out[r] = sum of x[r, :]
void RowSums(Queue& queue, const float* x, float* out, int rows, int n);
// Reverses each chunk of 256 floats through dynamic shared memory.
void ReverseChunks(Queue& queue, const float* x, float* out, int chunks);
// out[0] = bits of the lanes of wave 0 whose x is positive; out[1] counts all positive x of n (a multiple of
// 256).
void CountPositive(Queue& queue, const float* x, uint64_t* out, int n);

}  // namespace vt::hip::WARMLEG_VENDOR
