// warmleg clocks: what the telemetry sources answer, field by field.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/vt/backend.h"
#include "backend/vt/error.h"
#include "harness/cli/commands.h"
#include "harness/run/devices.h"
#include "harness/run/interrupt.h"
#include "harness/telemetry/nvml.h"
#include "harness/telemetry/sampler_process.h"
#include "harness/telemetry/sysfs.h"

namespace warmleg::cli {
namespace {

using record::Json;

struct ClocksOptions {
  std::string device;
  bool watch = false;
  bool json = false;
  int interval_ms = 100;
};

// The PCI address that `device` names: an address, or a compute device whose runtime knows it.
std::string ResolvePci(const std::string& device) {
  if (const std::optional<std::string> pci = telemetry::NormalisePci(device)) return *pci;
  const vt::Device wanted = vt::ParseDevice(device);
  run::RegisterBackends();
  for (const vt::DeviceInfo& info : vt::ListDevices(nullptr)) {
    if (info.device != wanted) continue;
    if (const std::optional<std::string> pci = telemetry::NormalisePci(info.pci)) return *pci;
    throw vt::InputError(
        fmt::format("--device {}: it has no PCI address; name a board as 0000:c5:00.0", device));
  }
  throw vt::EnvironmentError(
      fmt::format("--device {}: there is no such device (see: warmleg devices)", device));
}

std::string ValueText(const Json& value) {
  if (value.is_number()) return fmt::format("{:g}", value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  const auto active = value.find("active");
  if (active == value.end() || active->empty()) return "none";
  std::string names;
  for (const Json& name : *active) names += (names.empty() ? "" : ",") + name.get<std::string>();
  return names;
}

// One line a field: value and source, or the reason for its absence.
std::string FieldTable(const Json& sample) {
  std::string out =
      fmt::format("{}  {}\n", sample["pci"].get<std::string>(), sample["name"].get<std::string>());
  for (const auto& [name, field] : sample["fields"].items()) {
    const std::string source = field["source"].is_string() ? field["source"].get<std::string>() : "no source";
    if (field["value"].is_null()) {
      out += fmt::format("  {:<14} {:<10} {} ({})\n", name, "-", field["reason"].get<std::string>(), source);
    } else {
      out += fmt::format("  {:<14} {:<10} {}\n", name, ValueText(field["value"]), source);
    }
  }
  return out;
}

// One line a sample, for --watch.
std::string SampleLine(const Json& sample) {
  std::string out = sample["pci"].get<std::string>();
  for (const auto& [name, field] : sample["fields"].items()) {
    out += fmt::format("  {} {}", name, field["value"].is_null() ? "-" : ValueText(field["value"]));
  }
  return out + "\n";
}

// Prints samples as they come; the sampler names its boards before their first sample.
class Printer {
 public:
  explicit Printer(const ClocksOptions& options) : options_(options) {}

  void Print(const telemetry::BoardSample& sample) {
    const std::lock_guard lock(mutex_);
    const Json json = telemetry::ClocksJson(sample, NameOf(sample.pci));
    const std::string text = options_.json ? json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
                             : options_.watch ? SampleLine(json)
                                              : FieldTable(json);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

 private:
  std::string NameOf(const std::string& pci) {
    if (names_.empty()) {
      for (const telemetry::SysfsBoard& board : telemetry::FindAllBoards("/sys").all)
        names_[board.pci] = board.name;
    }
    return names_[pci];
  }

  const ClocksOptions& options_;
  std::mutex mutex_;
  std::map<std::string, std::string> names_;
};

[[noreturn]] void NoBoard(const std::string& pci) {
  const telemetry::Boards boards = telemetry::FindAllBoards("/sys");
  if (boards.all.empty()) {
    throw vt::EnvironmentError(
        fmt::format("no AMD GPU below /sys/class/drm (load the amdgpu driver) and no NVIDIA GPU ({}); see: "
                    "warmleg devices",
                    boards.nvml_why_not));
  }
  std::string list;
  for (const telemetry::SysfsBoard& b : boards.all) list += fmt::format("\n  {}  {}", b.pci, b.name);
  throw vt::InputError(fmt::format("--device {}: no GPU at this address; there is{}", pci, list));
}

int RunClocks(const ClocksOptions& options) {
  telemetry::SamplerOptions sampler;
  if (!options.device.empty()) sampler.pci = ResolvePci(options.device);
  sampler.interval_ms = options.interval_ms;
  sampler.count = options.watch ? 0 : 1;
  Printer printer(options);
  sampler.on_sample = [&printer](const telemetry::BoardSample& sample) { printer.Print(sample); };
  run::CatchInterrupts();
  telemetry::SamplerProcess process(sampler);
  bool told = false;
  while (true) {
    const bool ended = process.WaitForEnd(100);
    const telemetry::SamplerStatus status = process.Status();
    if (status.aborted && !told) {
      fmt::print(stderr, "warmleg: rocm_smi_aborted: {}; samples go on without librocm_smi64\n",
                 *status.aborted);
      told = true;
    }
    if (run::InterruptPending()) return 130;
    if (!ended) continue;
    if (status.no_device) NoBoard(sampler.pci);
    if (status.lost) throw vt::EnvironmentError("telemetry_lost: the sampler died again: " + *status.lost);
    return 0;
  }
}

}  // namespace

void AddClocks(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("clocks",
                                         "shows clocks, power and temperature of AMD and NVIDIA GPUs, each "
                                         "with its source or why it is missing");
  auto options = std::make_shared<ClocksOptions>();
  command->add_option("--device", options->device,
                      "one board: a PCI address (0000:c5:00.0) or a device (rocm:0)");
  command->add_flag("--watch", options->watch, "go on until interrupted");
  command->add_flag("--json", options->json, "one JSON object per board and sample, one a line");
  command->add_option("--interval", options->interval_ms, "milliseconds between samples with --watch")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  SetExample(*command, "warmleg clocks --json");
  command->callback([options, &exit_code] { exit_code = RunClocks(*options); });
}

}  // namespace warmleg::cli
