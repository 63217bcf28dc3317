#pragma once

#include "backend/hip/vendor/vendor.h"
#include "backend/vt/tile_probe.h"

namespace vt::hip::WARMLEG_VENDOR {

// As vt::TileLoop.
double RunTileLoop(Queue& queue, int turns, float* sums);

}  // namespace vt::hip::WARMLEG_VENDOR
