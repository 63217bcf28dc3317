#include "harness/run/fingerprint.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "harness/run/proc_files.h"
#include "warmleg_revision.h"

namespace warmleg::run {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 20> kPrefixes = {
    "HIP_", "ROCR_", "HSA_",  "VT_",     "OMP_",    "GOMP_", "KMP_",    "ROCBLAS_", "HIPBLASLT_", "TENSILE_",
    "AMD_", "GPU_",  "CUDA_", "NVIDIA_", "MIOPEN_", "LC_",   "MALLOC_", "GLIBC_",   "WARMLEG_",   "LD_"};
constexpr std::array<std::string_view, 3> kNames = {"LANG", "LANGUAGE", "ROCM_PATH"};

class Reader {
 public:
  Reader(record::Environment& out, const std::string& root) : out_(out), root_(root) {}

  std::optional<std::string> File(const std::string& field, const std::string& path) {
    std::string reason;
    std::optional<std::string> text = ReadKernelFile(root_ + path, &reason);
    if (!text) out_.unreadable[field] = fmt::format("{}: {}", path, reason);
    return text;
  }
  std::optional<int64_t> Memory(const std::string& field, const std::string& name) {
    const std::optional<uint64_t> bytes = ReadMemoryField(root_ + "/proc/meminfo", name);
    if (!bytes) {
      out_.unreadable[field] = fmt::format("/proc/meminfo: no {}", name);
      return std::nullopt;
    }
    return static_cast<int64_t>(*bytes);
  }

 private:
  record::Environment& out_;
  std::string root_;
};

std::optional<std::string> CpuModel(const std::string& root) {
  std::ifstream in(root + "/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return std::nullopt;
}

// "AC online" or "battery", from the kernel's power supplies.
std::optional<std::string> PowerSupply(const std::string& root) {
  std::error_code error;
  std::optional<std::string> supply;
  for (const auto& entry : fs::directory_iterator(root + "/sys/class/power_supply", error)) {
    const std::string type = ReadKernelFile((entry.path() / "type").string()).value_or("");
    const std::string online = ReadKernelFile((entry.path() / "online").string()).value_or("");
    if (type == "Mains" && online == "1") return "AC";
    if (type == "Battery" || type == "Mains") supply = "battery";
  }
  return supply;
}

std::map<std::string, std::string> Variables() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(text.substr(0, equals));
    if (VariableMatters(name)) all[name] = text.substr(equals + 1);
  }
  return all;
}

// A parameter that only root may read is left out; the driver's absence is a reason of its own.
std::map<std::string, std::string> ModuleParameters(const std::string& folder) {
  std::map<std::string, std::string> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (auto text = ReadKernelFile(entry.path().string())) all[entry.path().filename().string()] = *text;
  }
  return all;
}

void AddFirmware(const fs::path& device, record::Gpu& gpu) {
  gpu.vbios = ReadKernelFile((device / "vbios_version").string());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(device / "fw_version", error)) {
    const std::string name = entry.path().filename().string();
    const size_t end = name.find("_fw_version");
    if (auto text = ReadKernelFile(entry.path().string())) gpu.firmware[name.substr(0, end)] = *text;
  }
  const auto bytes = [&](const char* file) -> std::optional<int64_t> {
    const std::optional<std::string> text = ReadKernelFile((device / file).string());
    if (!text || text->find_first_not_of("0123456789") != std::string::npos || text->size() > 18) {
      return std::nullopt;
    }
    return std::stoll(*text);
  };
  gpu.vram_bytes = bytes("mem_info_vram_total");
  gpu.gtt_bytes = bytes("mem_info_gtt_total");
}

std::optional<std::string> NotEmpty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// "7.1.25424" of "HIP 7.1.25424".
std::string Number(const std::string& release) {
  const size_t space = release.find(' ');
  return space == std::string::npos ? release : release.substr(space + 1);
}

// "7.1" of "HIP 7.1.25424": the ROCm release that this HIP belongs to.
std::optional<std::string> MajorMinor(const std::string& release) {
  const std::string number = Number(release);
  const size_t first = number.find('.');
  return NotEmpty(number.substr(0, first == std::string::npos ? first : number.find('.', first + 1)));
}

// What the ROCm tree of the loaded HIP runtime says of itself, in .info/version: "7.1.0-91".
std::optional<std::string> LoadedRocm(const LoadedReply& loaded) {
  for (const LibraryReply& library : loaded.libraries) {
    const fs::path path(library.path);
    if (!path.filename().string().starts_with("libamdhip64")) continue;
    for (const fs::path& tree : {path.parent_path(), path.parent_path().parent_path()}) {
      if (auto text = ReadKernelFile((tree / ".info/version").string()))
        return text->substr(0, text->find('-'));
    }
  }
  return std::nullopt;
}

void AddReleases(const LoadedReply& loaded, record::Environment& out) {
  const DeviceReply& device = loaded.device;
  if (device.device.starts_with("rocm")) {
    if (!out.rocm) out.rocm.emplace();
    out.rocm->build = MajorMinor(device.built_with);
    out.rocm->loaded = LoadedRocm(loaded);
    if (!out.rocm->loaded) out.rocm->loaded = MajorMinor(device.runtime);  // a distribution's own package
    out.rocm->runtime = NotEmpty(Number(device.runtime));
  } else if (device.device.starts_with("cuda")) {
    if (!out.cuda) out.cuda.emplace();
    out.cuda->build = NotEmpty(Number(device.built_with));
    out.cuda->runtime = NotEmpty(Number(device.runtime));
  }
}

}  // namespace

bool VariableMatters(const std::string& name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

record::Environment HostFingerprint(const std::string& root) {
  record::Environment out;
  Reader read(out, root);
  out.boot_id = read.File("boot_id", "/proc/sys/kernel/random/boot_id");
  out.kernel = read.File("kernel", "/proc/sys/kernel/osrelease");
  out.cpu = CpuModel(root);
  if (!out.cpu) out.unreadable["cpu"] = "/proc/cpuinfo: no model name";
  out.ram_bytes = read.Memory("ram_bytes", "MemTotal");
  out.cached_bytes = read.Memory("cached_bytes", "Cached");
  out.compiler = fmt::format("{} {}", kCompiler, kBuildType);
  out.git = kGitRevision;
  out.platform_profile = read.File("platform_profile", "/sys/firmware/acpi/platform_profile");
  out.tuned_profile = read.File("tuned_profile", "/etc/tuned/active_profile");
  out.cpu_governor = read.File("cpu_governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  out.power_supply = PowerSupply(root);
  if (!out.power_supply) out.unreadable["power_supply"] = "/sys/class/power_supply: no supply is listed";
  out.amdgpu_parameters = ModuleParameters(root + "/sys/module/amdgpu/parameters");
  if (out.amdgpu_parameters.empty()) out.unreadable["amdgpu_parameters"] = "the amdgpu driver is not loaded";
  out.variables = Variables();
  return out;
}

void AddWorkerFingerprint(const LoadedReply& loaded, record::Environment& out, const std::string& root) {
  out.libraries.clear();
  for (const LibraryReply& library : loaded.libraries) {
    record::Library entry;
    entry.path = library.path;
    entry.soname = NotEmpty(library.soname);
    entry.build_id = NotEmpty(library.build_id);
    out.libraries.push_back(std::move(entry));
  }
  const DeviceReply& device = loaded.device;
  if (device.device == "cpu") return;
  AddReleases(loaded, out);
  record::Gpu gpu;
  gpu.name = NotEmpty(device.name);
  gpu.gfx = NotEmpty(device.gfx);
  gpu.pci = NotEmpty(device.pci);
  gpu.cu = device.compute_units;
  gpu.integrated = device.integrated;
  if (device.peak_gb_s > 0) gpu.peak_gb_s = device.peak_gb_s;
  if (!device.pci.empty()) {
    AddFirmware(fs::path(root + "/sys/bus/pci/devices") / device.pci, gpu);
    if (!gpu.vbios) out.unreadable["gpu.vbios"] = "the driver's vbios_version is not readable";
    if (gpu.firmware.empty()) out.unreadable["gpu.firmware"] = "the driver's fw_version is not readable";
  }
  out.gpu = std::move(gpu);
}

}  // namespace warmleg::run
