#include "backend/vt/tile_probe.h"

#include <fmt/core.h>

#include <array>
#include <numeric>
#include <vector>

#include "backend/vt/error.h"

namespace vt {

namespace {

constexpr int kFrom = Backend::kStamps - 2;
constexpr int kTo = Backend::kStamps - 1;
constexpr int kMostTurns = 1 << 18;  // 32 ones a turn: a sum stays a whole number of float32

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
      sums_(queue.backend().Alloc(kTileSums * sizeof(uint64_t))) {}

TileProbe::Run TileProbe::Once() {
  Backend& backend = queue_.backend();
  backend.Fill(queue_, sums_.data(), 0, sums_.bytes());
  backend.Stamp(queue_, kFrom);
  const uint64_t multiply_adds = kernel_(queue_, turns_, static_cast<uint64_t*>(sums_.data()));
  backend.Stamp(queue_, kTo);
  std::vector<uint64_t> sums(kTileSums);
  backend.CopyOut(queue_, sums.data(), sums_.data(), sums_.bytes());
  backend.Synchronize(queue_);
  if (std::accumulate(sums.begin(), sums.end(), uint64_t{0}) != multiply_adds)
    throw EnvironmentError("the tile loop summed wrongly: not all of it was run");
  return {static_cast<double>(multiply_adds), backend.StampSeconds(queue_, kFrom, kTo)};
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
