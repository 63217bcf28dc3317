#pragma once

#include "backend/hip/vendor/vendor.h"
#include "backend/vt/made_up.h"

namespace vt::hip::WARMLEG_VENDOR {

// As vt::MadeUpKernels.
void FillRandomTensor(Queue& queue, const Tensor& out, const RandomFill& fill);
void ForceAccepted(Queue& queue, const ForcedAccept& args);

}  // namespace vt::hip::WARMLEG_VENDOR
