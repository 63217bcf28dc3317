// Memory of the simulated devices and of the host, and copies.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backend/sim/runtime.h"
#include "backend/sim/sanitizer.h"

namespace vt::sim {

namespace {

constexpr size_t kAlign = 256;
constexpr size_t kRedZone = 256;  // before and after each allocation
constexpr std::byte kCanary{0xc5};
constexpr int kPoison = 0xff;  // NaN as float and bf16, -1 as int

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

// The red zones are poisoned for AddressSanitizer, which must not see this look at them.
WARMLEG_NO_ASAN bool Intact(const std::byte* begin, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    if (begin[i] != kCanary) return false;
  }
  return true;
}

}  // namespace

Arena::Arena(size_t bytes, bool guarded) : reserved_(RoundUp(bytes, 4096)), guarded_(guarded) {
  void* base = mmap(nullptr, reserved_, guarded ? PROT_NONE : PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(base);
}

Arena::~Arena() {
  UnpoisonAddresses(base_, reserved_);
  munmap(base_, reserved_);
}

void Arena::Protect(int protection) const {
  if (guarded_ && top_ > 0) mprotect(base_, RoundUp(top_, 4096), protection);
}

void Arena::Open() {
  if (open_++ == 0) Protect(PROT_READ | PROT_WRITE);
}

void Arena::Close() {
  if (--open_ == 0) Protect(PROT_NONE);
}

void* Arena::Allocate(size_t bytes) {
  const size_t whole = 2 * kRedZone + RoundUp(bytes, kAlign);
  size_t at = top_;
  const auto gap = std::find_if(free_.begin(), free_.end(), [&](const auto& g) { return g.second >= whole; });
  if (gap != free_.end()) {
    at = gap->first;
    const size_t left = gap->second - whole;
    free_.erase(gap);
    if (left > 0) free_.emplace(at + whole, left);
  } else {
    if (whole > reserved_ - top_) return nullptr;
    top_ += whole;
    if (open_ > 0) Protect(PROT_READ | PROT_WRITE);
  }
  const OpenArena open(*this);
  std::byte* data = base_ + at + kRedZone;
  UnpoisonAddresses(base_ + at, whole);
  std::memset(base_ + at, static_cast<int>(kCanary), whole);
  std::memset(data, kPoison, bytes);
  PoisonAddresses(base_ + at, kRedZone);
  PoisonAddresses(data + bytes, whole - kRedZone - bytes);
  live_.emplace(at + kRedZone, bytes);
  bytes_ += bytes;
  return data;
}

bool Arena::Free(void* data) {
  const auto found = live_.find(static_cast<size_t>(static_cast<std::byte*>(data) - base_));
  if (found == live_.end()) return false;
  const size_t bytes = found->second;
  const size_t whole = 2 * kRedZone + RoundUp(bytes, kAlign);
  size_t at = found->first - kRedZone;
  size_t gap = whole;
  live_.erase(found);
  bytes_ -= bytes;
  {
    const OpenArena open(*this);
    UnpoisonAddresses(base_ + at, whole);
    std::memset(base_ + at, kPoison, whole);
    PoisonAddresses(base_ + at, whole);
  }
  const auto next = free_.find(at + gap);
  if (next != free_.end()) {
    gap += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(at);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == at) {
      at = before->first;
      gap += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(at, gap);
  return true;
}

void Arena::CheckCanaries() const {
  for (const auto& [offset, bytes] : live_) {
    const std::byte* data = base_ + offset;
    const size_t tail = RoundUp(bytes, kAlign) - bytes + kRedZone;
    if (Intact(data - kRedZone, kRedZone) && Intact(data + bytes, tail)) continue;
    throw Fault("memory next to an allocation of " + std::to_string(bytes) + " bytes was written");
  }
}

bool Arena::Contains(const void* data, size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(data);
  if (at < base_ || at >= base_ + reserved_) return false;
  const auto offset = static_cast<size_t>(at - base_);
  auto found = live_.upper_bound(offset);
  if (found == live_.begin()) return false;
  --found;
  return offset + bytes <= found->first + found->second;
}

namespace {

bool InAnyArena(const Runtime& rt, const void* data) {
  return std::any_of(rt.devices.begin(), rt.devices.end(),
                     [&](const SimDevice& device) { return device.arena->Contains(data, 0); });
}

const HostBlock* HostBlockOf(const Runtime& rt, const void* data) {
  auto found = rt.host.upper_bound(const_cast<void*>(data));
  if (found == rt.host.begin()) return nullptr;
  --found;
  const auto* begin = static_cast<const std::byte*>(found->first);
  return static_cast<const std::byte*>(data) < begin + found->second.bytes ? &found->second : nullptr;
}

hipError_t BeforeAllocation(Runtime& rt, void** data, size_t bytes) {
  if (const hipError_t error = Inject(rt, Point::allocation); error != hipSuccess) return error;
  if (Current(rt).sticky != hipSuccess) return Current(rt).sticky;
  if (data == nullptr || bytes == 0) return hipErrorInvalidValue;
  return RefuseDuringCapture(rt);
}

hipError_t AllocateOnHost(Runtime& rt, void** data, size_t bytes, bool managed) {
  void* block = std::aligned_alloc(4096, RoundUp(bytes, 4096));
  if (block == nullptr) return hipErrorOutOfMemory;
  std::memset(block, kPoison, RoundUp(bytes, 4096));
  PoisonAddresses(static_cast<std::byte*>(block) + bytes, RoundUp(bytes, 4096) - bytes);
  rt.host.emplace(block, HostBlock{bytes, ThisThread().device, managed});
  *data = block;
  return hipSuccess;
}

hipError_t FreeOnHost(Runtime& rt, void* data) {
  const auto found = rt.host.find(data);
  if (found == rt.host.end()) return hipErrorInvalidValue;
  const HostBlock block = found->second;
  DrainDevice(rt, block.device);  // a lost device's memory is freed all the same
  UnpoisonAddresses(data, RoundUp(block.bytes, 4096));
  rt.host.erase(found);
  std::free(data);
  return hipSuccess;
}

}  // namespace

// HIP runtime API reference, stream capture: an allocation is a potentially unsafe call, refused while a
// capture that is not relaxed is under way on this thread, or a global one on any.
hipError_t hipMalloc(void** data, size_t bytes) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = BeforeAllocation(rt, data, bytes); error != hipSuccess) return error;
    *data = Current(rt).arena->Allocate(bytes);
    return *data != nullptr ? hipSuccess : hipErrorOutOfMemory;
  });
}

// HIP runtime API reference, hipFree: waits for the device's work first; a null pointer is fine.
hipError_t hipFree(void* data) {
  return Api([&](Runtime& rt) {
    if (data == nullptr) return hipSuccess;
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    if (rt.host.contains(data)) return rt.host[data].managed ? FreeOnHost(rt, data) : hipErrorInvalidValue;
    for (size_t i = 0; i < rt.devices.size(); ++i) {
      Arena& arena = *rt.devices[i].arena;
      if (!arena.Contains(data, 0)) continue;
      const hipError_t error = DrainDevice(rt, static_cast<int>(i));
      if (!arena.Free(data)) return hipErrorInvalidValue;
      return rt.devices[i].sticky != hipSuccess ? hipSuccess : error;
    }
    return hipErrorInvalidValue;
  });
}

hipError_t hipHostMalloc(void** data, size_t bytes, unsigned) {
  return Api([&](Runtime& rt) {
    const hipError_t error = BeforeAllocation(rt, data, bytes);
    return error != hipSuccess ? error : AllocateOnHost(rt, data, bytes, false);
  });
}

hipError_t hipMallocManaged(void** data, size_t bytes, unsigned) {
  return Api([&](Runtime& rt) {
    const hipError_t error = BeforeAllocation(rt, data, bytes);
    return error != hipSuccess ? error : AllocateOnHost(rt, data, bytes, true);
  });
}

hipError_t hipHostFree(void* data) {
  return Api([&](Runtime& rt) {
    if (data == nullptr) return hipSuccess;
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    if (rt.host.contains(data) && rt.host[data].managed) return hipErrorInvalidValue;
    return FreeOnHost(rt, data);
  });
}

hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned) {
  return Api([&](Runtime& rt) {
    if (device == nullptr || HostBlockOf(rt, host) == nullptr) return hipErrorInvalidValue;
    *device = host;
    return hipSuccess;
  });
}

namespace {

// Which side of a copy a pointer may stand on. Device memory of another device needs peer access, which the
// simulated devices do not have.
bool OnDevice(Runtime& rt, const Stream& stream, const void* data, size_t bytes) {
  return rt.devices[static_cast<size_t>(stream.device)].arena->Contains(data, bytes) ||
         HostBlockOf(rt, data) != nullptr;
}

hipError_t CheckCopy(Runtime& rt, const Stream& stream, void* to, const void* from, size_t bytes,
                     hipMemcpyKind kind) {
  if (to == nullptr || from == nullptr) return hipErrorInvalidValue;
  const bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  const bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  for (const auto& [data, device] : {std::pair<const void*, bool>{to, to_device}, {from, from_device}}) {
    if (device && !OnDevice(rt, stream, data, bytes)) return hipErrorInvalidValue;
    if (!device && kind != hipMemcpyDefault && InAnyArena(rt, data)) return hipErrorInvalidValue;
    if (!device && HostBlockOf(rt, data) == nullptr && !InAnyArena(rt, data)) ++rt.pageable_copies;
  }
  return hipSuccess;
}

}  // namespace

// HIP runtime API reference, hipMemcpyAsync: the host side may not be reused before the copy is done. Here it
// is read or written when the stream runs, as late as a GPU may.
hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = Inject(rt, Point::copy); error != hipSuccess) return error;
    if (const hipError_t error = CheckEnqueue(rt, stream); error != hipSuccess) return error;
    if (bytes == 0) return hipSuccess;
    if (const hipError_t error = CheckCopy(rt, *stream, to, from, bytes, kind); error != hipSuccess)
      return error;
    return Enqueue(rt, stream, {[to, from, bytes] { std::memmove(to, from, bytes); }, nullptr, nullptr});
  });
}

// HIP runtime API reference, hipMemcpy: blocks, in the order of the default stream; unsafe during capture.
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = Inject(rt, Point::copy); error != hipSuccess) return error;
    if (const hipError_t error = RefuseDuringCapture(rt); error != hipSuccess) return error;
    if (to == nullptr || from == nullptr) return hipErrorInvalidValue;
    if (const hipError_t error = DrainDevice(rt, ThisThread().device); error != hipSuccess) return error;
    const OpenArena open(*Current(rt).arena);
    std::memmove(to, from, bytes);
    return hipSuccess;
  });
}

hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = Inject(rt, Point::copy); error != hipSuccess) return error;
    if (const hipError_t error = CheckEnqueue(rt, stream); error != hipSuccess) return error;
    if (bytes == 0) return hipSuccess;
    if (to == nullptr || !OnDevice(rt, *stream, to, bytes)) return hipErrorInvalidValue;
    return Enqueue(rt, stream, {[to, value, bytes] { std::memset(to, value, bytes); }, nullptr, nullptr});
  });
}

}  // namespace vt::sim
