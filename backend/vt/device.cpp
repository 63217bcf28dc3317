#include "backend/vt/device.h"

#include <fmt/core.h>

#include <charconv>

#include "backend/vt/error.h"

namespace vt {

std::string_view Name(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::rocm:
      return "rocm";
    case DeviceType::sim:
      return "sim";
    case DeviceType::cuda:
      return "cuda";
  }
  return "?";
}

std::string ToString(Device device) {
  if (device.type == DeviceType::cpu) return "cpu";
  return fmt::format("{}:{}", Name(device.type), device.index);
}

Device ParseDevice(std::string_view text) {
  if (text == "cpu") return {};
  for (DeviceType type : {DeviceType::rocm, DeviceType::sim, DeviceType::cuda}) {
    const std::string_view name = Name(type);
    if (!text.starts_with(name) || text.size() < name.size() + 2 || text[name.size()] != ':') continue;
    const char* first = text.data() + name.size() + 1;
    const char* last = text.data() + text.size();
    int index = -1;
    const auto [end, error] = std::from_chars(first, last, index);
    if (error == std::errc{} && end == last && index >= 0 && index < kMaxDevices) return {type, index};
  }
  throw InputError(
      fmt::format("device '{}' is not one of cpu, rocm:N, cuda:N, sim:N (N below {})", text, kMaxDevices));
}

}  // namespace vt
