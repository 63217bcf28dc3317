// NVIDIA: the HIP names used here, mapped to CUDA's. Included by vendor.h alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include "backend/vt/device.h"
#if defined(__CUDACC__)
#define WARMLEG_KERNELS
#include <cuda_runtime.h>
#endif

#define WARMLEG_SHARED(type, name, dims) __shared__ type name dims
// At a line of 128 bytes: a sweep whose asynchronous copies met the lines 16 bytes off took a quarter longer.
#define WARMLEG_DYNAMIC_SHARED(type, name)                                 \
  extern __shared__ __align__(128) unsigned char warmleg_dynamic_shared[]; \
  auto* const name = reinterpret_cast<type*>(warmleg_dynamic_shared)
#define WARMLEG_WAVE_KERNEL(wave) static_assert((wave) == 32)

namespace vt::hip::on_nvidia {

inline constexpr DeviceType kDeviceType = DeviceType::cuda;
inline constexpr bool kHasWave64 = false;

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
using hipEvent_t = cudaEvent_t;
using hipGraph_t = cudaGraph_t;
using hipGraphExec_t = cudaGraphExec_t;
using hipGraphNode_t = cudaGraphNode_t;
using hipDeviceAttribute_t = cudaDeviceAttr;
using hipStreamCaptureStatus = cudaStreamCaptureStatus;
using hipStreamCaptureMode = cudaStreamCaptureMode;
using hipMemcpyKind = cudaMemcpyKind;

inline constexpr hipError_t hipSuccess = cudaSuccess;
inline constexpr hipError_t hipErrorOutOfMemory = cudaErrorMemoryAllocation;
inline constexpr hipError_t hipErrorNoDevice = cudaErrorNoDevice;
inline constexpr hipError_t hipErrorNotReady = cudaErrorNotReady;
inline constexpr hipDeviceAttribute_t hipDeviceAttributeMultiprocessorCount = cudaDevAttrMultiProcessorCount;
inline constexpr hipDeviceAttribute_t hipDeviceAttributeIntegrated = cudaDevAttrIntegrated;
inline constexpr hipDeviceAttribute_t hipDeviceAttributeClockRate = cudaDevAttrClockRate;
inline constexpr hipDeviceAttribute_t hipDeviceAttributeMemoryClockRate = cudaDevAttrMemoryClockRate;
inline constexpr hipDeviceAttribute_t hipDeviceAttributeMemoryBusWidth = cudaDevAttrGlobalMemoryBusWidth;
inline constexpr hipDeviceAttribute_t hipDeviceAttributeWarpSize = cudaDevAttrWarpSize;
inline constexpr hipStreamCaptureMode hipStreamCaptureModeThreadLocal = cudaStreamCaptureModeThreadLocal;
inline constexpr hipStreamCaptureMode hipStreamCaptureModeRelaxed = cudaStreamCaptureModeRelaxed;
inline constexpr hipStreamCaptureStatus hipStreamCaptureStatusNone = cudaStreamCaptureStatusNone;
inline constexpr hipMemcpyKind hipMemcpyHostToDevice = cudaMemcpyHostToDevice;
inline constexpr hipMemcpyKind hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost;
inline constexpr hipMemcpyKind hipMemcpyDeviceToDevice = cudaMemcpyDeviceToDevice;
inline constexpr unsigned hipStreamNonBlocking = cudaStreamNonBlocking;
inline constexpr unsigned hipEventDisableTiming = cudaEventDisableTiming;
inline constexpr unsigned hipHostMallocDefault = cudaHostAllocDefault;
inline constexpr unsigned hipHostMallocMapped = cudaHostAllocMapped;
inline constexpr unsigned hipHostMallocCoherent = cudaHostAllocMapped;  // mapped memory is coherent here
inline constexpr unsigned hipMemAttachGlobal = cudaMemAttachGlobal;

inline hipError_t hipGetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
inline hipError_t hipSetDevice(int device) { return cudaSetDevice(device); }
inline hipError_t hipGetDevice(int* device) { return cudaGetDevice(device); }
inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  return cudaDeviceGetAttribute(value, attribute, device);
}
inline hipError_t hipDeviceGetPCIBusId(char* id, int length, int device) {
  return cudaDeviceGetPCIBusId(id, length, device);
}
inline hipError_t hipGetLastError() { return cudaGetLastError(); }
inline const char* hipGetErrorName(hipError_t error) { return cudaGetErrorName(error); }
inline const char* hipGetErrorString(hipError_t error) { return cudaGetErrorString(error); }
inline hipError_t hipMalloc(void** data, size_t bytes) { return cudaMalloc(data, bytes); }
inline hipError_t hipFree(void* data) { return cudaFree(data); }
inline hipError_t hipHostMalloc(void** data, size_t bytes, unsigned flags) {
  return cudaHostAlloc(data, bytes, flags);
}
inline hipError_t hipHostFree(void* data) { return cudaFreeHost(data); }
inline hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(device, host, flags);
}
inline hipError_t hipMallocManaged(void** data, size_t bytes, unsigned flags = hipMemAttachGlobal) {
  return cudaMallocManaged(data, bytes, flags);
}
// The kind follows from the addresses: memory of a host-coherent backend is the host's, whatever it is used
// as.
inline hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind,
                                 hipStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
inline hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  return cudaMemsetAsync(to, value, bytes, stream);
}
inline hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithFlags(stream, flags);
}
inline hipError_t hipStreamDestroy(hipStream_t stream) { return cudaStreamDestroy(stream); }
inline hipError_t hipStreamSynchronize(hipStream_t stream) { return cudaStreamSynchronize(stream); }
inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  return cudaStreamWaitEvent(stream, event, flags);
}
inline hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
inline hipError_t hipEventDestroy(hipEvent_t event) { return cudaEventDestroy(event); }
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return cudaEventRecord(event, stream);
}
inline hipError_t hipEventSynchronize(hipEvent_t event) { return cudaEventSynchronize(event); }
inline hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return cudaStreamBeginCapture(stream, mode);
}
inline hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return cudaStreamEndCapture(stream, graph);
}
inline hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  return cudaThreadExchangeStreamCaptureMode(mode);
}
inline hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status) {
  return cudaStreamIsCapturing(stream, status);
}
inline hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, hipGraphNode_t*, char*,
                                      size_t) {
  return cudaGraphInstantiate(exec, graph, 0);
}
inline hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  return cudaGraphLaunch(exec, stream);
}
inline hipError_t hipGraphExecDestroy(hipGraphExec_t exec) { return cudaGraphExecDestroy(exec); }
inline hipError_t hipGraphDestroy(hipGraph_t graph) { return cudaGraphDestroy(graph); }

struct DeviceText {
  std::string name, arch;
  size_t memory_bytes = 0;
};
inline DeviceText DescribeDevice(int index) {
  DeviceText text;
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return text;
  text.name = properties.name;
  text.arch = "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
  text.memory_bytes = properties.totalGlobalMem;
  return text;
}
struct Releases {
  std::string built_with, runtime, driver;
};
inline std::string ReleaseText(int version) {  // as CUDART_VERSION counts
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}
inline Releases RuntimeReleases() {
  Releases r{ReleaseText(CUDART_VERSION), {}, {}};
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) r.runtime = ReleaseText(version);
  if (cudaDriverGetVersion(&version) == cudaSuccess) r.driver = ReleaseText(version);
  return r;
}
inline double ClockHz(int) { return 1e9; }  // %globaltimer counts ns
inline std::string ErrorDetail() { return {}; }
// Shared memory of a multiprocessor, which its blocks divide; 0: not known.
inline size_t SharedOfUnit(int index) {
  int bytes = 0;
  const cudaError_t error =
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, index);
  return error == cudaSuccess ? static_cast<size_t>(bytes) : 0;
}

// Lets a kernel have as much dynamic shared memory as the device has: above 48 KB in all it has to ask (CUDA
// programming guide, shared memory). Always the same value, since another thread may be about to launch it.
inline cudaError_t AllowAllShared(const void* entry) {
  int index = 0;
  int most = 0;
  cudaFuncAttributes attributes;
  cudaError_t error = cudaGetDevice(&index);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
  }
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, entry);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              most - static_cast<int>(attributes.sharedSizeBytes));
}

template <class... P>
hipError_t LaunchOn(hipStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                    const char*, int, const std::tuple<P...>& values, bool early) {
  const void* entry = reinterpret_cast<const void*>(kernel);
  if (shared_bytes > 0) {
    const cudaError_t error = AllowAllShared(entry);
    if (error != cudaSuccess) return error;
  }
  return std::apply(
      [&](const P&... value) {
        void* args[] = {const_cast<std::remove_const_t<P>*>(&value)..., nullptr};
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = grid;
        config.blockDim = block;
        config.dynamicSmemBytes = shared_bytes;
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = early ? 1 : 0;
        return cudaLaunchKernelExC(&config, entry, args);
      },
      values);
}

#if defined(__CUDACC__)
inline constexpr unsigned kAllLanes = 0xffffffffU;

// Programmatic dependent launch (CUDA programming guide): the next kernel may be scheduled once every block
// of this one has said so or ended; AwaitPrevious returns when all work queued before has ended.
__device__ inline void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ inline void AwaitPrevious() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__device__ inline void BlockSync() { __syncthreads(); }
__device__ inline void WaveSync() { __syncwarp(); }
__device__ inline void DeviceFence() { __threadfence(); }
__device__ inline uint64_t DeviceClock() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

inline constexpr uint64_t kCycleMask = ~uint64_t{0};
__device__ inline uint64_t CycleCounter() { return static_cast<uint64_t>(clock64()); }

template <int kWave>
__device__ inline int LaneId() {
  return static_cast<int>(threadIdx.x) % kWave;
}
template <int kWave, class T>
__device__ inline T Shuffle(T value, int lane) {
  return __shfl_sync(kAllLanes, value, lane, kWave);
}
template <int kWave, class T>
__device__ inline T ShuffleXor(T value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask, kWave);
}
template <int kWave, class T>
__device__ inline T ShuffleDown(T value, int delta) {
  return __shfl_down_sync(kAllLanes, value, static_cast<unsigned>(delta), kWave);
}
template <int kWave>
__device__ inline uint64_t Ballot(bool predicate) {
  return __ballot_sync(kAllLanes, predicate ? 1 : 0);
}
#endif

}  // namespace vt::hip::on_nvidia

#if defined(__CUDACC__)
#include "backend/hip/vendor/butterfly.h"
#endif
