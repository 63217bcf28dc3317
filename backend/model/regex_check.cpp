#include "backend/model/regex_check.h"

#include <fmt/core.h>

namespace warmleg::model {

namespace {

// Escapes with one meaning in both engines.
constexpr std::string_view kLetters = "sSdDwWpPrntfbBAzZxa";

std::string CheckEscape(std::string_view rest) {
  const char c = rest[0];
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (c >= '1' && c <= '9') return fmt::format("a back reference (\\{})", c);
  if (letter && kLetters.find(c) == std::string_view::npos) return fmt::format("\\{}", c);
  return {};
}

// rest starts after "(?"
std::string CheckGroup(std::string_view rest) {
  if (rest.starts_with(":") || rest.starts_with("=") || rest.starts_with("!") || rest.starts_with(">") ||
      rest.starts_with("<=") || rest.starts_with("<!"))
    return {};
  size_t i = 0;
  while (i < rest.size() && (rest[i] == 'i' || rest[i] == 'x' || rest[i] == '-')) ++i;
  if (i > 0 && i < rest.size() && (rest[i] == ':' || rest[i] == ')')) return {};
  return fmt::format("the group (?{}", rest.substr(0, 3));
}

}  // namespace

std::string UnsupportedRegexFeature(std::string_view p) {
  bool in_class = false;
  for (size_t i = 0; i < p.size(); ++i) {
    const std::string_view rest = p.substr(i);
    if (rest[0] == '\\') {
      if (rest.size() == 1) return "a trailing backslash";
      if (std::string why = CheckEscape(rest.substr(1)); !why.empty()) return why;
      ++i;
      const bool braced = p.substr(i + 1).starts_with("{") && (p[i] == 'p' || p[i] == 'P' || p[i] == 'x');
      if (braced && p.find('}', i) != std::string_view::npos) i = p.find('}', i);
    } else if (in_class) {
      if (rest.starts_with("&&")) return "a class intersection (&&)";
      if (rest.starts_with("[")) return "a class inside a class";
      if (rest[0] == ']') in_class = false;
    } else if (rest[0] == '[') {
      in_class = true;
      if (rest.starts_with("[^")) ++i;
      if (p.substr(i + 1).starts_with("]")) return "a class that starts with ]";
    } else if (rest.starts_with("(*")) {
      return "a verb (*";
    } else if (rest.starts_with("(?")) {
      if (std::string why = CheckGroup(rest.substr(2)); !why.empty()) return why;
    } else if (rest.starts_with("{,")) {
      return "a count without a lower bound ({,";
    } else if (rest.starts_with("}+")) {
      return "a possessive count (}+)";
    }
  }
  return {};
}

}  // namespace warmleg::model
