// The native kernel of every op of vt/ops.h on one vendor's devices, and their registration.
//
// What lies in device memory cannot be refused from here, so a kernel never follows an index out of its
// table: a bad index reads as NaN (f32, bf16) or -1 (i32) and writes nothing; a choice among scores that hold
// a NaN is -1.
#pragma once

#include "backend/hip/vendor/vendor.h"
#include "backend/vt/device.h"
#include "backend/vt/ops.h"

namespace vt::hip::WARMLEG_VENDOR {

#define WARMLEG_HIP_KERNEL(name) void name(Queue& queue, const name##Args& args);
WARMLEG_VT_OPS(WARMLEG_HIP_KERNEL)
#undef WARMLEG_HIP_KERNEL

// Makes them vt-native on devices of this type.
void RegisterKernels(DeviceType type);

}  // namespace vt::hip::WARMLEG_VENDOR
