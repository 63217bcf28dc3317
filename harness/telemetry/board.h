// What is known of a board beside its clocks: firmware, memory sizes, driver, who else uses it. Read once,
// from files only; a field that cannot be read has its reason in `unreadable` under the record's name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "harness/record/fingerprint.h"
#include "harness/telemetry/sysfs.h"

namespace warmleg::telemetry {

struct BoardRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string debug = "/sys/kernel/debug";
};

struct BoardFingerprint {
  bool nvidia = false;                        // `driver` is NVIDIA's
  record::Gpu gpu;                            // name, gfx, pci, cu, vbios, firmware, vram_bytes, gtt_bytes
  std::optional<std::string> driver;          // amdgpu's own version; the in-tree driver has none
  std::optional<std::string> runtime_status;  // "active", "suspended"
  std::optional<int64_t> other_clients;       // processes that have the board open, those of `own` left out
  std::map<std::string, std::string> unreadable;  // "gpu.vbios": "permission: /sys/.../vbios_version"
};

// `own`: process ids that do not count as other clients (the harness and its workers).
BoardFingerprint ReadBoard(const SysfsBoard& board, const std::set<int>& own, const BoardRoots& roots = {});

// Fills gpu, rocm.driver or cuda.driver, other_clients and the reasons of `environment`; what is there
// already is kept.
void AddBoard(const BoardFingerprint& board, record::Environment& environment);

// "gfx1151" from the KFD's gfx_target_version 110501.
std::string GfxName(int64_t gfx_target_version);

// Processes that have the board open: a DRM file whose fdinfo names its address, or memory taken through the
// KFD. Null with `reason` where other users' processes may not be looked at and none was found.
std::optional<std::set<int>> Clients(const SysfsBoard& board, const BoardRoots& roots, std::string* reason);

}  // namespace warmleg::telemetry
