// Where it ran. A field that could not be read is null, and `unreadable` says why under the same name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/reason.h"

namespace warmleg::record {

struct Gpu {
  std::optional<std::string> name, gfx, pci;
  std::optional<int64_t> cu;
  std::optional<bool> integrated;
  std::optional<std::string> vbios;
  std::map<std::string, std::string> firmware;  // "mes": "0x00000083"
  std::optional<int64_t> vram_bytes, gtt_bytes;
  std::optional<double> peak_gb_s;  // memory clock x bus width, by the runtime
  Json unknown = Json::object();
};

struct Rocm {
  std::optional<std::string> build, loaded, runtime, driver;
  Json unknown = Json::object();
};

struct Cuda {
  std::optional<std::string> build, runtime, driver;  // CUDA releases; driver: of the display driver
  Json unknown = Json::object();
};

struct Library {
  std::string path;
  std::optional<std::string> soname, build_id;
  Json unknown = Json::object();
};

struct Environment {
  std::optional<std::string> boot_id, kernel, cpu;
  std::optional<int64_t> ram_bytes;
  std::optional<std::string> compiler, git;
  std::optional<Gpu> gpu;  // on the cpu device: the board that was watched, else null
  std::optional<Rocm> rocm;
  std::optional<Cuda> cuda;  // on device cuda
  std::vector<Library> libraries;
  std::map<std::string, std::string> variables;  // raw; set but empty is ""
  std::optional<std::string> platform_profile, tuned_profile, power_supply, cpu_governor;
  std::optional<int64_t> cached_bytes;                   // page cache when the campaign started
  std::map<std::string, std::string> amdgpu_parameters;  // module parameters, raw
  std::optional<int64_t> other_clients;                  // of the device when the campaign started
  std::map<std::string, std::string> unreadable;         // field -> reason
  Json unknown = Json::object();
};

}  // namespace warmleg::record
