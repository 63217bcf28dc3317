// From an op and a device to the kernel that runs: providers, the reference tier, and its flush.
//
// Providers: `vt-native` (0) before `vt-cpu-ref` (-1000). On device cpu the CPU kernels are vt-native. A
// vt-cpu-ref callable flushes the device on every call, before it reads device memory; it needs memory the
// host may dereference, and it is refused while the queue captures.
#pragma once

#include <mutex>

#include "backend/vt/backend.h"
#include "backend/vt/check.h"
#include "backend/vt/ops.h"

namespace vt {

template <class Args>
using Kernel = void (*)(Queue&, const Args&);

// Why a native kernel will not take this call (a string literal), or nullptr. Counted as a fall-back with
// that reason.
template <class Args>
using Declines = const char* (*)(const Args&);

namespace internal {

using ErasedKernel = void (*)();
struct Entry {
  ErasedKernel kernel = nullptr;
  const char* (*declines)(ErasedKernel, const void*) = nullptr;
  ErasedKernel declines_kernel = nullptr;
};

void RegisterNative(Op op, DeviceType type, const Entry& entry);
void RegisterReference(Op op, ErasedKernel kernel);
// What a call with `args` runs on; flushes and refuses as described above, then counts.
ErasedKernel Select(Op op, Queue& queue, const void* args, int64_t bytes);
// Throws RefusedError when neither tier can ever serve (op, device).
void RequireProvider(Op op, Device device);

}  // namespace internal

template <class Args>
void RegisterNative(DeviceType type, Kernel<Args> kernel, Declines<Args> declines = nullptr) {
  internal::Entry entry;
  entry.kernel = reinterpret_cast<internal::ErasedKernel>(kernel);
  if (declines != nullptr) {
    entry.declines_kernel = reinterpret_cast<internal::ErasedKernel>(declines);
    entry.declines = [](internal::ErasedKernel fn, const void* args) {
      return reinterpret_cast<Declines<Args>>(fn)(*static_cast<const Args*>(args));
    };
  }
  internal::RegisterNative(Args::kOp, type, entry);
}

// The host kernel that serves every device whose native provider is missing or declines.
template <class Args>
void RegisterReference(Kernel<Args> kernel) {
  internal::RegisterReference(Args::kOp, reinterpret_cast<internal::ErasedKernel>(kernel));
}

// A callable for (op, device). The provider is chosen, and the reference tier's flush made, at each call.
template <class Args>
class OpCall {
 public:
  // Throws std::logic_error when the tensors do not fit the op (check.h).
  void operator()(Queue& queue, const Args& args) const {
    Check(args);
    const std::lock_guard one_at_a_time(queue.calls());
    const auto kernel = internal::Select(Args::kOp, queue, &args, args.bytes());
    reinterpret_cast<Kernel<Args>>(kernel)(queue, args);
  }
};

// Throws RefusedError that names op and device when no provider can serve it.
template <class Args>
OpCall<Args> GetOp(Device device) {
  internal::RequireProvider(Args::kOp, device);
  return {};
}

// GetOp and call.
template <class Args>
void Run(Queue& queue, const Args& args) {
  OpCall<Args>{}(queue, args);
}

}  // namespace vt
