// A compute device as the command line spells it: cpu, rocm:0, sim:0, cuda:0.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace vt {

enum class DeviceType { cpu, rocm, sim, cuda };
inline constexpr int kDeviceTypes = 4;
inline constexpr int kMaxDevices = 16;  // devices of one type in one process

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;  // as the runtime numbers them; always 0 for cpu
  auto operator<=>(const Device&) const = default;
};

std::string_view Name(DeviceType type);
std::string ToString(Device device);  // "cpu", "rocm:0"

// Throws InputError that lists the accepted spellings.
Device ParseDevice(std::string_view text);

}  // namespace vt
