#include "backend/hip/kernels.h"
#include "backend/hip/made_up.h"
#include "backend/hip/sum_words.h"
#include "backend/hip/tile_loop.h"
#include "backend/vt/dispatch.h"

namespace vt::hip::WARMLEG_VENDOR {

void RegisterKernels(DeviceType type) {
#define WARMLEG_HIP_REGISTER(name) RegisterNative<name##Args>(type, name);
  WARMLEG_VT_OPS(WARMLEG_HIP_REGISTER)
#undef WARMLEG_HIP_REGISTER
  RegisterSumWords(type, SumWords);
  RegisterTileLoop(type, RunTileLoop);
  RegisterMadeUp(type, {.fill = FillRandomTensor, .accept = ForceAccepted});
}

}  // namespace vt::hip::WARMLEG_VENDOR
