#include "harness/cli/boards.h"

#include <map>
#include <mutex>

#include <fmt/format.h>

#include "harness/telemetry/sampler_process.h"
#include "harness/telemetry/sysfs.h"

namespace warmleg::cli {
namespace {

using record::Json;

constexpr int kTickMs = 30000;  // a library that hangs is given up by the sampler's own limit before this

Json LibraryJson(const std::string& name, const telemetry::LibraryState& library) {
  return {{"name", name},
          {"used", library.used},
          {"file", TextOrNull(library.file)},
          {"soname", TextOrNull(library.soname)},
          {"version", TextOrNull(library.version)},
          {"text", TextOrNull(library.text)}};
}

}  // namespace

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::optional<std::string> DeviceAt(const std::vector<vt::DeviceInfo>& devices, const std::string& pci) {
  for (const vt::DeviceInfo& info : devices) {
    if (telemetry::NormalisePci(info.pci) == pci) return vt::ToString(info.device);
  }
  return std::nullopt;
}

Json TelemetryBoards(const std::vector<vt::DeviceInfo>& devices) {
  std::mutex mutex;
  std::map<std::string, telemetry::BoardSample> samples;
  telemetry::SamplerOptions options;
  options.count = 1;
  options.on_sample = [&](const telemetry::BoardSample& sample) {
    const std::lock_guard lock(mutex);
    samples.emplace(sample.pci, sample);
  };
  telemetry::SamplerProcess process(options);
  process.WaitForEnd(kTickMs);
  process.Stop();
  const telemetry::SamplerStatus status = process.Status();
  Json boards = Json::array();
  for (const telemetry::SampledDevice& device : status.devices) {
    const std::optional<std::string> compute = DeviceAt(devices, device.pci);
    Json board{
        {"pci", device.pci}, {"name", device.name}, {"device", compute ? Json(*compute) : Json(nullptr)}};
    Json sources = Json::object();
    Json missing = Json::object();
    if (const auto sample = samples.find(device.pci); sample != samples.end()) {
      const Json json = telemetry::ClocksJson(sample->second, device.name);
      for (const auto& [name, field] : json["fields"].items()) {
        if (field["value"].is_null()) {
          missing[name] = field["reason"];
        } else {
          sources[name] = field["source"];
        }
      }
    }
    board["sources"] = std::move(sources);
    board["missing"] = std::move(missing);
    const bool nvml = device.library == "nvml";
    board["library"] = nvml ? LibraryJson("nvml", status.nvml) : LibraryJson("rocm_smi", status.library);
    if (status.aborted && !nvml) board["library"]["text"] = "aborted: " + *status.aborted;
    boards.push_back(std::move(board));
  }
  return boards;
}

std::string TelemetryText(const Json& boards) {
  std::string out;
  for (const Json& board : boards) {
    out += fmt::format("telemetry {}  {}  {}\n ", board["pci"].get<std::string>(),
                       board["name"].get<std::string>(),
                       board["device"].is_null() ? "no compute device" : board["device"].get<std::string>());
    for (const auto& [name, source] : board["sources"].items()) {
      out += fmt::format(" {}: {}", name, source.get<std::string>());
    }
    for (const auto& [name, reason] : board["missing"].items()) {
      out += fmt::format(" {}: - ({})", name, reason.get<std::string>());
    }
    out += "\n";
    const Json& library = board["library"];
    if (!library["used"].get<bool>() && library["text"].is_string()) {
      out += fmt::format("  {} not used: {}\n", library["name"] == "nvml" ? "libnvidia-ml" : "librocm_smi64",
                         library["text"].get<std::string>());
    }
  }
  return out;
}

}  // namespace warmleg::cli
