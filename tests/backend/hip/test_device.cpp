// The device that WARMLEG_TEST_DEVICE names: sim:0 (wave 32) by default; sim:1 has wave 64.
#include <cstdlib>

#include "backend/hip/register.h"
#include "tests/support/device_ops.h"

namespace testing_support {

vt::Device TestDevice() {
  vt::hip::Register();
  const char* name = std::getenv("WARMLEG_TEST_DEVICE");
  return vt::ParseDevice(name != nullptr ? name : "sim:0");
}

}  // namespace testing_support
