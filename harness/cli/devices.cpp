#include "harness/run/devices.h"

#include <fmt/core.h>

#include <memory>

#include "backend/vt/backend.h"
#include "backend/vt/error.h"
#include "harness/cli/boards.h"
#include "harness/cli/commands.h"

namespace warmleg::cli {

namespace {

using record::Json;

Json ToJson(const vt::DeviceInfo& info) {
  return {{"device", vt::ToString(info.device)},
          {"name", info.name},
          {"gfx", TextOrNull(info.gfx)},
          {"pci", TextOrNull(info.pci)},
          {"compute_units", info.compute_units},
          {"integrated", info.integrated},
          {"memory_bytes", info.memory_bytes},
          {"runtime", TextOrNull(info.runtime)},
          {"driver", TextOrNull(info.driver)},
          {"peak_gb_s", info.peak_gb_s > 0 ? Json(info.peak_gb_s) : Json(nullptr)}};
}

void PrintText(const std::vector<vt::DeviceInfo>& devices) {
  for (const vt::DeviceInfo& info : devices) {
    fmt::print("{:<8} {}", vt::ToString(info.device), info.name);
    if (!info.gfx.empty()) fmt::print("  {}", info.gfx);
    if (!info.pci.empty()) fmt::print("  {}", info.pci);
    const char* units = info.device.type == vt::DeviceType::cpu ? "cores" : "compute units";
    fmt::print("  {} {}  {:.1f} GiB{}\n", info.compute_units, units,
               static_cast<double>(info.memory_bytes) / (1024.0 * 1024 * 1024),
               info.integrated ? "  integrated" : "");
  }
}

int RunDevices(bool json) {
  run::RegisterBackends();
  std::vector<std::string> notes;
  const std::vector<vt::DeviceInfo> devices = vt::ListDevices(&notes);
  Json boards = Json::array();
  try {
    boards = TelemetryBoards(devices);
  } catch (const vt::EnvironmentError& e) {
    notes.emplace_back(e.what());
  }
  if (json) {
    Json list = Json::array();
    for (const vt::DeviceInfo& info : devices) list.push_back(ToJson(info));
    fmt::print("{}\n", Json{{"devices", list}, {"telemetry", boards}, {"notes", notes}}.dump(2));
  } else {
    PrintText(devices);
    fmt::print("{}", TelemetryText(boards));
  }
  for (const std::string& note : notes) fmt::print(stderr, "warmleg: {}\n", note);
  return 0;
}

}  // namespace

void AddDevices(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "devices", "lists compute devices and boards that can be watched, matched by PCI address");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  SetExample(*command, "warmleg devices --json");
  command->callback([json, &exit_code] { exit_code = RunDevices(*json); });
}

}  // namespace warmleg::cli
