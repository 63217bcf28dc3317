// SHA-256 in lower-case hex.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warmleg::record {

std::string Sha256(std::string_view bytes);

// Over the ids as little-endian int32, in order: the output hash of a leg.
std::string Sha256OfIds(std::span<const int32_t> ids);

}  // namespace warmleg::record
