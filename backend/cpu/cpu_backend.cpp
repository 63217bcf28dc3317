#include "backend/cpu/cpu_backend.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "backend/vt/error.h"

namespace vt::cpu {

namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{16} << 20;  // below it the rounding would cost too much of the memory

class CpuQueue : public Queue {
 public:
  using Queue::Queue;
  std::array<timespec, Backend::kStamps> stamps{};
};

size_t SlotIndex(int slot) {
  if (slot < 0 || slot >= Backend::kStamps)
    throw std::logic_error(fmt::format("stamp slot {} is not below {}", slot, Backend::kStamps));
  return static_cast<size_t>(slot);
}

std::string ModelName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

class CpuBackend : public Backend {
 public:
  CpuBackend() : Backend(Device{}) {}

  DeviceInfo Info() const override { return ListCpu(nullptr).front(); }
  std::unique_ptr<Queue> CreateQueue() override { return std::make_unique<CpuQueue>(*this); }

  void CopyIn(Queue&, void* device, const void* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
  }
  void CopyOut(Queue&, void* host, const void* device, size_t bytes) override {
    std::memcpy(host, device, bytes);
  }
  void Copy(Queue&, void* to, const void* from, size_t bytes) override { std::memmove(to, from, bytes); }
  void Fill(Queue&, void* to, uint8_t value, size_t bytes) override { std::memset(to, value, bytes); }
  void Synchronize(Queue&) override {}

  void Stamp(Queue& queue, int slot) override {
    clock_gettime(CLOCK_MONOTONIC, &static_cast<CpuQueue&>(queue).stamps[SlotIndex(slot)]);
  }
  double StampSeconds(Queue& queue, int from, int to) override {
    const auto& stamps = static_cast<CpuQueue&>(queue).stamps;
    const timespec& a = stamps[SlotIndex(from)];
    const timespec& b = stamps[SlotIndex(to)];
    return static_cast<double>(b.tv_sec - a.tv_sec) + 1e-9 * static_cast<double>(b.tv_nsec - a.tv_nsec);
  }

 protected:
  void* AllocBytes(size_t bytes) override {
    const size_t rounded = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    const bool huge = bytes >= kHugeFrom;
    void* data = nullptr;
    // not aligned_alloc, which wants a size that is a multiple of the alignment
    if (rounded < bytes || posix_memalign(&data, huge ? kHugePage : kCacheLine, rounded) != 0)
      throw OutOfMemoryError(fmt::format("cpu: no room for {} bytes", bytes));
    // weights are read in one sweep: fewer page walks; a refusal of the hint changes nothing
    if (huge) madvise(data, rounded, MADV_HUGEPAGE);
    return data;
  }
  void FreeBytes(void* data) noexcept override { std::free(data); }
};

}  // namespace

std::vector<DeviceInfo> ListCpu(std::vector<std::string>*) {
  DeviceInfo info;
  info.name = ModelName();
  info.compute_units = UsableCores();
  info.integrated = true;
  info.memory_bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {info};
}

std::unique_ptr<Backend> CreateCpu(int) { return std::make_unique<CpuBackend>(); }

}  // namespace vt::cpu
