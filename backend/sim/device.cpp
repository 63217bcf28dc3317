// Devices, errors, and what tests control.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backend/sim/runtime.h"

namespace vt::sim {

namespace {

size_t FromEnvironment(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::vector<DeviceConfig> DefaultDevices() {
  std::vector<DeviceConfig> devices(FromEnvironment("WARMLEG_SIM_DEVICES", 2));
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].wave = FromEnvironment("WARMLEG_SIM_WAVE", i % 2 == 0 ? 32 : 64) == 64 ? 64 : 32;
    devices[i].memory_bytes = FromEnvironment("WARMLEG_SIM_MEMORY_MB", 1024) << 20;
  }
  return devices;
}

void SetDevices(Runtime& rt, const std::vector<DeviceConfig>& devices) {
  rt.devices.clear();
  for (const DeviceConfig& config : devices) {
    SimDevice device;
    device.config = config;
    device.arena = std::make_unique<Arena>(config.memory_bytes, config.guarded);
    rt.devices.push_back(std::move(device));
  }
  rt.injections = {};
  rt.calls = {};
  rt.pageable_copies = 0;
  rt.fault.clear();
  rt.reverse = false;
}

hipError_t CopyText(const std::string& text, char* to, int length) {
  if (to == nullptr || length <= 0) return hipErrorInvalidValue;
  std::snprintf(to, static_cast<size_t>(length), "%s", text.c_str());
  return hipSuccess;
}

struct ErrorText {
  hipError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidResourceHandle, "hipErrorInvalidResourceHandle", "invalid resource handle"},
    {hipErrorIllegalState, "hipErrorIllegalState", "the operation cannot be performed in the present state"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "out of resources to launch"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

const ErrorText& Find(hipError_t error) {
  for (const ErrorText& row : kErrors) {
    if (row.error == error) return row;
  }
  return kErrors[std::size(kErrors) - 1];
}

}  // namespace

Runtime& TheRuntime() {
  // Never destroyed: threads may still hold fibers and streams at exit.
  static Runtime& runtime = *[] {
    auto* rt = new Runtime;
    SetDevices(*rt, DefaultDevices());
    return rt;
  }();
  return runtime;
}

ThreadState& ThisThread() {
  thread_local ThreadState state;
  return state;
}

SimDevice& Current(Runtime& rt) { return rt.devices.at(static_cast<size_t>(ThisThread().device)); }

void Configure(const std::vector<DeviceConfig>& devices) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  size_t memory = rt.host.size();
  for (const SimDevice& device : rt.devices) memory += device.arena->count();
  if (!rt.streams.empty() || !rt.events.empty() || !rt.graphs.empty() || !rt.execs.empty() || memory > 0) {
    throw std::logic_error("sim: " + std::to_string(rt.streams.size()) + " streams, " +
                           std::to_string(rt.events.size()) + " events, " +
                           std::to_string(rt.graphs.size() + rt.execs.size()) + " graphs and " +
                           std::to_string(memory) + " allocations are still alive");
  }
  SetDevices(rt, devices);
  ThisThread() = {};
}

hipError_t Inject(Runtime& rt, Point point) {
  const auto i = static_cast<size_t>(point);
  ++rt.calls[i];
  if (rt.injections[i].at != rt.calls[i]) return hipSuccess;
  rt.injections[i].at = 0;
  return rt.injections[i].error;
}

void FailAt(Point point, uint64_t nth, hipError_t error) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  const auto i = static_cast<size_t>(point);
  rt.injections[i] = {rt.calls[i] + nth, error};
}

void ClearFailures() {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  rt.injections = {};
}

uint64_t Calls(Point point) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  return rt.calls[static_cast<size_t>(point)];
}

void LoseDevice(int device) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  rt.devices.at(static_cast<size_t>(device)).sticky = hipErrorLaunchFailure;
}

std::string LastFault() {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  return rt.fault;
}

Usage LiveUsage(int device) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  const Arena& arena = *rt.devices.at(static_cast<size_t>(device)).arena;
  Usage usage{arena.count(), arena.bytes(), 0, 0};
  for (const auto& [data, block] : rt.host) {
    if (block.device != device) continue;
    ++(block.managed ? usage.allocations : usage.host_allocations);
    if (block.managed) usage.bytes += block.bytes;
  }
  for (const Stream* stream : rt.streams) usage.streams += stream->device == device ? 1 : 0;
  return usage;
}

uint64_t PageableCopies() {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  return rt.pageable_copies;
}

size_t PendingWork(int device) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  size_t pending = 0;
  for (const Stream* stream : rt.streams) pending += stream->device == device ? stream->queue.size() : 0;
  return pending;
}

void SetReverseThreads(bool reverse) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  rt.reverse = reverse;
}

hipError_t hipGetDeviceCount(int* count) {
  return Api([&](Runtime& rt) {
    if (count == nullptr) return hipErrorInvalidValue;
    *count = static_cast<int>(rt.devices.size());
    return rt.devices.empty() ? hipErrorNoDevice : hipSuccess;
  });
}

hipError_t hipSetDevice(int device) {
  return Api([&](Runtime& rt) {
    if (device < 0 || device >= static_cast<int>(rt.devices.size())) return hipErrorInvalidDevice;
    ThisThread().device = device;
    return hipSuccess;
  });
}

hipError_t hipGetDevice(int* device) {
  return Api([&](Runtime&) {
    if (device == nullptr) return hipErrorInvalidValue;
    *device = ThisThread().device;
    return hipSuccess;
  });
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  return Api([&](Runtime& rt) {
    if (value == nullptr) return hipErrorInvalidValue;
    if (device < 0 || device >= static_cast<int>(rt.devices.size())) return hipErrorInvalidDevice;
    const DeviceConfig& config = rt.devices[static_cast<size_t>(device)].config;
    switch (attribute) {
      case hipDeviceAttributeMultiprocessorCount:
        *value = config.compute_units;
        break;
      case hipDeviceAttributeIntegrated:
        *value = 1;
        break;
      case hipDeviceAttributeClockRate:
      case hipDeviceAttributeMemoryClockRate:  // no clock and no bus: the roof of a simulation is unknown
      case hipDeviceAttributeMemoryBusWidth:
        *value = 0;
        break;
      case hipDeviceAttributeWarpSize:
        *value = config.wave;
        break;
      case hipDeviceAttributeMaxThreadsPerBlock:
        *value = 1024;
        break;
      case hipDeviceAttributeMaxSharedMemoryPerBlock:
        *value = 64 * 1024;
        break;
    }
    return hipSuccess;
  });
}

hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  return Api([&](Runtime& rt) {
    if (device < 0 || device >= static_cast<int>(rt.devices.size())) return hipErrorInvalidDevice;
    return CopyText(
        "simulated device, wave " + std::to_string(rt.devices[static_cast<size_t>(device)].config.wave), name,
        length);
  });
}

hipError_t hipDeviceGetPCIBusId(char* id, int length, int device) {
  return Api([&](Runtime& rt) {
    if (device < 0 || device >= static_cast<int>(rt.devices.size())) return hipErrorInvalidDevice;
    char text[32];  // domain ffff: no real bus has it
    std::snprintf(text, sizeof(text), "ffff:%02x:00.0", static_cast<unsigned>(device) & 0xffU);
    return CopyText(text, id, length);
  });
}

hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t device) {
  return Api([&](Runtime& rt) {
    if (bytes == nullptr) return hipErrorInvalidValue;
    if (device < 0 || device >= static_cast<int>(rt.devices.size())) return hipErrorInvalidDevice;
    *bytes = rt.devices[static_cast<size_t>(device)].config.memory_bytes;
    return hipSuccess;
  });
}

// HIP runtime API reference, hipDeviceReset: the device starts over for the process. Memory and streams that
// are still owned stay until they are freed.
hipError_t hipDeviceReset() {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    Current(rt).sticky = hipSuccess;
    for (Stream* stream : rt.streams) {
      if (stream->device != ThisThread().device) continue;
      for (Operation& operation : stream->queue) {
        if (operation.set != nullptr) operation.set->done = true;
      }
      stream->queue.clear();
    }
    return hipSuccess;
  });
}

// HIP runtime API reference, hipGetLastError: returns the last error of this thread and resets it; an error
// that broke the device (sticky) comes back.
hipError_t hipGetLastError() {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  if (Current(rt).sticky != hipSuccess) return Current(rt).sticky;
  return std::exchange(ThisThread().last_error, hipSuccess);
}

hipError_t hipPeekAtLastError() {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  return Current(rt).sticky != hipSuccess ? Current(rt).sticky : ThisThread().last_error;
}

const char* hipGetErrorName(hipError_t error) { return Find(error).name; }
const char* hipGetErrorString(hipError_t error) { return Find(error).text; }

hipError_t hipRuntimeGetVersion(int* version) {
  if (version == nullptr) return hipErrorInvalidValue;
  *version = 0;
  return hipSuccess;
}
hipError_t hipDriverGetVersion(int* version) { return hipRuntimeGetVersion(version); }

}  // namespace vt::sim
