#include "backend/hip/backend.h"

#include <fmt/core.h>

#include <algorithm>

#include "backend/hip/clock.h"
#include "backend/hip/graph.h"
#include "backend/hip/stamp.h"
#include "backend/vt/error.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

// Captures under way on this thread, on any device: the runtime refuses to allocate, free or wait then.
int& CapturesHere() {
  thread_local int captures = 0;
  return captures;
}

RocmQueue& Own(Queue& queue) { return static_cast<RocmQueue&>(queue); }

}  // namespace

WaitsAllowed::WaitsAllowed() : exchanged_(CapturesHere() > 0) { Exchange(); }
WaitsAllowed::~WaitsAllowed() { Exchange(); }
void WaitsAllowed::Exchange() noexcept {
  if (exchanged_) static_cast<void>(hipThreadExchangeStreamCaptureMode(&mode_));
}

hipStream_t StreamOf(Queue& queue) {
  WARMLEG_HIP(hipSetDevice(queue.backend().device().index));
  return Own(queue).stream();
}

int ComputeUnits(const Queue& queue) { return static_cast<const RocmQueue&>(queue).rocm().compute_units(); }
size_t SharedToSpread(const Queue& queue, int64_t blocks) {
  // One more does not fit, since each takes a little more than it asks for (1 KB on NVIDIA).
  const int64_t share = DivUp(blocks, int64_t{ComputeUnits(queue)});
  return SharedOfUnit(queue.backend().device().index) / static_cast<size_t>(share + 1);
}
int WaveSize(const Queue& queue) { return static_cast<const RocmQueue&>(queue).rocm().wave_size(); }

RocmQueue::RocmQueue(RocmBackend& backend) : Queue(backend), rocm_(backend) {
  backend.Bind();
  WARMLEG_HIP(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
  void* stamps = nullptr;
  const hipError_t error = hipHostMalloc(&stamps, Backend::kStamps * sizeof(uint64_t), hipHostMallocMapped);
  if (error != hipSuccess) static_cast<void>(hipStreamDestroy(stream_));
  CheckHip(error, "hipHostMalloc", __FILE__, __LINE__);
  stamps_ = static_cast<uint64_t*>(stamps);
  const std::lock_guard lock(backend.mutex_);
  backend.queues_.push_back(this);
}

RocmQueue::~RocmQueue() {
  if (capturing()) rocm_.AbandonCapture(*this);
  {
    const std::lock_guard lock(rocm_.mutex_);
    std::erase(rocm_.queues_, this);
  }
  const WaitsAllowed allowed;
  static_cast<void>(hipSetDevice(rocm_.device().index));
  static_cast<void>(hipStreamSynchronize(stream_));  // its work uses the scratch that is freed next
  static_cast<void>(hipStreamDestroy(stream_));
  static_cast<void>(hipHostFree(stamps_));
  static_cast<void>(hipGetLastError());
}

RocmBackend::RocmBackend(DeviceInfo info, MemoryKind kind)
    : Backend(info.device), info_(std::move(info)), kind_(kind) {
  Bind();
  WARMLEG_HIP(hipDeviceGetAttribute(&wave_size_, hipDeviceAttributeWarpSize, device().index));
  clock_hz_ = ClockHz(device().index);
}

RocmBackend::~RocmBackend() {
  static_cast<void>(hipSetDevice(device().index));
  FreeDeferred();
}

void RocmBackend::Bind() const { WARMLEG_HIP(hipSetDevice(device().index)); }

std::unique_ptr<Queue> RocmBackend::CreateQueue() {
  if (CapturesHere() > 0) throw RefusedError("a queue cannot be created while this thread captures a graph");
  Bind();
  staging_.Prepare();
  return std::make_unique<RocmQueue>(*this);
}

void RocmBackend::RefuseCapturing(const Queue& queue, const char* what) const {
  if (!queue.capturing()) return;
  throw RefusedError(fmt::format("{} on {}: not while the queue captures a graph", what, ToString(device())));
}

void* RocmBackend::AllocBytes(size_t bytes) {
  if (CapturesHere() > 0) {
    throw RefusedError(fmt::format("{} bytes on {}: nothing is allocated while this thread captures a graph",
                                   bytes, ToString(device())));
  }
  Bind();
  FreeDeferred();
  void* data = nullptr;
  hipError_t error = hipSuccess;
  switch (kind_) {
    case MemoryKind::device:
      error = hipMalloc(&data, bytes);
      break;
    case MemoryKind::host_coherent:
      error = hipHostMalloc(&data, bytes, hipHostMallocMapped | hipHostMallocCoherent);
      break;
    case MemoryKind::managed:
      error = hipMallocManaged(&data, bytes, hipMemAttachGlobal);
      break;
  }
  if (error == hipSuccess) return data;
  const std::string call =
      fmt::format("allocating {} bytes of {} memory on {}", bytes, Name(kind_), ToString(device()));
  CheckHip(error, call.c_str(), __FILE__, __LINE__);
  return nullptr;
}

void RocmBackend::FreeNow(void* data) noexcept {
  static_cast<void>(kind_ == MemoryKind::host_coherent ? hipHostFree(data) : hipFree(data));
  static_cast<void>(hipGetLastError());
}

void RocmBackend::FreeBytes(void* data) noexcept {
  if (CapturesHere() > 0) {
    const std::lock_guard lock(mutex_);
    deferred_.push_back(data);
    return;
  }
  static_cast<void>(hipSetDevice(device().index));
  FreeNow(data);
}

void RocmBackend::FreeDeferred() noexcept {
  if (CapturesHere() > 0) return;  // another queue's capture goes on
  std::vector<void*> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(deferred_);
  }
  for (void* data : all) FreeNow(data);
}

void RocmBackend::CopyIn(Queue& queue, void* device, const void* host, size_t bytes) {
  RefuseCapturing(queue, "a copy from the host");
  const WaitsAllowed allowed;
  staging_.In(StreamOf(queue), device, host, bytes);
}

void RocmBackend::CopyOut(Queue& queue, void* host, const void* device, size_t bytes) {
  RefuseCapturing(queue, "a copy to the host");
  const WaitsAllowed allowed;
  staging_.Out(StreamOf(queue), host, device, bytes);
}

void RocmBackend::Copy(Queue& queue, void* to, const void* from, size_t bytes) {
  WARMLEG_HIP(hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, StreamOf(queue)));
}

void RocmBackend::Fill(Queue& queue, void* to, uint8_t value, size_t bytes) {
  WARMLEG_HIP(hipMemsetAsync(to, value, bytes, StreamOf(queue)));
}

void RocmBackend::DrainStreams() {
  const std::lock_guard lock(mutex_);
  for (const RocmQueue* queue : queues_) {
    if (!queue->capturing()) WARMLEG_HIP(hipStreamSynchronize(queue->stream()));
  }
}

void RocmBackend::FlushPending(Queue& queue) {
  RefuseCapturing(queue, "a flush of pending work");
  const WaitsAllowed allowed;
  Bind();
  DrainStreams();
}

void RocmBackend::Synchronize(Queue& queue) {
  RefuseCapturing(queue, "a wait");
  const WaitsAllowed allowed;
  WARMLEG_HIP(hipStreamSynchronize(StreamOf(queue)));
}

std::optional<double> RocmBackend::MeasureClockMhz(Queue& queue, double seconds) {
  RefuseCapturing(queue, "a measurement of the clock");
  uint64_t* counts = Own(queue).stamps_ + kStamps - 4;  // pinned: no copy, which would keep others waiting
  CountCycles(queue, counts, static_cast<uint64_t>(std::min(seconds * clock_hz_, 1e18)));
  Synchronize(queue);
  if (counts[1] == 0) return std::nullopt;
  return static_cast<double>(counts[0]) / static_cast<double>(counts[1]) * clock_hz_ / 1e6;
}

void RocmBackend::BeginCapture(Queue& queue) {
  RefuseCapturing(queue, "a second capture");
  const WaitsAllowed allowed;
  hipStream_t stream = StreamOf(queue);
  // A flush from another queue skips a capturing stream, so nothing may be left on it.
  WARMLEG_HIP(hipStreamSynchronize(stream));
  const std::lock_guard lock(mutex_);
  WARMLEG_HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  queue.TakeRecording();
  Own(queue).capturing_.store(true, std::memory_order_relaxed);
  ++CapturesHere();
}

void RocmBackend::EndRecording(RocmQueue& queue) {
  const std::lock_guard lock(mutex_);
  queue.capturing_.store(false, std::memory_order_relaxed);
  --CapturesHere();
}

std::unique_ptr<Graph> RocmBackend::EndCapture(Queue& queue) {
  if (!queue.capturing()) throw RefusedError("the queue captures nothing");
  hipGraph_t graph = nullptr;
  hipStream_t stream = StreamOf(queue);
  const hipError_t error = hipStreamEndCapture(stream, &graph);
  EndRecording(Own(queue));
  Recording recording = queue.TakeRecording();
  FreeDeferred();
  CheckHip(error, "hipStreamEndCapture", __FILE__, __LINE__);
  return std::make_unique<RocmGraph>(Own(queue), graph, std::move(recording));
}

void RocmBackend::AbandonCapture(Queue& queue) {
  if (!queue.capturing()) return;
  hipGraph_t graph = nullptr;
  static_cast<void>(hipSetDevice(device().index));
  static_cast<void>(hipStreamEndCapture(Own(queue).stream(), &graph));
  if (graph != nullptr) static_cast<void>(hipGraphDestroy(graph));
  static_cast<void>(hipGetLastError());
  EndRecording(Own(queue));
  queue.TakeRecording();
  FreeDeferred();
}

void RocmBackend::Stamp(Queue& queue, int slot) { StampClock(queue, Own(queue).stamps_, slot); }

double RocmBackend::StampSeconds(Queue& queue, int from, int to) {
  const uint64_t* stamps = Own(queue).stamps_;
  return static_cast<double>(static_cast<int64_t>(stamps[to] - stamps[from])) / clock_hz_;
}

}  // namespace vt::hip::WARMLEG_VENDOR
