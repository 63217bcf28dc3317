// SiluMul and SigmoidGate.
#include "backend/cpu/kernels.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/row_kernels.h"

namespace vt::cpu {

void SiluMul(Queue&, const SiluMulArgs& args) {
  const int64_t m = args.out.dim(1);
  ParallelFor(args.out.dim(0), 4 * args.out.count(), [&](int64_t r) {
    const float* gate = args.gate_up.as<float>() + 2 * r * m;
    Rows().silu_mul(gate, gate + m, args.out.as<float>() + r * m, m);
  });
}

void SigmoidGate(Queue&, const SigmoidGateArgs& args) {
  const int64_t heads = args.x.dim(1);
  const int64_t d = args.x.dim(2);
  ParallelFor(args.x.dim(0), 4 * args.x.count(), [&](int64_t r) {
    for (int64_t h = 0; h < heads; ++h) {
      Rows().sigmoid_mul(args.x.as<float>() + (r * heads + h) * d,
                         args.gate.as<float>() + r * args.gate.step(0) + h * args.gate.step(1), d);
    }
  });
}

}  // namespace vt::cpu
