// The cpu device and its kernels.
#pragma once

namespace vt::cpu {

// Registers the cpu backend, its kernels as vt-native for device cpu, and the same kernels as the reference
// tier of every other device. Idempotent and thread-safe.
void Register();

}  // namespace vt::cpu
