#include "backend/hip/staging.h"

#include <algorithm>
#include <cstring>

namespace vt::hip::WARMLEG_VENDOR {

void Staging::Prepare() {
  const std::lock_guard lock(mutex_);
  if (pinned_ != nullptr) return;
  try {
    for (Half& half : halves_) WARMLEG_HIP(hipEventCreateWithFlags(&half.free, hipEventDisableTiming));
    WARMLEG_HIP(hipHostMalloc(&pinned_, 2 * kHalfBytes, hipHostMallocDefault));
  } catch (...) {
    Release();
    throw;
  }
  halves_[0].data = static_cast<std::byte*>(pinned_);
  halves_[1].data = halves_[0].data + kHalfBytes;
}

void Staging::Release() noexcept {
  for (Half& half : halves_) {
    if (half.free != nullptr) static_cast<void>(hipEventDestroy(half.free));
    half = {};
  }
  if (pinned_ != nullptr) static_cast<void>(hipHostFree(pinned_));
  pinned_ = nullptr;
  static_cast<void>(hipGetLastError());
}

void Staging::In(hipStream_t stream, void* device, const void* host, size_t bytes) {
  const std::lock_guard lock(mutex_);
  try {
    InChunks(stream, static_cast<std::byte*>(device), static_cast<const std::byte*>(host), bytes);
  } catch (...) {  // a half whose event was not recorded must not be in use later
    static_cast<void>(hipStreamSynchronize(stream));
    static_cast<void>(hipGetLastError());
    throw;
  }
}

void Staging::InChunks(hipStream_t stream, std::byte* device, const std::byte* host, size_t bytes) {
  for (size_t at = 0, i = 0; at < bytes; at += kHalfBytes, ++i) {
    Half& half = halves_[i % 2];
    const size_t n = std::min(kHalfBytes, bytes - at);
    WARMLEG_HIP(hipEventSynchronize(half.free));
    std::memcpy(half.data, host + at, n);
    WARMLEG_HIP(hipMemcpyAsync(device + at, half.data, n, hipMemcpyHostToDevice, stream));
    WARMLEG_HIP(hipEventRecord(half.free, stream));
  }
}

void Staging::Out(hipStream_t stream, void* host, const void* device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  try {
    OutChunks(stream, static_cast<std::byte*>(host), static_cast<const std::byte*>(device), bytes);
  } catch (...) {
    static_cast<void>(hipStreamSynchronize(stream));
    static_cast<void>(hipGetLastError());
    throw;
  }
}

void Staging::OutChunks(hipStream_t stream, std::byte* host, const std::byte* device, size_t bytes) {
  for (const Half& half : halves_) WARMLEG_HIP(hipEventSynchronize(half.free));
  const size_t chunks = DivUp(bytes, kHalfBytes);
  const auto size_of = [&](size_t chunk) { return std::min(kHalfBytes, bytes - chunk * kHalfBytes); };
  // One chunk is on its way while the one before is copied out.
  for (size_t i = 0; i <= chunks; ++i) {
    if (i < chunks) {
      Half& half = halves_[i % 2];
      WARMLEG_HIP(
          hipMemcpyAsync(half.data, device + i * kHalfBytes, size_of(i), hipMemcpyDeviceToHost, stream));
      WARMLEG_HIP(hipEventRecord(half.free, stream));
    }
    if (i > 0) {
      const Half& half = halves_[(i - 1) % 2];
      WARMLEG_HIP(hipEventSynchronize(half.free));
      std::memcpy(host + (i - 1) * kHalfBytes, half.data, size_of(i - 1));
    }
  }
}

}  // namespace vt::hip::WARMLEG_VENDOR
