// The little UTF-8 that the tokenizer needs beside its libraries.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warmleg::model {

struct Utf8Step {
  size_t bytes = 0;    // at least 1
  bool valid = false;  // false: `bytes` is the longest wrong prefix that one U+FFFD stands for
  char32_t code = 0;
};
// The character at the start of `text`, which is not empty (Unicode 15, table 3-7).
Utf8Step NextUtf8(std::string_view text);

// Offset of the first byte that is not UTF-8; npos: all is well.
size_t FindInvalidUtf8(std::string_view text);
// Each wrong sequence replaced by U+FFFD.
std::string RepairUtf8(std::string_view text);
void AppendUtf8(std::string* text, char32_t code);

// NFC of valid UTF-8.
std::string ComposeNfc(std::string_view text);

}  // namespace warmleg::model
