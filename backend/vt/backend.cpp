#include "backend/vt/backend.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "backend/vt/error.h"
#include "backend/vt/scratch.h"

namespace vt {

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<BackendFactory> factories;
  std::map<Device, std::unique_ptr<Backend>> backends;
};

// Never destroyed: buffers in other static objects may outlive it, and a runtime may already be gone at exit.
Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

std::vector<BackendFactory> Factories() {
  Registry& r = TheRegistry();
  const std::lock_guard lock(r.mutex);
  return r.factories;
}

}  // namespace

std::string_view Name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "device";
    case MemoryKind::host_coherent:
      return "host-coherent";
    case MemoryKind::managed:
      return "managed";
  }
  return "?";
}

MemoryKind MemoryKindFromEnvironment() {
  const char* text = std::getenv("VT_MEMORY");
  if (text == nullptr) return MemoryKind::device;
  for (MemoryKind kind : {MemoryKind::device, MemoryKind::host_coherent, MemoryKind::managed}) {
    if (text == Name(kind)) return kind;
  }
  throw InputError(fmt::format("VT_MEMORY='{}' is not one of device, host-coherent, managed", text));
}

Buffer::~Buffer() {
  if (data_ != nullptr) backend_->FreeBytes(data_);
}

Queue::~Queue() { backend_.scratch().Release(*this); }

void Queue::RecordCall(Op op, uint64_t bytes) {
  for (Recording::Calls& row : recording_.calls) {
    if (row.op != op) continue;
    row.calls += 1;
    row.bytes += bytes;
    return;
  }
  recording_.calls.push_back({op, 1, bytes});
}

void Queue::RecordBuffer(std::shared_ptr<Buffer> buffer) {
  auto& all = recording_.buffers;
  if (std::find(all.begin(), all.end(), buffer) == all.end()) all.push_back(std::move(buffer));
}

Backend::Backend(Device device) : device_(device), scratch_(std::make_unique<ScratchTable>()) {}
Backend::~Backend() = default;

Buffer Backend::Alloc(size_t bytes) { return {*this, AllocBytes(std::max<size_t>(bytes, 1)), bytes}; }

void Backend::FlushPending(Queue&) {}

std::optional<double> Backend::MeasureClockMhz(Queue&, double) { return std::nullopt; }

void Backend::BeginCapture(Queue&) {
  throw RefusedError(fmt::format("device {} cannot capture graphs", ToString(device())));
}

std::unique_ptr<Graph> Backend::EndCapture(Queue&) {
  throw RefusedError(fmt::format("device {} cannot capture graphs", ToString(device())));
}

void RegisterBackend(const BackendFactory& factory) {
  Registry& r = TheRegistry();
  const std::lock_guard lock(r.mutex);
  const auto same = [&](const BackendFactory& f) { return f.type == factory.type; };
  if (std::none_of(r.factories.begin(), r.factories.end(), same)) r.factories.push_back(factory);
}

std::vector<DeviceInfo> ListDevices(std::vector<std::string>* notes) {
  std::vector<DeviceInfo> all;
  for (const BackendFactory& f : Factories()) {
    std::vector<DeviceInfo> some = f.list(notes);
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const DeviceInfo& a, const DeviceInfo& b) { return a.device < b.device; });
  return all;
}

Backend& GetBackend(Device device) {
  std::vector<std::string> notes;
  const std::vector<DeviceInfo> devices = ListDevices(&notes);
  const auto here = [&](const DeviceInfo& info) { return info.device == device; };
  if (std::none_of(devices.begin(), devices.end(), here)) {
    std::vector<std::string> names;
    for (const DeviceInfo& info : devices) names.push_back(ToString(info.device));
    throw EnvironmentError(fmt::format("no device {} here; there is {}{}{}", ToString(device),
                                       fmt::join(names, ", "), notes.empty() ? "" : "; ",
                                       fmt::join(notes, "; ")));
  }
  Registry& r = TheRegistry();
  const std::lock_guard lock(r.mutex);
  std::unique_ptr<Backend>& slot = r.backends[device];
  if (slot == nullptr) {
    for (const BackendFactory& f : r.factories) {
      if (f.type == device.type) slot = f.create(device.index);
    }
  }
  return *slot;
}

Tensor TensorPool::New(DType dtype, std::initializer_list<int64_t> shape) {
  Tensor t = MakeTensor(nullptr, dtype, shape, backend_.device());
  Buffer buffer = backend_.Alloc(static_cast<size_t>(t.bytes()));
  t.data = static_cast<std::byte*>(buffer.data());
  bytes_ += buffer.bytes();
  buffers_.push_back(std::move(buffer));
  return t;
}

}  // namespace vt
