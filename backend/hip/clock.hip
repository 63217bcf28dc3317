// The device clock source: cycles of a compute unit over the device's wall clock.
// Decomposition: one thread. Bytes: 16. Bound: the time asked for.
#include "backend/hip/clock.h"

namespace vt::hip::WARMLEG_VENDOR {

namespace {

__global__ void CountCyclesKernel(uint64_t* counts, uint64_t wall_ticks) {
  uint64_t begin = DeviceClock();
  const uint64_t start = begin;
  while (begin == start) begin = DeviceClock();
  uint64_t last = CycleCounter();
  uint64_t now = begin;
  uint64_t cycles = 0;
  while (now - begin < wall_ticks) {
    now = DeviceClock();
    const uint64_t at = CycleCounter();
    cycles += (at - last) & kCycleMask;  // a turn is far shorter than the counter's period
    last = at;
  }
  counts[0] = cycles;
  counts[1] = now - begin;
}

}  // namespace

void CountCycles(Queue& queue, uint64_t* counts, uint64_t wall_ticks) {
  launch(CountCyclesKernel, 1, 1, 0, queue, counts, wall_ticks);
}

}  // namespace vt::hip::WARMLEG_VENDOR
