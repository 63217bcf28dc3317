#include "harness/telemetry/rocm_smi.h"

namespace warmleg::telemetry {

OpenedLibrary OpenRocmSmi() { return {nullptr, "built without librocm_smi64 (WARMLEG_ROCM)"}; }

}  // namespace warmleg::telemetry
