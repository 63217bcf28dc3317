#include "harness/run/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backend/backends.h"
#include "backend/vt/error.h"

namespace warmleg::run {

void RegisterBackends() { vt::RegisterBackends(); }

vt::Device ResolveDevice(std::string_view text, const std::vector<vt::DeviceInfo>& devices,
                         const std::vector<std::string>& notes) {
  std::vector<std::string> gpus;
  vt::Device only;
  for (const vt::DeviceInfo& info : devices) {
    const bool gpu = info.device.type == vt::DeviceType::rocm || info.device.type == vt::DeviceType::cuda;
    if (!gpu) continue;  // cpu is the answer without a GPU; sim is used only when named
    gpus.push_back(fmt::format("{} ({} {})", vt::ToString(info.device), info.name, info.pci));
    only = info.device;
  }
  if (text == "auto") {
    if (gpus.size() > 1) {
      throw vt::InputError(
          fmt::format("device auto: {} GPUs here: {}; name one with --device or --set device=", gpus.size(),
                      fmt::join(gpus, ", ")));
    }
    return gpus.empty() ? vt::Device{} : only;
  }
  const vt::Device device = vt::ParseDevice(text);
  const auto same = [&](const vt::DeviceInfo& info) { return info.device == device; };
  if (std::none_of(devices.begin(), devices.end(), same)) {
    std::vector<std::string> names;
    for (const vt::DeviceInfo& info : devices) names.push_back(vt::ToString(info.device));
    throw vt::EnvironmentError(fmt::format("no device {} here; there is {}{}{}", vt::ToString(device),
                                           fmt::join(names, ", "), notes.empty() ? "" : "; ",
                                           fmt::join(notes, "; ")));
  }
  return device;
}

}  // namespace warmleg::run
