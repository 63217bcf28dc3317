#include "backend/vt/dispatch.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "backend/vt/error.h"
#include "backend/vt/stats.h"

namespace vt::internal {

namespace {

struct Table {
  std::array<std::array<Entry, kDeviceTypes>, kOps> native;
  std::array<ErasedKernel, kOps> reference{};
  std::array<std::array<std::array<std::atomic<bool>, kMaxDevices>, kDeviceTypes>, kOps> announced{};
};

Table& TheTable() {
  static Table table;
  return table;
}

// VT_OP_PROVIDER_DISABLE=Op[,Op] drops the native provider of these ops on devices other than cpu (there it
// is the only one).
bool Disabled(Op op) {
  static const auto disabled = [] {
    std::array<bool, kOps> flags{};
    const char* text = std::getenv("VT_OP_PROVIDER_DISABLE");
    std::string_view rest = text != nullptr ? text : "";
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      const std::string_view name = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
      bool known = false;
      for (int i = 0; i < kOps; ++i) {
        if (Name(static_cast<Op>(i)) == name) flags[static_cast<size_t>(i)] = known = true;
      }
      if (!known) throw InputError(fmt::format("VT_OP_PROVIDER_DISABLE names '{}', which is no op", name));
    }
    return flags;
  }();
  return disabled[static_cast<size_t>(op)];
}

const Entry* Native(Op op, DeviceType type) {
  const Entry& entry = TheTable().native[static_cast<size_t>(op)][static_cast<size_t>(type)];
  if (entry.kernel == nullptr || (type != DeviceType::cpu && Disabled(op))) return nullptr;
  return &entry;
}

void Announce(Op op, Device device) {
  auto& said = TheTable().announced[static_cast<size_t>(op)][static_cast<size_t>(device.type)]
                                   [static_cast<size_t>(device.index)];
  if (said.exchange(true)) return;
  std::fprintf(stderr, "[vt reference-tier] op=%s device=%s has NO native kernel\n",
               std::string(Name(op)).c_str(), std::string(Name(device.type)).c_str());
}

}  // namespace

void RegisterNative(Op op, DeviceType type, const Entry& entry) {
  TheTable().native[static_cast<size_t>(op)][static_cast<size_t>(type)] = entry;
}

void RegisterReference(Op op, ErasedKernel kernel) { TheTable().reference[static_cast<size_t>(op)] = kernel; }

namespace {

void RequireReference(Op op, Backend& backend) {
  const Device device = backend.device();
  if (device.type != DeviceType::cpu && backend.host_accessible() &&
      TheTable().reference[static_cast<size_t>(op)] != nullptr) {
    return;
  }
  throw RefusedError(
      fmt::format("op {} has no native kernel on {}, and its {} memory keeps the reference tier off "
                  "(VT_MEMORY=host-coherent turns it on)",
                  Name(op), ToString(device), Name(backend.memory_kind())));
}

}  // namespace

void RequireProvider(Op op, Device device) {
  if (Native(op, device.type) == nullptr) RequireReference(op, GetBackend(device));
}

ErasedKernel Select(Op op, Queue& queue, const void* args, int64_t bytes) {
  Backend& backend = queue.backend();
  const Device device = backend.device();
  const auto moved = static_cast<uint64_t>(bytes);
  const Entry* native = Native(op, device.type);
  const char* reason = "no native kernel";
  if (native != nullptr) {
    reason = native->declines != nullptr ? native->declines(native->declines_kernel, args) : nullptr;
    if (reason == nullptr) {
      if (queue.capturing()) {
        queue.RecordCall(op, moved);  // nothing runs now: each launch of the graph counts
      } else {
        Count(op, device, Tier::native, nullptr, 1, moved);
      }
      return native->kernel;
    }
  } else if (TheTable().native[static_cast<size_t>(op)][static_cast<size_t>(device.type)].kernel != nullptr) {
    reason = "disabled by VT_OP_PROVIDER_DISABLE";
  }
  const bool captured = queue.capturing();
  if (captured) backend.AbandonCapture(queue);  // each way on from here refuses
  if (native == nullptr) RequireReference(op, backend);
  if (native != nullptr && (device.type == DeviceType::cpu || !backend.host_accessible())) {
    throw RefusedError(
        fmt::format("op {} on {} was declined by its native kernel: {}", Name(op), ToString(device), reason));
  }
  if (captured) {
    throw RefusedError(
        fmt::format("op {} on {} would run on the host ({}) and cannot be captured; the capture was ended",
                    Name(op), ToString(device), reason));
  }
  Announce(op, device);
  backend.FlushPending(queue);  // the host kernel reads device memory next: on every call, not at look-up
  Count(op, device, Tier::reference, reason, 1, moved);
  return TheTable().reference[static_cast<size_t>(op)];
}

}  // namespace vt::internal
