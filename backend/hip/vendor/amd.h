// AMD: the real HIP runtime. Uses only what the headers of HIP 5.2.3 have. Included by vendor.h alone.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include "backend/vt/device.h"

#if defined(__HIP__)
#define WARMLEG_KERNELS
#include <hip/hip_runtime.h>
#else
#include <hip/hip_runtime_api.h>
#ifndef __host__
#define __host__
#define __device__
#endif
#include <cmath>
#endif

#define WARMLEG_SHARED(type, name, dims) __shared__ type name dims
#define WARMLEG_DYNAMIC_SHARED(type, name)                                               \
  extern __shared__ __attribute__((aligned(16))) unsigned char warmleg_dynamic_shared[]; \
  auto* const name = reinterpret_cast<type*>(warmleg_dynamic_shared)
// The instantiation for the other wave size is never launched: its body is dropped.
#if defined(__HIP_DEVICE_COMPILE__)
#if defined(__GFX9__)
#define WARMLEG_DEVICE_WAVE 64
#else
#define WARMLEG_DEVICE_WAVE 32
#endif
#define WARMLEG_WAVE_KERNEL(wave) \
  if constexpr ((wave) != WARMLEG_DEVICE_WAVE) return
#else
#define WARMLEG_WAVE_KERNEL(wave) static_assert((wave) == 32 || (wave) == 64)
#endif

namespace vt::hip::on_amd {

inline constexpr DeviceType kDeviceType = DeviceType::rocm;
inline constexpr bool kHasWave64 = true;

struct DeviceText {
  std::string name, arch;
  size_t memory_bytes = 0;
};
inline DeviceText DescribeDevice(int index) {
  DeviceText text;
  hipDeviceProp_t properties;
  if (hipGetDeviceProperties(&properties, index) != hipSuccess) return text;
  text.name = properties.name;
  text.arch = properties.gcnArchName;
  text.arch = text.arch.substr(0, text.arch.find(':'));  // without :sramecc+:xnack-
  text.memory_bytes = properties.totalGlobalMem;
  return text;
}
struct Releases {
  std::string built_with, runtime, driver;
};
inline std::string ReleaseText(int version) {  // as HIP_VERSION counts
  return "HIP " + std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100) + "." +
         std::to_string(version % 100000);
}
inline Releases RuntimeReleases() {
  Releases r{ReleaseText(HIP_VERSION), {}, {}};
  int version = 0;
  if (hipRuntimeGetVersion(&version) == hipSuccess) r.runtime = ReleaseText(version);
  if (hipDriverGetVersion(&version) == hipSuccess) r.driver = ReleaseText(version);
  return r;
}
// The rate of wall_clock64: asked for where the headers have the attribute, else the constant 100 MHz of the
// supported targets.
inline double ClockHz([[maybe_unused]] int index) {
#if HIP_VERSION >= 50500000
  int khz = 0;
  if (hipDeviceGetAttribute(&khz, hipDeviceAttributeWallClockRate, index) == hipSuccess && khz > 0) {
    return khz * 1e3;
  }
#endif
  return 100e6;
}
inline size_t SharedOfUnit(int) { return 0; }  // kernels do not start early
inline std::string ErrorDetail() { return {}; }

template <class... P>
hipError_t LaunchOn(hipStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                    const char*, int, const std::tuple<P...>& values, bool /*early*/) {
  return std::apply(
      [&](const P&... value) {
        void* args[] = {const_cast<std::remove_const_t<P>*>(&value)..., nullptr};
        return hipLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, args, shared_bytes,
                               stream);
      },
      values);
}

#if defined(__HIP__)
// Kernels run one after another.
__device__ inline void LetNextStart() {}
__device__ inline void AwaitPrevious() {}

__device__ inline void BlockSync() { __syncthreads(); }
__device__ inline void DeviceFence() { __threadfence(); }
__device__ inline uint64_t DeviceClock() {
#if defined(__HIP_DEVICE_COMPILE__)
#if __has_builtin(__builtin_amdgcn_s_memrealtime)
  return __builtin_amdgcn_s_memrealtime();
#else
  // gfx11 and later have a message instead (RDNA3 ISA, MSG_RTN_GET_REALTIME); wall_clock64 of older HIP
  // headers is the constant -1 there.
  return __builtin_amdgcn_s_sendmsg_rtnl(0x83);
#endif
#else
  return 0;
#endif
}

// The shader's cycle counter: 20 bits on gfx11 (RDNA3 ISA, SHADER_CYCLES), 64 elsewhere.
#if defined(__GFX11__)
inline constexpr uint64_t kCycleMask = 0xFFFFF;
#else
inline constexpr uint64_t kCycleMask = ~uint64_t{0};
#endif
__device__ inline uint64_t CycleCounter() {
#if defined(__HIP_DEVICE_COMPILE__)
  return __builtin_readcyclecounter();
#else
  return 0;
#endif
}

template <int kWave>
__device__ inline int LaneId() {
  return static_cast<int>(threadIdx.x) % kWave;
}
template <int kWave, class T>
__device__ inline T Shuffle(T value, int lane) {
  return __shfl(value, lane, kWave);
}
template <int kWave, class T>
__device__ inline T ShuffleXor(T value, int mask) {
  return __shfl_xor(value, mask, kWave);
}
template <int kWave, class T>
__device__ inline T ShuffleDown(T value, int delta) {
  return __shfl_down(value, static_cast<unsigned>(delta), kWave);
}
template <int kWave>
__device__ inline uint64_t Ballot(bool predicate) {
  return static_cast<uint64_t>(__ballot(predicate ? 1 : 0));
}
#endif

}  // namespace vt::hip::on_amd

#if defined(__HIP__)
#include "backend/hip/vendor/butterfly.h"
#endif
