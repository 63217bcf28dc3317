// The simulated device: names of HIP from backend/sim. Included by vendor.h alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>

#include "backend/sim/control.h"
#include "backend/sim/hip_sim.h"
#include "backend/sim/kernel.h"
#include "backend/vt/device.h"

// NOLINTBEGIN(bugprone-reserved-identifier): HIP's own keywords, which plain C++ does not have
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
// NOLINTEND(bugprone-reserved-identifier)

#define WARMLEG_KERNELS
#define WARMLEG_SHARED(type, name, dims)          \
  using name##_shared_type = type dims;           \
  static const char name##_shared_site = 0;       \
  auto& name = *static_cast<name##_shared_type*>( \
      ::vt::sim::SharedAt(&name##_shared_site, sizeof(name##_shared_type), alignof(name##_shared_type)))
#define WARMLEG_DYNAMIC_SHARED(type, name) auto* const name = static_cast<type*>(::vt::sim::DynamicShared())
#define WARMLEG_WAVE_KERNEL(wave) static_assert((wave) == 32 || (wave) == 64)

namespace vt::hip::on_sim {

using namespace ::vt::sim;  // NOLINT(google-build-using-namespace): HIP's names are global elsewhere

inline constexpr DeviceType kDeviceType = DeviceType::sim;
inline constexpr bool kHasWave64 = true;

struct DeviceText {
  std::string name, arch;
  size_t memory_bytes = 0;
};
inline DeviceText DescribeDevice(int index) {
  DeviceText text;
  char name[64] = "";
  if (hipDeviceGetName(name, sizeof(name), index) == hipSuccess) text.name = name;
  text.arch = "sim";
  static_cast<void>(hipDeviceTotalMem(&text.memory_bytes, index));
  return text;
}
struct Releases {
  std::string built_with, runtime, driver;
};
inline Releases RuntimeReleases() { return {"simulated", "simulated", "simulated"}; }
inline double ClockHz(int) { return 1e9; }
inline size_t SharedOfUnit(int) { return 0; }  // kernels do not start early
// What a kernel did wrong, when the runtime knows.
inline std::string ErrorDetail() { return LastFault(); }

template <class... P>
hipError_t LaunchOn(hipStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                    const char* file, int line, const std::tuple<P...>& values, bool /*early*/) {
  return LaunchKernel(stream, Geometry{grid, block, shared_bytes, file, line},
                      [kernel, values] { std::apply(kernel, values); });
}

// Kernels run one after another.
inline void LetNextStart() {}
inline void AwaitPrevious() {}

inline void BlockSync() { BlockBarrier(); }
inline void DeviceFence() {}
inline uint64_t DeviceClock() { return ClockTicks(); }
inline constexpr uint64_t kCycleMask = 0x3FFFFFFF;  // it wraps as gfx11's does, but after a second
inline uint64_t CycleCounter() { return ClockTicks() & kCycleMask; }  // 1000 MHz

template <int kWave>
int LaneId() {
  return WaveLane(kWave);
}
template <int kWave, class T>
T Shuffle(T value, int lane) {
  return FromWord<T>(WaveExchange(kWave, ToWord(value))[lane & (kWave - 1)]);
}
template <int kWave, class T>
T ShuffleXor(T value, int mask) {
  return Shuffle<kWave>(value, WaveLane(kWave) ^ mask);
}
// The own value where lane + delta is past the wave.
template <int kWave, class T>
T ShuffleDown(T value, int delta) {
  const int from = WaveLane(kWave) + delta;
  return Shuffle<kWave>(value, from < kWave ? from : WaveLane(kWave));
}
template <int kWave>
uint64_t Ballot(bool predicate) {
  const uint64_t* all = WaveExchange(kWave, predicate ? 1 : 0);
  uint64_t bits = 0;
  for (int i = 0; i < kWave; ++i) bits |= all[i] << i;
  return bits;
}

// The butterfly of the GPU versions, in their order, from one exchange.
template <int kWave, class T, class Combine>
T WaveCombine(T value, Combine combine) {
  const uint64_t* all = WaveExchange(kWave, ToWord(value));
  T at[kWave];
  for (int i = 0; i < kWave; ++i) at[i] = FromWord<T>(all[i]);
  for (int width = kWave / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) at[i] = combine(at[i], at[i + width]);
  }
  return at[0];
}
template <int kWave, class T>
T WaveSum(T value) {
  return WaveCombine<kWave>(value, [](T a, T b) { return a + b; });
}
template <int kWave, class T>
T WaveMax(T value) {
  return WaveCombine<kWave>(value, [](T a, T b) { return b > a ? b : a; });
}

template <class T>
T AtomicAdd(T* at, T value) {
  T old = *at;
  T sum = static_cast<T>(old + value);
  while (!__atomic_compare_exchange(at, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    sum = static_cast<T>(old + value);
  }
  return old;
}
inline uint64_t AtomicMax(uint64_t* at, uint64_t value) {
  uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (old < value &&
         !__atomic_compare_exchange_n(at, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace vt::hip::on_sim
