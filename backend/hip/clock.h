// How fast the compute units run, by the device's own counters.
#pragma once

#include "backend/hip/vendor/vendor.h"

namespace vt::hip::WARMLEG_VENDOR {

// One thread runs until `wall_ticks` of the device's clock have passed; counts[0] = cycles in that time,
// counts[1] = the ticks. Both ends lie on an edge of that clock, so a coarse one costs no accuracy.
void CountCycles(Queue& queue, uint64_t* counts, uint64_t wall_ticks);

}  // namespace vt::hip::WARMLEG_VENDOR
