#include "backend/backends.h"

#include "backend/cpu/register.h"
#include "backend/hip/register.h"

namespace vt {

void RegisterBackends() {
  cpu::Register();
  hip::Register();
}

}  // namespace vt
