#include "backend/hip/kernels.h"
#include "backend/hip/sum_words.h"
#include "backend/vt/dispatch.h"

namespace vt::hip::WARMLEG_VENDOR {

void RegisterKernels(DeviceType type) {
#define WARMLEG_HIP_REGISTER(name) RegisterNative<name##Args>(type, name);
  WARMLEG_VT_OPS(WARMLEG_HIP_REGISTER)
#undef WARMLEG_HIP_REGISTER
  RegisterSumWords(type, SumWords);
}

}  // namespace vt::hip::WARMLEG_VENDOR
