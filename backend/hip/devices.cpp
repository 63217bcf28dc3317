// What the runtime says about its devices, and errors in our words.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "backend/hip/backend.h"
#include "backend/hip/kernels.h"
#include "backend/vt/error.h"

namespace vt::hip::WARMLEG_VENDOR {

void CheckHip(hipError_t error, const char* call, const char* file, int line) {
  if (error == hipSuccess) return;
  static_cast<void>(hipGetLastError());  // or the next call that asks would find it
  const std::string detail = ErrorDetail();
  const std::string text =
      fmt::format("{} failed at {}:{}: {} ({}){}{}", call, file, line, hipGetErrorName(error),
                  hipGetErrorString(error), detail.empty() ? "" : "; ", detail);
  if (error == hipErrorOutOfMemory) throw OutOfMemoryError(text);
  throw EnvironmentError(text);
}

namespace {

int Attribute(hipDeviceAttribute_t attribute, int index) {
  int value = 0;
  if (hipDeviceGetAttribute(&value, attribute, index) != hipSuccess) value = 0;
  return value;
}

DeviceInfo Describe(int index) {
  DeviceInfo info;
  info.device = {kDeviceType, index};
  const DeviceText text = DescribeDevice(index);
  info.name = text.name;
  info.gfx = text.arch;
  info.memory_bytes = text.memory_bytes;
  char pci[32] = "";
  if (hipDeviceGetPCIBusId(pci, sizeof(pci), index) == hipSuccess) info.pci = pci;
  std::transform(info.pci.begin(), info.pci.end(), info.pci.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  info.compute_units = Attribute(hipDeviceAttributeMultiprocessorCount, index);
  info.integrated = Attribute(hipDeviceAttributeIntegrated, index) != 0;
  const double clock_khz = Attribute(hipDeviceAttributeMemoryClockRate, index);
  const double bus_bits = Attribute(hipDeviceAttributeMemoryBusWidth, index);
  info.peak_gb_s = 2.0 * clock_khz * bus_bits / 8 / 1e6;                     // two transfers a clock
  info.top_clock_mhz = Attribute(hipDeviceAttributeClockRate, index) / 1e3;  // stated in kHz
  const Releases releases = RuntimeReleases();
  info.built_with = releases.built_with, info.runtime = releases.runtime, info.driver = releases.driver;
  static_cast<void>(hipGetLastError());
  return info;
}

std::unique_ptr<Backend> Create(int index) {
  return std::make_unique<RocmBackend>(Describe(index), MemoryKindFromEnvironment());
}

}  // namespace

std::vector<DeviceInfo> ListHipDevices(std::vector<std::string>* notes) {
  int count = 0;
  const hipError_t error = hipGetDeviceCount(&count);
  if (error != hipSuccess) {
    static_cast<void>(hipGetLastError());
    if (notes != nullptr) {
      notes->push_back(fmt::format("{}: hipGetDeviceCount: {} ({})", Name(kDeviceType),
                                   hipGetErrorName(error), hipGetErrorString(error)));
    }
    return {};
  }
  std::vector<DeviceInfo> devices;
  for (int i = 0; i < std::min(count, kMaxDevices); ++i) devices.push_back(Describe(i));
  return devices;
}

void RegisterVendor();
void RegisterVendor() {
  RegisterBackend({kDeviceType, ListHipDevices, Create});
  RegisterKernels(kDeviceType);
}

}  // namespace vt::hip::WARMLEG_VENDOR
