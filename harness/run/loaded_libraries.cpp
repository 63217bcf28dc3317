#include "harness/run/loaded_libraries.h"

#include <elf.h>
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace warmleg::run {

namespace {

constexpr std::array<std::string_view, 16> kMatters = {
    "libamdhip", "libhsa",  "libamd_comgr", "librocm", "librocblas", "libhipblas", "libhiprtc", "libdrm",
    "libcuda",   "libgomp", "libomp",       "libiomp", "libc.so",    "libm.so",    "libstdc++", "libnvidia"};

std::string BuildId(const char* note, size_t size) {
  size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note + at, sizeof header);
    const size_t name = at + sizeof header;
    const size_t body = name + (header.n_namesz + 3) / 4 * 4;
    const size_t next = body + (header.n_descsz + 3) / 4 * 4;
    if (next > size) break;
    if (header.n_type == NT_GNU_BUILD_ID && std::string_view(note + name, 3) == "GNU") {
      std::string hex;
      for (size_t i = 0; i < header.n_descsz; ++i) {
        hex += fmt::format("{:02x}", static_cast<unsigned char>(note[body + i]));
      }
      return hex;
    }
    at = next;
  }
  return {};
}

std::string SoName(const ElfW(Dyn) * dynamic, ElfW(Addr) base) {
  const char* strings = nullptr;
  ElfW(Xword) offset = 0;
  bool named = false;
  for (const ElfW(Dyn)* d = dynamic; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_STRTAB) {
      // glibc relocates this entry in place; a loader that does not leaves an offset.
      const ElfW(Addr) at = d->d_un.d_ptr >= base ? d->d_un.d_ptr : base + d->d_un.d_ptr;
      strings = reinterpret_cast<const char*>(at);
    }
    if (d->d_tag == DT_SONAME) {
      offset = d->d_un.d_val;
      named = true;
    }
  }
  return named && strings != nullptr ? strings + offset : "";
}

int Visit(dl_phdr_info* info, size_t, void* out) {
  const std::filesystem::path path(info->dlpi_name);
  const std::string file = path.filename();
  const auto matters = [&](std::string_view prefix) { return file.starts_with(prefix); };
  if (std::none_of(kMatters.begin(), kMatters.end(), matters)) return 0;
  LibraryReply library;
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  library.path = error ? path.string() : real.string();
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const ElfW(Addr) at = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_NOTE && library.build_id.empty()) {
      library.build_id = BuildId(reinterpret_cast<const char*>(at), segment.p_memsz);
    }
    if (segment.p_type == PT_DYNAMIC) {
      library.soname = SoName(reinterpret_cast<const ElfW(Dyn)*>(at), info->dlpi_addr);
    }
  }
  static_cast<std::vector<LibraryReply>*>(out)->push_back(std::move(library));
  return 0;
}

}  // namespace

std::vector<LibraryReply> LoadedLibraries() {
  std::vector<LibraryReply> all;
  dl_iterate_phdr(Visit, &all);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return all;
}

}  // namespace warmleg::run
