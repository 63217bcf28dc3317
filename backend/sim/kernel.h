// What a kernel sees on the simulated device: its indices, barriers, exchanges between the lanes of a wave,
// shared memory, atomics. Blocks run one after another on the thread that waits for the stream; the threads
// of a block run to completion in turn, and become fibers only where they meet a barrier or an exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "backend/sim/hip_sim.h"

namespace vt::sim {

struct Index3 {
  unsigned x, y, z;
};

// NOLINTBEGIN(readability-identifier-naming): the names of HIP
inline constinit thread_local Index3 threadIdx{};
inline constinit thread_local Index3 blockIdx{};
inline constinit thread_local Index3 blockDim{};
inline constinit thread_local Index3 gridDim{};
// NOLINTEND

struct Geometry {
  dim3 grid, block;
  size_t shared_bytes = 0;
  const char* file = "";
  int line = 0;
};

// Queues one launch; `body` runs once for each thread of the grid.
hipError_t LaunchKernel(Stream* stream, const Geometry& geometry, std::function<void()> body);

// __syncthreads. A thread that returned, or waits elsewhere, while others wait here is a fault.
void BlockBarrier();

inline constexpr int kMaxWave = 64;

// Each lane of the wave gives up to 8 bytes and sees what all lanes gave. Every lane of the wave must come;
// `wave` must be the device's wave size and divide the block.
const uint64_t* WaveExchange(int wave, uint64_t mine);
int WaveLane(int wave);

template <class T>
uint64_t ToWord(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}
template <class T>
T FromWord(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

// The block's memory of one WARMLEG_SHARED declaration (site: one address each), and the dynamic part.
void* SharedAt(const void* site, size_t bytes, size_t align);
void* DynamicShared();

uint64_t ClockTicks();  // ns

}  // namespace vt::sim
