// A libnvidia-ml.so.1 for tests: answers from the lines "KEY VALUE" of the file that WARMLEG_FAKE_NVML names,
// read anew at every call, so that a test can change the card while it is watched. A key FUNCTION.status
// makes that function fail. Keys of one card begin with its number: "0.sm 1980".
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace {

std::map<std::string, std::string> Answers() {
  std::map<std::string, std::string> all;
  const char* path = std::getenv("WARMLEG_FAKE_NVML");
  if (path == nullptr) return all;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    if (space != std::string::npos) all[line.substr(0, space)] = line.substr(space + 1);
  }
  return all;
}

std::string Text(const std::string& key, const std::string& otherwise = {}) {
  const auto all = Answers();
  const auto it = all.find(key);
  return it == all.end() ? otherwise : it->second;
}
unsigned long long Number(const std::string& key, unsigned long long otherwise) {
  const std::string text = Text(key);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 0);
}
int Status(const std::string& function) { return static_cast<int>(Number(function + ".status", 0)); }

// A handle is the card's number plus one.
std::string Card(void* device) { return std::to_string(reinterpret_cast<std::uintptr_t>(device) - 1) + "."; }
int Unsigned(const std::string& key, unsigned long long otherwise, unsigned* out) {
  if (const int status = Status(key); status != 0) return status;
  *out = static_cast<unsigned>(Number(key, otherwise));
  return 0;
}
int Copy(const std::string& key, const char* otherwise, char* out, unsigned length) {
  if (const int status = Status(key); status != 0) return status;
  std::snprintf(out, length, "%s", Text(key, otherwise).c_str());
  return 0;
}

struct PciInfo {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
#if !defined(WARMLEG_FAKE_NVML_OLD)
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
#endif

int Reasons(void* device, unsigned long long* out) {
  if (const int status = Status(Card(device) + "reasons"); status != 0) return status;
  *out = Number(Card(device) + "reasons", 0);
  return 0;
}

}  // namespace

extern "C" {
int nvmlInit_v2() { return Status("init"); }
int nvmlShutdown() { return 0; }
int nvmlSystemGetNVMLVersion(char* out, unsigned length) { return Copy("version", "12.580", out, length); }
int nvmlSystemGetDriverVersion(char* out, unsigned length) { return Copy("driver", "580.1", out, length); }
int nvmlDeviceGetCount_v2(unsigned* out) { return Unsigned("count", 1, out); }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) {
  *out = reinterpret_cast<void*>(std::uintptr_t{index} + 1);
  return Status(std::to_string(index) + ".handle");
}
int nvmlDeviceGetName(void* d, char* out, unsigned n) {
  return Copy(Card(d) + "name", "NVIDIA Fake", out, n);
}
int nvmlDeviceGetVbiosVersion(void* d, char* out, unsigned n) {
  return Copy(Card(d) + "vbios", "96.00", out, n);
}
int nvmlDeviceGetPciInfo_v3(void* d, PciInfo* out) {
  if (const int status = Status(Card(d) + "pci"); status != 0) return status;
  std::memset(out, 0, sizeof *out);
  std::sscanf(Text(Card(d) + "pci", "0000:1b:00.0").c_str(), "%x:%x:%x", &out->domain, &out->bus,
              &out->device);
  return 0;
}
int nvmlDeviceGetClockInfo(void* d, int type, unsigned* out) {
  return type == 1   ? Unsigned(Card(d) + "sm", 1980, out)
         : type == 2 ? Unsigned(Card(d) + "mem", 3201, out)
                     : 2;
}
int nvmlDeviceGetMaxClockInfo(void* d, int type, unsigned* out) {
  return type == 1 ? Unsigned(Card(d) + "sm_max", 1980, out) : 2;
}
int nvmlDeviceGetTemperature(void* d, int sensor, unsigned* out) {
  return sensor == 0 ? Unsigned(Card(d) + "temp", 41, out) : 2;
}
int nvmlDeviceGetPowerUsage(void* d, unsigned* out) { return Unsigned(Card(d) + "power", 312345, out); }
int nvmlDeviceGetEnforcedPowerLimit(void* d, unsigned* out) { return Unsigned(Card(d) + "cap", 700000, out); }
int nvmlDeviceGetUtilizationRates(void* d, Utilization* out) {
  if (const int status = Status(Card(d) + "busy"); status != 0) return status;
  out->gpu = static_cast<unsigned>(Number(Card(d) + "busy", 97));
  out->memory = static_cast<unsigned>(Number(Card(d) + "memory_busy", 33));
  return 0;
}
int nvmlDeviceGetPerformanceState(void* d, int* out) {
  unsigned state = 0;
  const int status = Unsigned(Card(d) + "state", 0, &state);
  *out = static_cast<int>(state);
  return status;
}
int nvmlDeviceGetMemoryInfo(void* d, Memory* out) {
  *out = {Number(Card(d) + "memory", 150754820096), 0, 0};
  return Status(Card(d) + "memory");
}
#if defined(WARMLEG_FAKE_NVML_OLD)
int nvmlDeviceGetCurrentClocksThrottleReasons(void* d, unsigned long long* out) { return Reasons(d, out); }
#else
int nvmlDeviceGetCurrentClocksEventReasons(void* d, unsigned long long* out) { return Reasons(d, out); }
int nvmlDeviceGetComputeRunningProcesses_v3(void* d, unsigned* count, Process* out) {
  if (const int status = Status(Card(d) + "clients"); status != 0) return status;
  const auto n = static_cast<unsigned>(Number(Card(d) + "clients", 0));  // pids 1000, 1001, ...
  const unsigned room = *count;
  *count = n;
  if (n > room) return 7;
  for (unsigned i = 0; i < n; ++i) out[i] = {1000 + i, 0, 0, 0};
  return 0;
}
#endif
}
