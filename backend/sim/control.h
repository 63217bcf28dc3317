// What tests set and read on the simulated devices; no HIP name here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/sim/hip_sim.h"

namespace vt::sim {

struct DeviceConfig {
  int wave = 32;  // 32 or 64 lanes
  size_t memory_bytes = size_t{1} << 30;
  int compute_units = 4;
  bool guarded = true;  // hipMalloc memory is PROT_NONE while nothing runs
};

// Starts over with these devices; nothing may be alive. Without a call there are two devices, wave 32 and
// wave 64, changed by WARMLEG_SIM_DEVICES=n, WARMLEG_SIM_WAVE=32|64 (of all) and WARMLEG_SIM_MEMORY_MB=n.
// Throws std::logic_error when streams, events or memory are still alive.
void Configure(const std::vector<DeviceConfig>& devices);

// Where a failure can be injected: hipMalloc, hipHostMalloc and hipMallocManaged; kernel and graph launches;
// hipMemcpyAsync and hipMemsetAsync.
enum class Point { allocation, launch, copy };

// The n-th call from now (1: the next) returns `error` once and does nothing.
void FailAt(Point point, uint64_t nth, hipError_t error);
void ClearFailures();
// Calls so far, refused ones included.
uint64_t Calls(Point point);

// Every later call on the device fails with hipErrorLaunchFailure until hipDeviceReset or Configure.
void LoseDevice(int device);

// The text of the latest fault of a kernel (barrier not reached, canary overwritten, ...), empty when none.
std::string LastFault();

struct Usage {
  size_t allocations = 0;  // hipMalloc and hipMallocManaged
  size_t bytes = 0;
  size_t host_allocations = 0;  // hipHostMalloc
  size_t streams = 0;
};
Usage LiveUsage(int device);
// Asynchronous copies whose host side was neither pinned nor managed memory.
uint64_t PageableCopies();
// Operations queued on the device that nothing has waited for yet.
size_t PendingWork(int device);

// Threads of a block start in reverse; a kernel that needs an order shows it.
void SetReverseThreads(bool reverse);

}  // namespace vt::sim
