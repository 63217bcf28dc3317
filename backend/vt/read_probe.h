// The read roof of a device: a plain read-and-sum over memory, never one of the chain's own matmuls. It is
// the denominator of every share of the roof.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/vt/backend.h"

namespace vt {

inline constexpr int kSumPartials = 4096;

// Reads `bytes` (a multiple of 16) of device memory in the queue's order; the 64-bit sum of its 8-byte words
// is the sum of the kSumPartials device words at `partials`.
using SumWords = void (*)(Queue& queue, const void* data, size_t bytes, uint64_t* partials);
void RegisterSumWords(DeviceType type, SumWords kernel);

class ReadProbe {
 public:
  // Allocates and fills `bytes` (rounded down to a multiple of 16, at least 1 MiB). Throws RefusedError on a
  // device without the kernel.
  ReadProbe(Queue& queue, uint64_t bytes);

  // GB/s (1e9 bytes) of one sweep, by the queue's own stamps (slots kStamps - 2 and kStamps - 1). Throws
  // EnvironmentError when the sum is wrong: then not everything was read.
  double Sweep();
  // The fastest of several sweeps, at least three and for at least `seconds`: a busy moment must not lower
  // the roof.
  double Best(double seconds);
  uint64_t bytes() const { return data_.bytes(); }

 private:
  Queue& queue_;
  SumWords kernel_;
  Buffer data_, partials_;
};

}  // namespace vt
