// Points in time on the device.
#pragma once

#include "backend/hip/vendor/vendor.h"

namespace vt::hip::WARMLEG_VENDOR {

// slots[slot] = the device's clock, written by one thread in the queue's order, also inside a graph.
void StampClock(Queue& queue, uint64_t* slots, int slot);

}  // namespace vt::hip::WARMLEG_VENDOR
