// The sanitizers' calls for switching stacks and for memory that may not be touched; nothing without a
// sanitizer. WARMLEG_ASAN and WARMLEG_TSAN come from WARMLEG_SANITIZE of the build.
#pragma once

#include <cstddef>

#if defined(WARMLEG_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define WARMLEG_NO_ASAN __attribute__((no_sanitize_address, noinline))
#else
#define WARMLEG_NO_ASAN
#endif
#if defined(WARMLEG_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace vt::sim {

inline void PoisonAddresses([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(WARMLEG_ASAN)
  __asan_poison_memory_region(data, bytes);
#endif
}
inline void UnpoisonAddresses([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(WARMLEG_ASAN)
  __asan_unpoison_memory_region(data, bytes);
#endif
}

// Before leaving for another stack; `fake` keeps this stack's state (nullptr: it ends here).
inline void LeaveStack([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom,
                       [[maybe_unused]] size_t bytes) {
#if defined(WARMLEG_ASAN)
  __sanitizer_start_switch_fiber(fake, bottom, bytes);
#endif
}
// After arriving; gives the stack that was left.
inline void ArriveOnStack([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom,
                          [[maybe_unused]] size_t* bytes) {
#if defined(WARMLEG_ASAN)
  __sanitizer_finish_switch_fiber(fake, bottom, bytes);
#endif
}

inline void* CreateTsanFiber() {
#if defined(WARMLEG_TSAN)
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}
inline void* CurrentTsanFiber() {
#if defined(WARMLEG_TSAN)
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}
// Inlined, or its own return would be counted on the other fiber.
[[gnu::always_inline]] inline void SwitchTsanFiber([[maybe_unused]] void* fiber) {
#if defined(WARMLEG_TSAN)
  __tsan_switch_to_fiber(fiber, 0);
#endif
}
inline void DestroyTsanFiber([[maybe_unused]] void* fiber) {
#if defined(WARMLEG_TSAN)
  __tsan_destroy_fiber(fiber);
#endif
}

}  // namespace vt::sim
