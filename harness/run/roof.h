// The read roof: a plain read-and-sum over memory of the device, never one of the chain's own matmuls.
#pragma once

#include <cstdint>

#include "backend/vt/backend.h"

namespace warmleg::run {

inline constexpr uint64_t kMaxRoofBytes = uint64_t{4} << 30;

// GB/s (1e9 bytes) of the fastest of several sweeps over a buffer of `bytes` (at least 1 MiB is used). Throws
// vt::RefusedError on a device whose memory the host cannot read and that has no kernel for it.
double MeasureReadRoof(vt::Backend& backend, uint64_t bytes);

}  // namespace warmleg::run
