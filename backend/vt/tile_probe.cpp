#include "backend/vt/tile_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backend/vt/error.h"

namespace vt {

namespace {

constexpr int kFrom = Backend::kStamps - 2;
constexpr int kTo = Backend::kStamps - 1;
constexpr int kDepth = 32;           // ones that a turn adds to a sum
constexpr int kMostTurns = 1 << 19;  // sums stay whole numbers of float32

std::array<TileLoop, kDeviceTypes>& Kernels() {
  static std::array<TileLoop, kDeviceTypes> kernels{};
  return kernels;
}

TileLoop KernelFor(Device device) {
  if (!HasTileLoop(device)) throw RefusedError(fmt::format("no tile loop on device {}", ToString(device)));
  return Kernels()[static_cast<size_t>(device.type)];
}

}  // namespace

void RegisterTileLoop(DeviceType type, TileLoop kernel) { Kernels()[static_cast<size_t>(type)] = kernel; }
bool HasTileLoop(Device device) { return Kernels()[static_cast<size_t>(device.type)] != nullptr; }

TileProbe::TileProbe(Queue& queue)
    : queue_(queue),
      kernel_(KernelFor(queue.backend().device())),
      sums_(queue.backend().Alloc(kTileSums * sizeof(float))) {}

TileProbe::Run TileProbe::Once() {
  Backend& backend = queue_.backend();
  backend.Fill(queue_, sums_.data(), 0, sums_.bytes());
  backend.Stamp(queue_, kFrom);
  const double multiply_adds = kernel_(queue_, turns_, static_cast<float*>(sums_.data()));
  backend.Stamp(queue_, kTo);
  std::vector<float> sums(kTileSums);
  backend.CopyOut(queue_, sums.data(), sums_.data(), sums_.bytes());
  backend.Synchronize(queue_);
  const auto right = static_cast<float>(kDepth * turns_);
  if (!std::all_of(sums.begin(), sums.end(), [&](float sum) { return sum == right; }))
    throw EnvironmentError("the tile loop summed wrongly: not all of it was run");
  return {multiply_adds, backend.StampSeconds(queue_, kFrom, kTo)};
}

TileProbe::Run TileProbe::Measure(double least_s) {
  Run run = Once();
  while (run.seconds < least_s && turns_ < kMostTurns) {
    turns_ *= 2;
    run = Once();
  }
  return run;
}

}  // namespace vt
