// The kinds of failure a caller tells apart. Exit codes of the program follow from the type.
#pragma once

#include <stdexcept>
#include <string>

namespace vt {

// Bad input or wrong usage: the message is one line that names what, where, the value, and what to do. Exit
// code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine will not do it: no such device, out of memory, a failed runtime call. Exit code 3.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Memory of the device or the host ran out: a campaign names it as the reason of a leg. Exit code 3.
struct OutOfMemoryError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

// The op exists but may not run here and now: no kernel on this device, capture of an unwarmed op. Exit
// code 3.
struct RefusedError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

}  // namespace vt
