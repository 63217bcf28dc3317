// A tokenizer.json, and text through what was accepted: decoding gives back what was encoded.
#include <cstdint>
#include <cstdlib>

#include "backend/model/tokenizer.h"
#include "backend/vt/error.h"

// Text after the first NUL is encoded; without one, a text that has a bit of everything.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t cut = all.find('\0');
  const std::string_view text =
      cut == std::string_view::npos ? "ab  a\r\n1 e\xcc\x81'S <b>" : all.substr(cut + 1);
  try {
    const auto tokenizer = warmleg::model::Tokenizer::Parse(all.substr(0, cut), "fuzz");
    const std::vector<int32_t> ids = tokenizer.Encode(text);
    for (const int32_t id : ids)
      if (!tokenizer.contains(id) || id >= tokenizer.size()) std::abort();
    tokenizer.Decode(ids);
  } catch (const vt::InputError&) {
  }
  return 0;
}
