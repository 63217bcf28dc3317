#include "harness/telemetry/sysfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace warmleg::telemetry {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxFile = size_t{64} * 1024;

std::string_view Trim(std::string_view s) {
  constexpr std::string_view kSpace(" \t\r\n\v\f\0", 7);
  const size_t begin = s.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(kSpace) - begin + 1);
}

bool AllDigits(std::string_view s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
}

// "card12" -> 12; connectors ("card0-DP-1") are no cards.
int NumberAfter(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !AllDigits(name.substr(prefix.size()))) return -1;
  int n = -1;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), n);
  return n;
}

std::vector<std::string> List(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Lines "1586,\tD1,\tAMD Radeon 8060S Graphics".
std::string MarketingName(unsigned device, unsigned revision) {
  for (const char* path : {"/usr/share/libdrm/amdgpu.ids", "/opt/amdgpu/share/libdrm/amdgpu.ids"}) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      unsigned d = 0;
      unsigned r = 0;
      int used = 0;
      if (std::sscanf(line.c_str(), "%x, %x, %n", &d, &r, &used) != 2 || used == 0) continue;  // NOLINT
      if (d == device && r == revision) return std::string(Trim(line.substr(static_cast<size_t>(used))));
    }
  }
  return {};
}

std::string BoardName(const std::string& dir) {
  if (const Text product = ReadTrimmed(dir + "/product_name", Source::sysfs); product.value)
    return *product.value;
  auto hex = [&](const char* file) -> unsigned {
    const Text text = ReadTrimmed(dir + "/" + file, Source::sysfs);
    unsigned v = 0;
    if (!text.value || !text.value->starts_with("0x")) return 0;
    std::from_chars(text.value->data() + 2, text.value->data() + text.value->size(), v, 16);
    return v;
  };
  const unsigned device = hex("device");
  const std::string name = MarketingName(device, hex("revision"));
  return name.empty() ? fmt::format("AMD GPU 0x{:04x}", device) : name;
}

// The hwmon folder that calls itself amdgpu; other drivers may add theirs to the same device.
std::string HwmonDir(const std::string& device_dir) {
  const std::string base = device_dir + "/hwmon";
  for (const std::string& name : List(base)) {
    const std::string dir = base + "/" + name;
    if (const Text who = ReadTrimmed(dir + "/name", Source::hwmon); who.value && *who.value == "amdgpu")
      return dir;
  }
  return {};
}

}  // namespace

Missing MissingFromErrno(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENODATA:
    case ENOSYS:
    case EOPNOTSUPP:
      return Missing::unsupported;
    case EACCES:
    case EPERM:
    case EROFS:
      return Missing::permission;
    default:
      return Missing::error;
  }
}

FileText ReadFile(const std::string& path) {
  FileText out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    out.error = errno;
    out.missing = MissingFromErrno(out.error);
    return out;
  }
  std::array<char, 4096> buffer;
  while (out.text.size() < kMaxFile) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      out.error = errno;
      out.missing = MissingFromErrno(out.error);
      out.text.clear();
      break;
    }
    if (n == 0) break;
    out.text.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(fd);
  if (!out.missing && out.text.empty()) out.missing = Missing::empty;
  return out;
}

Text ReadTrimmed(const std::string& path, Source source) {
  const FileText file = ReadFile(path);
  if (file.missing) return Null<std::string>(*file.missing, source);
  const std::string_view text = Trim(file.text);
  if (text.empty()) return Null<std::string>(Missing::empty, source);
  return Value(std::string(text), source);
}

Number ReadNumber(const std::string& path, double by, Source source) {
  const Text text = ReadTrimmed(path, source);
  if (!text.value) return Null(text.missing, source);
  const std::string& s = *text.value;
  uint64_t raw = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), raw);
  if (error != std::errc() || end != s.data() + s.size()) return Null(Missing::error, source);
  if (IsAllOnes(raw)) return Null(Missing::sentinel_value, source);
  return Value(static_cast<double>(raw) / by, source);
}

std::vector<SysfsBoard> FindBoards(const std::string& sys_root) {
  std::vector<SysfsBoard> boards;
  const std::string drm = sys_root + "/class/drm";
  for (const std::string& entry : List(drm)) {
    const int card = NumberAfter(entry, "card");
    if (card < 0) continue;
    std::error_code ec;
    const fs::path device = fs::canonical(drm + "/" + entry + "/device", ec);
    if (ec) continue;
    const Text vendor = ReadTrimmed(device.string() + "/vendor", Source::sysfs);
    const std::optional<std::string> pci = NormalisePci(device.filename().string());
    if (!vendor.value || *vendor.value != "0x1002" || !pci) continue;
    SysfsBoard board;
    board.pci = *pci;
    board.device_dir = device.string();
    board.hwmon_dir = HwmonDir(board.device_dir);
    board.card = card;
    for (const std::string& node : List(board.device_dir + "/drm")) {
      board.render_minor = std::max(board.render_minor, NumberAfter(node, "renderD"));
    }
    board.name = BoardName(board.device_dir);
    boards.push_back(std::move(board));
  }
  std::sort(boards.begin(), boards.end(),
            [](const SysfsBoard& a, const SysfsBoard& b) { return a.pci < b.pci; });
  return boards;
}

std::optional<std::string> NormalisePci(std::string_view text) {
  if (text.starts_with("pci:")) text.remove_prefix(4);
  std::array<uint32_t, 4> part{};  // domain, bus, device, function
  std::array<std::string_view, 4> word;
  const size_t dot = text.rfind('.');
  const size_t last = text.rfind(':');
  if (dot == std::string_view::npos || last == std::string_view::npos || last > dot) return std::nullopt;
  word[3] = text.substr(dot + 1);
  word[2] = text.substr(last + 1, dot - last - 1);
  const std::string_view head = text.substr(0, last);
  const size_t first = head.find(':');
  word[0] = first == std::string_view::npos ? "0000" : head.substr(0, first);
  word[1] = first == std::string_view::npos ? head : head.substr(first + 1);
  constexpr std::array<uint32_t, 4> kMax = {0xFFFFFFFFU, 0xFF, 0x1F, 7};
  for (size_t i = 0; i < 4; ++i) {
    const auto [end, error] = std::from_chars(word[i].data(), word[i].data() + word[i].size(), part[i], 16);
    if (error != std::errc() || end != word[i].data() + word[i].size() || part[i] > kMax[i])
      return std::nullopt;
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", part[0], part[1], part[2], part[3]);
}

}  // namespace warmleg::telemetry
