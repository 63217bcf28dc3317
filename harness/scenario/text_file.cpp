#include "harness/scenario/text_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "backend/vt/error.h"

namespace warmleg::scenario {

std::string ReadText(const std::filesystem::path& file, std::string_view kind) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw vt::InputError(fmt::format("{}: is a folder, expected a {}", file.string(), kind));
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw vt::InputError(
        fmt::format("{}: cannot read the {}: {}", file.string(), kind, std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

void ThrowAll(const std::vector<std::string>& defects, std::string_view what) {
  if (!defects.empty()) throw vt::InputError(fmt::format("{}: {}", what, fmt::join(defects, "; ")));
}

}  // namespace warmleg::scenario
