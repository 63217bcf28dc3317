// The shape contract of each op, checked once for every backend: OpCall runs Check before it picks a kernel.
//
// Each Check throws std::logic_error with one line that names the op and every tensor that is wrong. What
// lies in device memory (ids, positions, slots) is not looked at here.
#pragma once

#include "backend/vt/ops.h"

namespace vt {

// Limits that kernels may rely on for arrays of a fixed size.
inline constexpr int64_t kMaxHeadDim = 512;    // dk, dv, d of a head; rotary entries
inline constexpr int64_t kMaxConvTaps = 16;    // kernel size of CausalConv1d, taps of DFlashGroupedConv
inline constexpr int64_t kMaxCandidates = 64;  // k of TopKPairs, SelectorEdges, PathWalk, RejectionSample
inline constexpr int64_t kMaxSampledVocabulary = int64_t{1} << 18;  // so that masses of a row fit 58 bits
inline constexpr int kMaxSampleBlocks = 1024;                       // of a row in RandomSample

#define WARMLEG_VT_CHECK(name) void Check(const name##Args& args);
WARMLEG_VT_OPS(WARMLEG_VT_CHECK)
#undef WARMLEG_VT_CHECK

}  // namespace vt
