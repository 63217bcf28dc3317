// Reading sysfs below a root that tests can put elsewhere. Nothing here throws: a file that cannot be read is
// a reason.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/telemetry/reading.h"

namespace warmleg::telemetry {

struct FileText {
  std::string text;                // at most 64 KiB
  std::optional<Missing> missing;  // why text is not there; an empty file is `empty`
  int error = 0;                   // errno of the failed call, 0 if none

  std::span<const std::byte> Bytes() const { return std::as_bytes(std::span(text)); }
};

FileText ReadFile(const std::string& path);

// Without the white space around it.
Text ReadTrimmed(const std::string& path, Source source);
// An unsigned decimal number divided by `by`; anything else in the file is `error`, all ones
// `sentinel_value`.
Number ReadNumber(const std::string& path, double by, Source source);
// What an errno of open or read means for the field.
Missing MissingFromErrno(int error);

// A GPU of vendor 0x1002 below /sys/class/drm, or a card that NVML lists (nvml.h).
struct SysfsBoard {
  std::string pci;         // "0000:c5:00.0", domain always written
  std::string device_dir;  // its PCI device folder, links resolved
  std::string hwmon_dir;   // empty when there is none
  int card = -1;           // N of cardN
  int render_minor = -1;   // N of renderDN
  std::string name;        // product name, or the marketing name of libdrm's table, or "AMD GPU 0x1586"
  bool nvidia = false;     // NVML answers, not the files
};

// Ordered by PCI address. `sys_root` is "/sys" except in tests.
std::vector<SysfsBoard> FindBoards(const std::string& sys_root);

// "c5:00.0", "0000:C5:00.0" and "pci:0000:c5:00.0" all give "0000:c5:00.0"; null when it is no PCI address.
std::optional<std::string> NormalisePci(std::string_view text);

}  // namespace warmleg::telemetry
