// The CPU kernel of every op of vt/ops.h. On device cpu they are vt-native; for other devices they are the
// reference tier.
#pragma once

#include "backend/vt/backend.h"
#include "backend/vt/ops.h"

namespace vt::cpu {

#define WARMLEG_CPU_KERNEL(name) void name(Queue& queue, const name##Args& args);
WARMLEG_VT_OPS(WARMLEG_CPU_KERNEL)
#undef WARMLEG_CPU_KERNEL

void SampledWalk(const PathWalkArgs& args);  // PathWalk with q

}  // namespace vt::cpu
