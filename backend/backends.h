// Every device this build can drive.
#pragma once

namespace vt {

// Registers the backends that were compiled in. Idempotent and thread-safe; called before the first
// GetBackend.
void RegisterBackends();

}  // namespace vt
