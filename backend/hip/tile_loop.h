#pragma once

#include "backend/hip/vendor/vendor.h"
#include "backend/vt/tile_probe.h"

namespace vt::hip::WARMLEG_VENDOR {

// As vt::TileLoop.
uint64_t RunTileLoop(Queue& queue, int turns, uint64_t* sums);

}  // namespace vt::hip::WARMLEG_VENDOR
