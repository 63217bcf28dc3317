// The benchmark cases: one or more shapes of each op, mostly Qwen3.8-27B's and its draft's.
#pragma once

#include "backend/vt/backend.h"

namespace vt::bench {

// Registers every case with Google Benchmark, to be run on `backend`. Each reports the median of GB/s by the
// op's own bytes() and its share of the read roof: the median of sweeps made between its calls (large ops) or
// before them.
void RegisterCases(Backend& backend);

}  // namespace vt::bench
