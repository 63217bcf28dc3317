// The GPU devices of this build: rocm (amd), cuda (nvidia), sim (the simulated runtime).
#pragma once

namespace vt::hip {

// Registers the backend and the kernels of every vendor that this build was configured for. Idempotent and
// thread-safe.
void Register();

}  // namespace vt::hip
