// librocm_smi64. Linked into warmleg-sampler only, for the library aborts the process on files it does not
// know and must not share a process with libamd_smi.
#pragma once

#include "harness/telemetry/library.h"

namespace warmleg::telemetry {

// Built without the library: `why_not` says so.
OpenedLibrary OpenRocmSmi();

}  // namespace warmleg::telemetry
