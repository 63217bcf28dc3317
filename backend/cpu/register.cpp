#include "backend/cpu/register.h"

#include <mutex>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/made_up.h"
#include "backend/cpu/passive_wait.h"
#include "backend/cpu/row_kernels.h"
#include "backend/cpu/sum_words.h"
#include "backend/vt/dispatch.h"

namespace vt::cpu {

namespace {

template <class Args>
void RegisterKernel(Kernel<Args> kernel) {
  RegisterNative<Args>(DeviceType::cpu, kernel);
  RegisterReference<Args>(kernel);
}

}  // namespace

const RowKernels& Rows() {
  static const RowKernels& rows = Avx2Kernels() != nullptr ? *Avx2Kernels() : PortableKernels();
  return rows;
}

void Register() {
  static std::once_flag once;
  std::call_once(once, [] {
    WaitPolicyIsSet();  // links passive_wait.cpp and its constructor into every program that registers the
                        // device
    RegisterBackend({DeviceType::cpu, ListCpu, CreateCpu});
#define WARMLEG_CPU_REGISTER(name) RegisterKernel<name##Args>(name);
    WARMLEG_VT_OPS(WARMLEG_CPU_REGISTER)
#undef WARMLEG_CPU_REGISTER
    RegisterSumWords(DeviceType::cpu, SumWords);
    RegisterMadeUp(DeviceType::cpu, kMadeUpKernels);
  });
}

}  // namespace vt::cpu
