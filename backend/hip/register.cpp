#include "backend/hip/register.h"

#include <mutex>

namespace vt::hip {

// One library each, with the same sources (backend.h).
#if defined(WARMLEG_WITH_AMD)
namespace on_amd {
void RegisterVendor();
}
#endif
#if defined(WARMLEG_WITH_NVIDIA)
namespace on_nvidia {
void RegisterVendor();
}
#endif
#if defined(WARMLEG_WITH_SIM)
namespace on_sim {
void RegisterVendor();
}
#endif

void Register() {
  static std::once_flag once;
  std::call_once(once, [] {
#if defined(WARMLEG_WITH_AMD)
    on_amd::RegisterVendor();
#endif
#if defined(WARMLEG_WITH_NVIDIA)
    on_nvidia::RegisterVendor();
#endif
#if defined(WARMLEG_WITH_SIM)
    on_sim::RegisterVendor();
#endif
  });
}

}  // namespace vt::hip
