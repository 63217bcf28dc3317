// One hash over several lists of token ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warmleg::run {

// SHA-256 over every list's length (int64) and ids (int32), little-endian, so that a border between two lists
// counts.
std::string IdListsSha256(const std::vector<std::vector<int32_t>>& lists);

}  // namespace warmleg::run
