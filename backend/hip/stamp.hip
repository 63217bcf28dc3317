// Points in time, read from the device's own clock: events inside captured graphs do not time before
// ROCm 7.0.
#include "backend/hip/stamp.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

__global__ void StampKernel(uint64_t* slots, int slot) { slots[slot] = DeviceClock(); }

}  // namespace

void StampClock(Queue& queue, uint64_t* slots, int slot) { launch(StampKernel, 1, 1, 0, queue, slots, slot); }

}  // namespace vt::hip::WARMLEG_VENDOR
