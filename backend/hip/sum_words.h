#pragma once

#include "backend/hip/vendor/vendor.h"
#include "backend/vt/read_probe.h"

namespace vt::hip::WARMLEG_VENDOR {

// As vt::SumWords.
void SumWords(Queue& queue, const void* data, size_t bytes, uint64_t* partials);

}  // namespace vt::hip::WARMLEG_VENDOR
