// The telemetry half of `warmleg devices`: which boards can be watched, by which source, and which compute
// device each one is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/vt/backend.h"
#include "harness/record/reason.h"

namespace warmleg::cli {

record::Json TextOrNull(const std::string& text);  // null when it is empty

// Compute devices and boards belong together by PCI address; null when no compute device has this one.
std::optional<std::string> DeviceAt(const std::vector<vt::DeviceInfo>& devices, const std::string& pci);

// One tick of every board, empty without an AMD or NVIDIA GPU:
//   [{"pci", "name", "device": "rocm:0" | null, "sources": {"sclk_mhz": "rocm_smi", ...},
//     "missing": {"power_cap_w": "unsupported", ...},
//     "library": {"name", "used", "file", "soname", "version", "text"}}]
// EnvironmentError when warmleg-sampler cannot be started.
record::Json TelemetryBoards(const std::vector<vt::DeviceInfo>& devices);

// The same for reading: two lines a board.
std::string TelemetryText(const record::Json& boards);

}  // namespace warmleg::cli
