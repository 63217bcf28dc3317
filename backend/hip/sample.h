// What the sampling kernels share: where their random numbers come from, and a lock for calls in two halves.
#pragma once

#include "backend/hip/common.h"
#include "backend/vt/sampler.h"

namespace vt::hip::WARMLEG_VENDOR {

using sampler::Purpose;

struct DrawsView {
  const int32_t *seed, *position;
  int32_t offset;
  __device__ uint64_t Key(int row, Purpose purpose) const {
    const uint64_t words =
        static_cast<uint64_t>(static_cast<uint32_t>(seed[1])) << 32 | static_cast<uint32_t>(seed[0]);
    return sampler::KeyOf(words, static_cast<uint32_t>(seed[2]),
                          static_cast<uint32_t>(position[0] + offset + row), purpose);
  }
};
inline DrawsView ViewOf(const Draws& draws) {
  return {draws.seed.as<const int32_t>(), draws.position.as<const int32_t>(), draws.offset};
}

// PathWalk with q.
void SampledWalk(Queue& queue, const PathWalkArgs& args);

}  // namespace vt::hip::WARMLEG_VENDOR
