#include "backend/model/utf8.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backend/vt/error.h"

namespace warmleg::model {

Utf8Step NextUtf8(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return {1, true, lead};
  // The second byte's range depends on the lead byte: no overlong forms, surrogates or codes past U+10FFFF.
  unsigned low = 0x80, high = 0xbf;
  size_t length = 0;
  if (lead >= 0xc2 && lead <= 0xdf)
    length = 2;
  else if (lead >= 0xe0 && lead <= 0xef)
    length = 3;
  else if (lead >= 0xf0 && lead <= 0xf4)
    length = 4;
  else
    return {1, false, 0};
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  char32_t code = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size() || at(i) < low || at(i) > high) return {i, false, 0};
    code = code << 6 | (at(i) & 0x3f);
    low = 0x80;
    high = 0xbf;
  }
  return {length, true, code};
}

size_t FindInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(i));
    if (!step.valid) return i;
    i += step.bytes;
  }
  return std::string_view::npos;
}

std::string RepairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(i));
    if (step.valid)
      out.append(text.substr(i, step.bytes));
    else
      out.append("\xef\xbf\xbd");
    i += step.bytes;
  }
  return out;
}

void AppendUtf8(std::string* text, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

std::string ComposeNfc(std::string_view text) {
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return std::string(text);
  utf8proc_uint8_t* out = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                          static_cast<utf8proc_ssize_t>(text.size()), &out, options);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(out, std::free);
  if (n < 0) throw vt::InputError(fmt::format("text cannot be normalised: {}", utf8proc_errmsg(n)));
  return {reinterpret_cast<const char*>(out), static_cast<size_t>(n)};
}

}  // namespace warmleg::model
