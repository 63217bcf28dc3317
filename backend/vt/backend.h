// What a device offers: memory, ordered queues of work, graphs. Kernels are looked up in dispatch.h.
//
// A kernel launch returns before its work is done on devices that queue. Whoever reads device memory on the
// host calls FlushPending first; the reference tier does so on every call (dispatch.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/vt/device.h"
#include "backend/vt/ops.h"
#include "backend/vt/tensor.h"

namespace vt {

class Backend;
class Buffer;
class ScratchTable;

// Where Alloc takes memory from. Only `device` is dereferenced by the device alone; there the reference tier
// is off.
enum class MemoryKind { device, host_coherent, managed };
std::string_view Name(MemoryKind kind);  // "device", "host-coherent", "managed"
// VT_MEMORY, or `device` when unset. Throws InputError on another value.
MemoryKind MemoryKindFromEnvironment();

struct DeviceInfo {
  Device device;
  std::string name;           // "AMD Radeon 8060S", or the CPU's model name
  std::string gfx;            // "gfx1151", "sm_90", empty on cpu
  std::string pci;            // "0000:c5:00.0", empty on cpu
  int compute_units = 0;      // CUs or SMs; cores on cpu
  bool integrated = false;    // shares the host's memory
  uint64_t memory_bytes = 0;  // total
  double peak_gb_s = 0;       // memory clock x bus width as the runtime states them; 0: unknown
  double top_clock_mhz = 0;   // of the compute units, as the runtime states it; 0: unknown
  std::string built_with;     // the runtime's release at compile time: "HIP 7.1.25424", "CUDA 13.0"
  std::string runtime;        // the release that is loaded, in the same form
  std::string driver;         // the release that the driver serves, in the same form
};

// What a capturing queue collects for the graph that comes of it.
struct Recording {
  struct Calls {
    Op op;
    uint64_t calls;
    uint64_t bytes;
  };
  std::vector<Calls> calls;                      // counted at each launch of the graph, not while capturing
  std::vector<std::shared_ptr<Buffer>> buffers;  // scratch that the graph's kernels hold the address of
};

// An ordered stream of work on one device. Destroying it drains it first and frees its scratch.
class Queue {
 public:
  explicit Queue(Backend& backend) : backend_(backend) {}
  virtual ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Backend& backend() const { return backend_; }
  virtual bool capturing() const { return false; }

  void RecordCall(Op op, uint64_t bytes);
  void RecordBuffer(std::shared_ptr<Buffer> buffer);
  // What was recorded since the last call; leaves nothing behind.
  Recording TakeRecording() { return std::exchange(recording_, {}); }

  // Held by every call of an op, from the choice of its provider to its last launch: ops launch several
  // kernels over one piece of scratch, and several host threads may use one queue.
  std::mutex& calls() { return calls_; }

 private:
  Backend& backend_;
  Recording recording_;
  std::mutex calls_;
};

// Device memory that is freed with the object.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Backend& backend, void* data, size_t bytes) : backend_(&backend), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void swap(Buffer& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

 private:
  Backend* backend_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// A captured sequence of work. It keeps alive every buffer that was baked into it.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void Launch(Queue& queue) = 0;
};

class Backend {
 public:
  explicit Backend(Device device);
  virtual ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  Device device() const { return device_; }
  virtual DeviceInfo Info() const = 0;
  virtual MemoryKind memory_kind() const { return MemoryKind::host_coherent; }
  // Whether host code may dereference what Alloc returned (after FlushPending).
  bool host_accessible() const { return memory_kind() != MemoryKind::device; }

  virtual std::unique_ptr<Queue> CreateQueue() = 0;

  // Contents are undefined. Throws EnvironmentError with the size when the device has no room.
  Buffer Alloc(size_t bytes);

  // Host to device. Staged: `host` may be a file mapping and may be reused on return.
  virtual void CopyIn(Queue& queue, void* device, const void* host, size_t bytes) = 0;
  // Device to host, after all work queued before it; the data is there on return.
  virtual void CopyOut(Queue& queue, void* host, const void* device, size_t bytes) = 0;
  // Device to device and fill, in the queue's order.
  virtual void Copy(Queue& queue, void* to, const void* from, size_t bytes) = 0;
  virtual void Fill(Queue& queue, void* to, uint8_t value, size_t bytes) = 0;

  // Returns when everything queued on this device that a host read may depend on has finished. A backend that
  // queues work overrides it; this version is for synchronous backends. Throws RefusedError when `queue`
  // itself captures.
  virtual void FlushPending(Queue& queue);
  // Returns when the work of this one queue has finished.
  virtual void Synchronize(Queue& queue) = 0;

  // MHz of the compute units: cycles over time, both counted by the device while one thread of it runs for
  // `seconds`. In the queue's order, and returns when that is done. Null on a device without such counters.
  // Takes the stamp slots kStamps - 4 and kStamps - 3 of the queue.
  virtual std::optional<double> MeasureClockMhz(Queue& queue, double seconds);

  // Graph capture. A backend without it returns false from can_capture(), and decoding stays eager.
  virtual bool can_capture() const { return false; }
  virtual void BeginCapture(Queue& queue);
  virtual std::unique_ptr<Graph> EndCapture(Queue& queue);
  // Ends a capture and drops what it recorded; the queue works as before BeginCapture.
  virtual void AbandonCapture(Queue& queue) { queue.TakeRecording(); }

  // Temporary memory of this device's queues; kernels use Scratch<T> (scratch.h).
  ScratchTable& scratch() { return *scratch_; }

  // Marks a point in the queue's order for timing; Seconds(a, b) is valid after Synchronize.
  // Synchronous backends read the monotonic clock.
  virtual void Stamp(Queue& queue, int slot) = 0;  // slot < kStamps
  virtual double StampSeconds(Queue& queue, int from, int to) = 0;
  static constexpr int kStamps = 64;

 protected:
  friend class Buffer;
  virtual void* AllocBytes(size_t bytes) = 0;
  virtual void FreeBytes(void* data) noexcept = 0;

 private:
  Device device_;
  std::unique_ptr<ScratchTable> scratch_;
};

// All devices this build can drive on this machine, cpu first. Never throws: a runtime that cannot start
// contributes nothing here and its reason to `notes` (one line each).
std::vector<DeviceInfo> ListDevices(std::vector<std::string>* notes = nullptr);

// The backend of a device; one object per process and device, created on first use. Throws EnvironmentError
// that names the device and lists what is there.
Backend& GetBackend(Device device);

// How a backend library makes itself known (cpu/ and hip/ call it from their Register function).
struct BackendFactory {
  DeviceType type;
  std::vector<DeviceInfo> (*list)(std::vector<std::string>* notes);
  std::unique_ptr<Backend> (*create)(int index);
};
void RegisterBackend(const BackendFactory& factory);

// Owns the tensors of one purpose (weights, a session's state): each New is one allocation, all freed
// together.
class TensorPool {
 public:
  explicit TensorPool(Backend& backend) : backend_(backend) {}
  Tensor New(DType dtype, std::initializer_list<int64_t> shape);
  uint64_t bytes() const { return bytes_; }
  Backend& backend() const { return backend_; }

 private:
  Backend& backend_;
  std::vector<Buffer> buffers_;
  uint64_t bytes_ = 0;
};

}  // namespace vt
