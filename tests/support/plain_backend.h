// Memory of the host behind the Backend interface, nothing else: for tests that only load weights.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>

#include "backend/vt/backend.h"

namespace warmleg::testing {

class PlainBackend : public vt::Backend {
 public:
  PlainBackend() : Backend(vt::Device{}) {}

  std::function<void(const void* host, size_t bytes)> on_copy_in;

  vt::DeviceInfo Info() const override { return {}; }
  std::unique_ptr<vt::Queue> CreateQueue() override { return std::make_unique<vt::Queue>(*this); }
  void CopyIn(vt::Queue&, void* device, const void* host, size_t bytes) override {
    if (on_copy_in) on_copy_in(host, bytes);
    std::memcpy(device, host, bytes);
  }
  void CopyOut(vt::Queue&, void* host, const void* device, size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void Copy(vt::Queue&, void* to, const void* from, size_t bytes) override { std::memmove(to, from, bytes); }
  void Fill(vt::Queue&, void* to, uint8_t value, size_t bytes) override { std::memset(to, value, bytes); }
  void Synchronize(vt::Queue&) override {}
  void Stamp(vt::Queue&, int) override {}
  double StampSeconds(vt::Queue&, int, int) override { return 0; }

 protected:
  void* AllocBytes(size_t bytes) override { return std::malloc(bytes); }
  void FreeBytes(void* data) noexcept override { std::free(data); }
};

}  // namespace warmleg::testing
