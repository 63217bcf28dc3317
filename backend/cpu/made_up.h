#pragma once

#include "backend/vt/made_up.h"

namespace vt::cpu {

extern const MadeUpKernels kMadeUpKernels;

}  // namespace vt::cpu
