#include "harness/run/proc_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

namespace warmleg::run {

std::optional<uint64_t> ReadMemoryField(const std::string& path, const std::string& name) {
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with(name + ":")) continue;
    const size_t digits = line.find_first_of("0123456789", name.size());
    if (digits == std::string::npos) return std::nullopt;
    uint64_t kib = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    return kib * 1024;
  }
  return std::nullopt;
}

std::optional<std::string> ReadKernelFile(const std::string& path, std::string* reason) {
  const auto fail = [&](int error) {
    if (reason != nullptr) *reason = error == ENOENT ? "no such file" : std::strerror(error);
    return std::nullopt;
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(errno);
  std::string text;
  std::array<char, 4096> bytes{};
  ssize_t n = 0;
  while ((n = read(fd, bytes.data(), bytes.size())) > 0) text.append(bytes.data(), static_cast<size_t>(n));
  const int error = errno;
  close(fd);
  if (n < 0) return fail(error);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  if (text.empty() && reason != nullptr) *reason = "empty";
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace warmleg::run
