#include "backend/vt/made_up.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "backend/vt/error.h"

namespace vt {

namespace {

std::array<MadeUpKernels, kDeviceTypes>& All() {
  static std::array<MadeUpKernels, kDeviceTypes> kernels{};
  return kernels;
}

const MadeUpKernels& KernelsFor(const Queue& queue) {
  const Device device = queue.backend().device();
  const MadeUpKernels& kernels = All()[static_cast<size_t>(device.type)];
  if (kernels.fill == nullptr || kernels.accept == nullptr)
    throw RefusedError(fmt::format("no made-up weights or acceptance on device {}", ToString(device)));
  return kernels;
}

}  // namespace

void RegisterMadeUp(DeviceType type, const MadeUpKernels& kernels) {
  All()[static_cast<size_t>(type)] = kernels;
}

void FillRandom(Queue& queue, const Tensor& out, const RandomFill& fill) {
  int exponent = 0;
  if (!(fill.amplitude > 0) || std::frexp(fill.amplitude, &exponent) != 0.5F)
    throw std::logic_error(fmt::format("random fill: amplitude {} is no power of two", fill.amplitude));
  if (!out.contiguous() || (out.dtype != DType::bf16 && out.dtype != DType::f32))
    throw std::logic_error(fmt::format("random fill: {} is not contiguous bf16 or f32", ShapeText(out)));
  KernelsFor(queue).fill(queue, out, fill);
}

void ForceAccept(Queue& queue, const ForcedAccept& args) {
  const bool fits = args.counts.dtype == DType::i32 && args.counts.dim(0) > 0 && args.block.rank == 1 &&
                    args.target.rank == 1 && args.block.dim(0) == args.target.dim(0);
  if (!fits)
    throw std::logic_error(fmt::format("forced accept: counts {}, block {}, target {}",
                                       ShapeText(args.counts), ShapeText(args.block),
                                       ShapeText(args.target)));
  KernelsFor(queue).accept(queue, args);
}

}  // namespace vt
