// A call repeated on a device with tensors of its own of the same shapes: how long it takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/vt/backend.h"
#include "backend/vt/dispatch.h"
#include "backend/vt/op_tensors.h"

namespace vt::bench {

// Memory for the tensors of one call. Those that share memory in the original share it here. Floats are
// random, integers count up from 0, so that an index is never out of range and never twice.
class Stand {
 public:
  Stand(Queue& queue, const std::vector<Tensor*>& tensors);

 private:
  std::vector<Buffer> buffers_;
};

// Writes `values` to an i32 tensor on the device.
void WriteInts(Queue& queue, const Tensor& to, const std::vector<int32_t>& values);

// What a call reads from the middle of a sequence: as many keys as `context` says, and a limit that is far
// off.
template <class Args>
void SetContext(Queue&, const Args&, int64_t) {}
inline void SetContext(Queue& queue, const AttentionArgs& args, int64_t context) {
  std::vector<int32_t> positions;
  for (int64_t r = 0; r < args.positions.count(); ++r) positions.push_back(static_cast<int32_t>(context + r));
  WriteInts(queue, args.positions, positions);
}
inline void SetContext(Queue& queue, const DFlashBlockAttnArgs& args, int64_t context) {
  WriteInts(queue, args.start, {static_cast<int32_t>(context)});
}
inline void SetContext(Queue& queue, const AcceptGreedyArgs& args, int64_t) {
  WriteInts(queue, args.limit, {1 << 30});
}

// Bytes of the memory that a call touches, at most.
uint64_t Footprint(const std::vector<Tensor*>& tensors);

// The median of the time of one of `call(0)`, `call(1)`, ... `call(copies - 1)`, run back to back in turn, as
// a captured graph where the device has them.
double MedianSeconds(Queue& queue, int copies, const std::function<void(int)>& call);

// Copies of the call's tensors take turns, so that a weight comes from memory as it does in a step, where
// every layer has its own, and not from a cache.
template <class Args>
double Seconds(Backend& backend, const Args& recorded, int64_t context) {
  constexpr uint64_t kBeyondCaches = uint64_t{512} << 20;
  constexpr int kMostCopies = 64;
  const auto queue = backend.CreateQueue();
  Args shape = recorded;
  const uint64_t each = std::max<uint64_t>(Footprint(TensorsOf(shape)), 1);
  const int copies = static_cast<int>(std::clamp<uint64_t>(kBeyondCaches / each, 1, kMostCopies));
  std::vector<Args> calls(static_cast<size_t>(copies), recorded);
  std::vector<std::unique_ptr<Stand>> stands;
  for (Args& call : calls) {
    for (Tensor* t : TensorsOf(call)) t->device = backend.device();
    stands.push_back(std::make_unique<Stand>(*queue, TensorsOf(call)));
    SetContext(*queue, call, context);
  }
  return MedianSeconds(*queue, copies, [&](int i) { Run(*queue, calls[static_cast<size_t>(i)]); });
}

}  // namespace vt::bench
