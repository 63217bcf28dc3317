// warmleg-loadbench: how fast a checkpoint comes to a device, against an O_DIRECT read of the same files. The
// page cache is emptied of them before each of the two, and what is still cached is counted and told.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend/backends.h"
#include "backend/bench/tool.h"
#include "backend/model/loader.h"
#include "backend/vt/error.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kBlock = size_t{16} << 20;  // of one direct read
constexpr size_t kAlign = 4096;              // that O_DIRECT asks of address, length and offset

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class File {
 public:
  File(const fs::path& path, int flags) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags)) {
    if (fd_ < 0 && errno != EINVAL)
      throw vt::InputError(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }  // -1: the file system knows no O_DIRECT

 private:
  int fd_;
};

std::vector<fs::path> WeightFiles(const std::string& dir) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  if (files.empty()) throw vt::InputError(fmt::format("{}: no .safetensors file is there", dir));
  std::sort(files.begin(), files.end());
  return files;
}

// Written pages can be dropped only once they are on the disk.
void DropFromCache(const std::vector<fs::path>& files) {
  for (const fs::path& path : files) {
    const File file(path, 0);
    ::fdatasync(file.fd());
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

// Share of the files' pages that are in memory.
double CachedShare(const std::vector<fs::path>& files) {
  uint64_t pages = 0, resident = 0;
  for (const fs::path& path : files) {
    const File file(path, 0);
    const auto size = static_cast<size_t>(fs::file_size(path));
    if (size == 0) continue;
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd(), 0);
    if (data == MAP_FAILED) continue;
    std::vector<unsigned char> in((size + kAlign - 1) / kAlign);
    if (::mincore(data, size, in.data()) == 0) {
      pages += in.size();
      for (const unsigned char page : in) resident += page & 1U;
    }
    ::munmap(data, size);
  }
  return pages == 0 ? 0 : static_cast<double>(resident) / static_cast<double>(pages);
}

struct Direct {
  double seconds = 0;
  bool direct = true;  // every file was read past the cache
};

Direct ReadDirect(const std::vector<fs::path>& files) {
  const std::unique_ptr<void, void (*)(void*)> block(std::aligned_alloc(kAlign, kBlock), std::free);
  if (block == nullptr) throw vt::EnvironmentError("no memory for the direct read");
  Direct out;
  const auto begin = Clock::now();
  for (const fs::path& path : files) {
    const File direct(path, O_DIRECT);
    const File buffered(path, 0);
    out.direct = out.direct && direct.fd() >= 0;
    const int fd = direct.fd() >= 0 ? direct.fd() : buffered.fd();
    for (off_t at = 0;;) {
      const ssize_t n = ::pread(fd, block.get(), kBlock, at);
      if (n < 0)
        throw vt::EnvironmentError(
            fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
      at += n;
      if (n < static_cast<ssize_t>(kBlock)) break;  // the end of the file
    }
  }
  out.seconds = SecondsSince(begin);
  return out;
}

// VmHWM of this process since the last reset; 0: unknown.
uint64_t PeakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

nlohmann::json Measure(const std::string& dir, vt::Backend& backend) {
  const std::vector<fs::path> files = WeightFiles(dir);
  uint64_t file_bytes = 0;
  for (const fs::path& path : files) file_bytes += fs::file_size(path);
  const auto rate = [](uint64_t bytes, double seconds) { return static_cast<double>(bytes) / seconds / 1e9; };

  DropFromCache(files);
  const double cached_direct = CachedShare(files);
  const Direct direct = ReadDirect(files);
  DropFromCache(files);
  const double cached_load = CachedShare(files);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
  const uint64_t rss = PeakRssBytes();
  warmleg::model::LoadReport report;
  double told = 0;
  const auto weights = warmleg::model::LoadTarget(dir, backend, &report, [&](uint64_t done, uint64_t total) {
    const double share = static_cast<double>(done) / static_cast<double>(total);
    if (share < told + 0.1 && done < total) return;
    told = share;
    fmt::print(stderr, "\rloading {:3.0f} %{}", 100 * share, done < total ? "" : "\n");
  });
  const double direct_gb_s = rate(file_bytes, direct.seconds);
  const double load_gb_s = rate(file_bytes, report.seconds);
  return {{"dir", dir},
          {"device", vt::ToString(backend.device())},
          {"file_bytes", file_bytes},
          {"weight_bytes", report.bytes},
          {"direct", direct.direct},
          {"direct_s", direct.seconds},
          {"direct_gb_s", direct_gb_s},
          {"load_s", report.seconds},
          {"load_gb_s", load_gb_s},
          {"ratio", load_gb_s / direct_gb_s},
          {"cached_before_direct", cached_direct},
          {"cached_before_load", cached_load},
          {"host_memory_growth_bytes", PeakRssBytes() - std::min(rss, PeakRssBytes())},
          {"hash", report.hash}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string dir, device = "cpu";
  int repeats = 3;
  CLI::App app(
      "Loads a target's checkpoint to a device and compares with an O_DIRECT read of its files. One JSON "
      "object a\n"
      "repeat. Example: warmleg-loadbench scenarios/checkpoints/tiny-code/target");
  app.add_option("dir", dir, "folder of a target")->required();
  app.add_option("--device", device, "cpu, rocm:N, cuda:N")->capture_default_str();
  app.add_option("--repeats", repeats, "how often")->check(CLI::Range(1, 1000))->capture_default_str();
  return vt::bench::RunTool(app, argc, argv, "warmleg-loadbench", [&] {
    vt::RegisterBackends();
    vt::Backend& backend = vt::GetBackend(vt::ParseDevice(device));
    for (int i = 0; i < repeats; ++i) fmt::print("{}\n", Measure(dir, backend).dump());
  });
}
