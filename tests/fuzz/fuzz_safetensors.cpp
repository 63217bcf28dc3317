// The header parser: what it accepts must lie inside the data section without overlap.
#include <cstdint>
#include <cstdlib>

#include "backend/model/safetensors.h"

// The first two bytes are the size of the data section, the rest is the header.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace warmleg::model;
  if (size < 2) return 0;
  const uint64_t data_bytes = static_cast<uint64_t>(data[0] | data[1] << 8);
  std::vector<std::string> wrong;
  const auto tensors =
      ParseSafetensorsHeader({reinterpret_cast<const char*>(data) + 2, size - 2}, data_bytes, &wrong);
  if (!wrong.empty()) return 0;
  uint64_t sum = 0;
  for (const StoredTensor& t : tensors) {
    if (t.end > data_bytes || t.begin > t.end || DTypeBits(t.dtype) == 0) std::abort();
    sum += t.bytes();
  }
  if (sum != data_bytes) std::abort();
  return 0;
}
