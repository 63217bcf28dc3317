// One loop over independent pieces of an op. Pieces never share a sum, so the thread count cannot change
// bits.
#pragma once

#include <cstdint>

namespace vt::cpu {

// Multiply-adds below which a parallel region costs more than it saves (waking a passive thread takes 10..50
// us).
inline constexpr int64_t kParallelWork = int64_t{1} << 20;

// fn(i) for i in 0..n-1; `work` is the op's total in multiply-adds (or what costs the same). fn must not
// throw.
template <class Fn>
void ParallelFor(int64_t n, int64_t work, const Fn& fn) {
  if (n < 2 || work < kParallelWork) {
    for (int64_t i = 0; i < n; ++i) fn(i);
    return;
  }
  // Dynamic: with passive waiting a thread may start late, and other processes may hold a core.
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < n; ++i) fn(i);
}

}  // namespace vt::cpu
