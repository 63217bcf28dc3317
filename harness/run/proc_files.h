// Small readers of kernel files. A file that cannot be read gives no value; the callers say why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace warmleg::run {

// Bytes of a "Name:  123 kB" line of /proc/meminfo or /proc/PID/status.
std::optional<uint64_t> ReadMemoryField(const std::string& path, const std::string& name);

// The file's text without its final newline; `reason` says why there is none ("permission", "no such file",
// ...).
std::optional<std::string> ReadKernelFile(const std::string& path, std::string* reason = nullptr);

}  // namespace warmleg::run
