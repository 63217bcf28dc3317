#include "backend/backends.h"

#include "backend/cpu/register.h"

namespace vt {

void RegisterBackends() { cpu::Register(); }

}  // namespace vt
