#include "harness/record/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace warmleg::record {

std::string Sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 is not available in libcrypto");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += digits[digest[i] >> 4];
    hex += digits[digest[i] & 15];
  }
  return hex;
}

std::string Sha256OfIds(std::span<const int32_t> ids) {
  std::string bytes;
  bytes.reserve(ids.size() * 4);
  for (const int32_t id : ids)
    for (int shift = 0; shift < 32; shift += 8)
      bytes += static_cast<char>((static_cast<uint32_t>(id) >> shift) & 0xFF);
  return Sha256(bytes);
}

}  // namespace warmleg::record
