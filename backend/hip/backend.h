// RocmBackend: one GPU through HIP. The same source is compiled for AMD's runtime (device rocm), for CUDA
// through vendor/nvidia.h (device cuda) and for the simulated runtime (device sim), one library each.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "backend/hip/staging.h"
#include "backend/hip/vendor/vendor.h"
#include "backend/vt/backend.h"

namespace vt::hip::WARMLEG_VENDOR {

class RocmBackend;

// One HIP stream.
class RocmQueue final : public Queue {
 public:
  explicit RocmQueue(RocmBackend& backend);
  ~RocmQueue() override;

  bool capturing() const override { return capturing_.load(std::memory_order_relaxed); }
  hipStream_t stream() const { return stream_; }
  RocmBackend& rocm() const { return rocm_; }

 private:
  friend class RocmBackend;

  RocmBackend& rocm_;
  hipStream_t stream_ = nullptr;
  uint64_t* stamps_ = nullptr;  // [kStamps] pinned, written by the device
  std::atomic<bool> capturing_{false};
};

class RocmBackend final : public Backend {
 public:
  // Throws EnvironmentError when the device cannot be used.
  RocmBackend(DeviceInfo info, MemoryKind kind);
  ~RocmBackend() override;

  DeviceInfo Info() const override { return info_; }
  MemoryKind memory_kind() const override { return kind_; }
  int wave_size() const { return wave_size_; }
  int compute_units() const { return info_.compute_units; }

  std::unique_ptr<Queue> CreateQueue() override;
  void CopyIn(Queue& queue, void* device, const void* host, size_t bytes) override;
  void CopyOut(Queue& queue, void* host, const void* device, size_t bytes) override;
  void Copy(Queue& queue, void* to, const void* from, size_t bytes) override;
  void Fill(Queue& queue, void* to, uint8_t value, size_t bytes) override;

  // Drains the streams of this device one by one, but for those of other queues that capture (they have run
  // nothing). hipDeviceSynchronize would be illegal then. Throws RefusedError when `queue` captures.
  void FlushPending(Queue& queue) override;
  void Synchronize(Queue& queue) override;

  std::optional<double> MeasureClockMhz(Queue& queue, double seconds) override;

  bool can_capture() const override { return true; }
  void BeginCapture(Queue& queue) override;
  std::unique_ptr<Graph> EndCapture(Queue& queue) override;
  void AbandonCapture(Queue& queue) override;

  void Stamp(Queue& queue, int slot) override;
  double StampSeconds(Queue& queue, int from, int to) override;

 protected:
  void* AllocBytes(size_t bytes) override;
  void FreeBytes(void* data) noexcept override;

 private:
  friend class RocmQueue;
  friend class RocmGraph;

  void Bind() const;  // makes the device current on this thread
  void RefuseCapturing(const Queue& queue, const char* what) const;
  void FreeNow(void* data) noexcept;
  void FreeDeferred() noexcept;
  void DrainStreams();  // of the queues that do not capture
  void EndRecording(RocmQueue& queue);

  DeviceInfo info_;
  MemoryKind kind_;
  int wave_size_ = 32;
  double clock_hz_ = 1e9;
  Staging staging_;
  std::mutex mutex_;  // guards queues_, deferred_ and the switches of capturing_
  std::vector<RocmQueue*> queues_;
  std::vector<void*> deferred_;  // freed while this thread captured: hipFree is illegal then
};

// While it lives, the thread may wait for a queue, make a graph and give one back although it captures
// another queue. The runtime refuses all that to a capturing thread and breaks the capture, because it cannot
// know that nothing of the capture is meant. Does nothing on a thread that does not capture.
class WaitsAllowed {
 public:
  WaitsAllowed();
  ~WaitsAllowed();
  WaitsAllowed(const WaitsAllowed&) = delete;
  WaitsAllowed& operator=(const WaitsAllowed&) = delete;

 private:
  void Exchange() noexcept;
  hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;
  bool exchanged_;
};

// Devices as the runtime lists them; a runtime that cannot start adds its reason to `notes`.
std::vector<DeviceInfo> ListHipDevices(std::vector<std::string>* notes);

}  // namespace vt::hip::WARMLEG_VENDOR
