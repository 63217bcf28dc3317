// Copies between the device and any host memory through a bounded pinned buffer: a file mapping is never
// handed to the runtime.
#pragma once

#include <array>
#include <mutex>

#include "backend/hip/vendor/vendor.h"

namespace vt::hip::WARMLEG_VENDOR {

class Staging {
 public:
  static constexpr size_t kHalfBytes = size_t{4} << 20;

  Staging() = default;
  ~Staging() { Release(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The buffer and its events, on the current device; a no-op when they are there. Leaves nothing behind when
  // it throws.
  void Prepare();
  // `host` may be reused on return.
  void In(hipStream_t stream, void* device, const void* host, size_t bytes);
  // The data is in `host` on return.
  void Out(hipStream_t stream, void* host, const void* device, size_t bytes);

 private:
  struct Half {
    std::byte* data = nullptr;
    hipEvent_t free = nullptr;  // reached when the device is done with the half
  };
  void Release() noexcept;
  void OutChunks(hipStream_t stream, std::byte* host, const std::byte* device, size_t bytes);
  void InChunks(hipStream_t stream, std::byte* device, const std::byte* host, size_t bytes);

  std::mutex mutex_;  // two host threads take turns
  void* pinned_ = nullptr;
  std::array<Half, 2> halves_;
};

}  // namespace vt::hip::WARMLEG_VENDOR
