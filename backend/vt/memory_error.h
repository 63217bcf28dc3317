// Memory that ran out, told apart from other failures of the machine: a campaign names it as the reason of a
// leg.
#pragma once

#include "backend/vt/error.h"

namespace vt {

// Memory of the device or the host ran out. Exit code 3.
struct OutOfMemoryError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

}  // namespace vt
