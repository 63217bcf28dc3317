#include "harness/run/hash.h"

#include "harness/record/sha256.h"

namespace warmleg::run {

namespace {

template <class T>
void AppendLittleEndian(std::string& bytes, T value) {
  const auto bits = static_cast<uint64_t>(value);
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xff);
}

}  // namespace

std::string IdListsSha256(const std::vector<std::vector<int32_t>>& lists) {
  std::string bytes;
  for (const std::vector<int32_t>& ids : lists) {
    AppendLittleEndian(bytes, static_cast<int64_t>(ids.size()));
    for (const int32_t id : ids) AppendLittleEndian(bytes, id);
  }
  return record::Sha256(bytes);
}

}  // namespace warmleg::run
