#include "backend/cpu/register.h"
#include "tests/support/device_ops.h"

namespace testing_support {

vt::Device TestDevice() {
  vt::cpu::Register();
  return {};
}

}  // namespace testing_support
