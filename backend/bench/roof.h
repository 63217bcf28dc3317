// What a device can read: the denominator of every share that warmleg-opbench states.
#pragma once

#include "backend/vt/backend.h"

namespace vt::bench {

// GB/s (1e9 bytes) of a plain read-and-sum over a buffer far larger than any cache, measured now.
// Throws EnvironmentError for a device without such a sweep.
double ReadSweep(Queue& queue);

}  // namespace vt::bench
