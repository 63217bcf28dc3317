#pragma once

#include "backend/vt/read_probe.h"

namespace vt::cpu {

// As vt::SumWords.
void SumWords(Queue& queue, const void* data, size_t bytes, uint64_t* partials);

}  // namespace vt::cpu
