#include "backend/vt/read_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <vector>

#include "backend/vt/error.h"

namespace vt {

namespace {

constexpr uint8_t kFill = 0x5a;  // touched memory: untouched pages may all be the same zero page
constexpr uint64_t kWord = 0x5a5a5a5a5a5a5a5a;
constexpr int kFrom = Backend::kStamps - 2;
constexpr int kTo = Backend::kStamps - 1;

std::array<SumWords, kDeviceTypes>& Kernels() {
  static std::array<SumWords, kDeviceTypes> kernels{};
  return kernels;
}

SumWords KernelFor(Device device) {
  const SumWords kernel = Kernels()[static_cast<size_t>(device.type)];
  if (kernel == nullptr) throw RefusedError(fmt::format("no read probe on device {}", ToString(device)));
  return kernel;
}

}  // namespace

void RegisterSumWords(DeviceType type, SumWords kernel) { Kernels()[static_cast<size_t>(type)] = kernel; }

ReadProbe::ReadProbe(Queue& queue, uint64_t bytes)
    : queue_(queue),
      kernel_(KernelFor(queue.backend().device())),
      data_(queue.backend().Alloc(std::max<uint64_t>(bytes, uint64_t{1} << 20) / 16 * 16)),
      partials_(queue.backend().Alloc(kSumPartials * sizeof(uint64_t))) {
  queue.backend().Fill(queue, data_.data(), kFill, data_.bytes());
  queue.backend().Synchronize(queue);
}

double ReadProbe::Sweep() {
  Backend& backend = queue_.backend();
  backend.Stamp(queue_, kFrom);
  kernel_(queue_, data_.data(), data_.bytes(), static_cast<uint64_t*>(partials_.data()));
  backend.Stamp(queue_, kTo);
  std::vector<uint64_t> partials(kSumPartials);
  backend.CopyOut(queue_, partials.data(), partials_.data(), partials_.bytes());
  backend.Synchronize(queue_);
  const uint64_t sum = std::accumulate(partials.begin(), partials.end(), uint64_t{0});
  if (sum != data_.bytes() / 8 * kWord)
    throw EnvironmentError("the read probe summed wrongly: not all of it was read");
  return static_cast<double>(data_.bytes()) / backend.StampSeconds(queue_, kFrom, kTo) / 1e9;
}

double ReadProbe::Best(double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Sweep();  // first use
  double best = 0;
  for (int i = 0; i < 3 || elapsed() < seconds; ++i) best = std::max(best, Sweep());
  return best;
}

}  // namespace vt
