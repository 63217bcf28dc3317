#include "harness/telemetry/board.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace warmleg::telemetry {
namespace {

namespace fs = std::filesystem;

// Lines "name value" of a KFD node.
std::map<std::string, int64_t> NodeProperties(const std::string& path) {
  std::map<std::string, int64_t> out;
  const FileText file = ReadFile(path);
  for (std::string_view text = file.text; !text.empty();) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t space = line.find(' ');
    int64_t value = 0;
    if (space == std::string_view::npos) continue;
    const auto [stop, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    if (error == std::errc()) out[std::string(line.substr(0, space))] = value;
  }
  return out;
}

struct KfdNode {
  std::map<std::string, int64_t> properties;
  std::string gpu_id;
};

// The node at the board's PCI address.
std::optional<KfdNode> FindNode(const std::string& pci, const std::string& sys) {
  std::error_code ec;
  for (fs::directory_iterator it(sys + "/class/kfd/kfd/topology/nodes", ec), end; !ec && it != end;
       it.increment(ec)) {
    const std::string dir = it->path().string();
    KfdNode node{NodeProperties(dir + "/properties"), {}};
    const auto location = node.properties.find("location_id");
    if (location == node.properties.end() || node.properties["simd_count"] == 0) continue;
    const auto id = static_cast<uint64_t>(location->second);
    const std::string at = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", node.properties["domain"], id >> 8 & 0xFF,
                                       id >> 3 & 0x1F, id & 7);
    if (at != pci) continue;
    node.gpu_id = ReadTrimmed(dir + "/gpu_id", Source::sysfs).value.value_or("");
    return node;
  }
  return std::nullopt;
}

bool AllDigits(const std::string& s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos;
}

// True when one of the process's DRM files belongs to the board. `denied` is set when its files may not be
// looked at.
bool HasOpen(const fs::path& process, const std::string& pci, bool* denied) {
  std::error_code ec;
  fs::directory_iterator it(process / "fd", ec);
  if (ec) {
    *denied |= ec == std::errc::permission_denied;
    return false;
  }
  for (const fs::directory_iterator end; !ec && it != end; it.increment(ec)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(it->path(), gone).string();
    if (gone || target.find("/dri/") == std::string::npos) continue;
    const FileText info = ReadFile((process / "fdinfo" / it->path().filename()).string());
    if (info.text.find("drm-pdev:\t" + pci) != std::string::npos) return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(BoardFingerprint* out) : out_(out) {}

  std::optional<std::string> Text(const std::string& field, const std::string& path) {
    const telemetry::Text text = ReadTrimmed(path, Source::sysfs);
    if (!text.value) out_->unreadable[field] = fmt::format("{}: {}", record::Name(text.missing), path);
    return text.value;
  }
  std::optional<int64_t> Bytes(const std::string& field, const std::string& path) {
    const Number n = ReadNumber(path, 1, Source::sysfs);
    if (!n.value) out_->unreadable[field] = fmt::format("{}: {}", record::Name(n.missing), path);
    return n.value ? std::optional(static_cast<int64_t>(*n.value)) : std::nullopt;
  }

 private:
  BoardFingerprint* out_;
};

// fw_version/NAME_fw_version of the device; MES is only in debugfs: "MES feature version: 1, firmware
// version: 0x..".
void ReadFirmware(const SysfsBoard& board, const BoardRoots& roots, BoardFingerprint* out) {
  const std::string dir = board.device_dir + "/fw_version";
  std::error_code ec;
  for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::string name = it->path().filename().string();
    const telemetry::Text text = ReadTrimmed(it->path().string(), Source::sysfs);
    if (const size_t tail = name.find("_fw_version"); tail != std::string::npos) name.resize(tail);
    if (name == "smc") name = "smu";
    if (text.value) out->gpu.firmware[name] = *text.value;
  }
  const std::string path = fmt::format("{}/dri/{}/amdgpu_firmware_info", roots.debug, board.card);
  const FileText info = ReadFile(path);
  for (std::string_view text = info.text; !text.empty();) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t feature = line.find(" feature version:");
    const size_t version = line.find("firmware version: ");
    if (feature == std::string_view::npos || version == std::string_view::npos) continue;
    std::string name(line.substr(0, feature));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(c == ' ' ? '_' : std::tolower(c)); });
    const std::string_view value = line.substr(version + 18);
    out->gpu.firmware.emplace(name, value.substr(0, value.find_first_of(" ,\t\r")));
  }
  auto reason = [&](const char* name) {
    if (!out->gpu.firmware.contains(name)) {
      const Missing why = info.missing.value_or(Missing::unsupported);
      out->unreadable[fmt::format("gpu.firmware.{}", name)] = fmt::format("{}: {}", record::Name(why), path);
    }
  };
  reason("mes");
  reason("smu");
}

}  // namespace

std::string GfxName(int64_t version) {
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

std::optional<std::set<int>> Clients(const SysfsBoard& board, const BoardRoots& roots, std::string* reason) {
  std::set<int> pids;
  bool denied = false;
  std::error_code ec;
  for (fs::directory_iterator it(roots.proc, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (AllDigits(name) && HasOpen(it->path(), board.pci, &denied))
      pids.insert(std::atoi(name.c_str()));  // NOLINT
  }
  const bool no_proc = static_cast<bool>(ec);
  if (const std::optional<KfdNode> node = FindNode(board.pci, roots.sys); node && !node->gpu_id.empty()) {
    std::error_code none;
    for (fs::directory_iterator it(roots.sys + "/class/kfd/kfd/proc", none), end; !none && it != end;
         it.increment(none)) {
      const std::string name = it->path().filename().string();
      const Number vram = ReadNumber((it->path() / ("vram_" + node->gpu_id)).string(), 1, Source::sysfs);
      if (AllDigits(name) && vram.value && *vram.value > 0) pids.insert(std::atoi(name.c_str()));  // NOLINT
    }
  }
  if (pids.empty() && (denied || no_proc)) {
    *reason = no_proc ? "unsupported: " + roots.proc : "permission: open files of other users' processes";
    return std::nullopt;
  }
  return pids;
}

BoardFingerprint ReadBoard(const SysfsBoard& board, const std::set<int>& own, const BoardRoots& roots) {
  BoardFingerprint out;
  Reader read(&out);
  out.gpu.name = board.name;
  out.gpu.pci = board.pci;
  out.gpu.vbios = read.Text("gpu.vbios", board.device_dir + "/vbios_version");
  out.gpu.vram_bytes = read.Bytes("gpu.vram_bytes", board.device_dir + "/mem_info_vram_total");
  out.gpu.gtt_bytes = read.Bytes("gpu.gtt_bytes", board.device_dir + "/mem_info_gtt_total");
  out.runtime_status = read.Text("runtime_status", board.device_dir + "/power/runtime_status");
  out.driver = read.Text("rocm.driver", roots.sys + "/module/amdgpu/version");
  ReadFirmware(board, roots, &out);
  if (std::optional<KfdNode> node = FindNode(board.pci, roots.sys)) {
    if (const int64_t gfx = node->properties["gfx_target_version"]; gfx > 0) out.gpu.gfx = GfxName(gfx);
    const int64_t simd_per_cu = node->properties["simd_per_cu"];
    if (simd_per_cu > 0) out.gpu.cu = node->properties["simd_count"] / simd_per_cu;
  } else {
    out.unreadable["gpu.gfx"] = out.unreadable["gpu.cu"] = "no_device_match: no KFD node at this address";
  }
  std::string reason;
  if (std::optional<std::set<int>> clients = Clients(board, roots, &reason)) {
    for (const int pid : own) clients->erase(pid);
    out.other_clients = static_cast<int64_t>(clients->size());
  } else {
    out.unreadable["other_clients"] = reason;
  }
  return out;
}

void AddBoard(const BoardFingerprint& board, record::Environment& environment) {
  if (!environment.gpu) environment.gpu.emplace();
  record::Gpu& gpu = *environment.gpu;
  std::map<std::string, std::string> reasons = board.unreadable;
  auto fill = [&](const char* field, auto& to, const auto& from) {
    if (!to) to = from;
    if (to) reasons.erase(field);
  };
  fill("gpu.name", gpu.name, board.gpu.name);
  fill("gpu.gfx", gpu.gfx, board.gpu.gfx);
  fill("gpu.pci", gpu.pci, board.gpu.pci);
  fill("gpu.cu", gpu.cu, board.gpu.cu);
  fill("gpu.vbios", gpu.vbios, board.gpu.vbios);
  fill("gpu.vram_bytes", gpu.vram_bytes, board.gpu.vram_bytes);
  fill("gpu.gtt_bytes", gpu.gtt_bytes, board.gpu.gtt_bytes);
  gpu.firmware.insert(board.gpu.firmware.begin(), board.gpu.firmware.end());
  fill("other_clients", environment.other_clients, board.other_clients);
  if (board.driver && board.nvidia) {
    if (!environment.cuda) environment.cuda.emplace();
    fill("cuda.driver", environment.cuda->driver, board.driver);
  } else if (board.driver) {
    if (!environment.rocm) environment.rocm.emplace();
    fill("rocm.driver", environment.rocm->driver, board.driver);
  }
  reasons.erase("runtime_status");  // not a field of the record
  environment.unreadable.insert(reasons.begin(), reasons.end());
}

}  // namespace warmleg::telemetry
