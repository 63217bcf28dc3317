#include "harness/telemetry/sidecar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/record/sha256.h"

namespace warmleg::telemetry {
namespace {

using record::Json;

// A new file beside `path` that replaces it on Commit and is removed otherwise.
class Replacement {
 public:
  explicit Replacement(const std::string& path) : path_(path), temporary_(path + ".XXXXXX") {
    fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ < 0) Fail("create", errno);
  }
  ~Replacement() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void Write(const char* data, size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(fd_, data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) Fail("write", errno);
      data += n;
      size -= static_cast<size_t>(n);
    }
  }
  void Commit() {
    if (::fchmod(fd_, 0644) != 0 || ::fsync(fd_) != 0) Fail("write", errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) Fail("rename to", errno);
    temporary_.clear();
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const int dir = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
      ::fsync(dir);
      ::close(dir);
    }
  }

 private:
  [[noreturn]] void Fail(const char* what, int error) {
    // The destructor of a constructor that throws does not run.
    if (fd_ >= 0) ::unlink(temporary_.c_str());
    throw vt::EnvironmentError(
        fmt::format("samples file: cannot {} {}: {}", what, path_, std::strerror(error)));
  }
  std::string path_, temporary_;
  int fd_ = -1;
};

}  // namespace

Sidecar::Sidecar(std::string pci, std::string name, int interval_ms)
    : pci_(std::move(pci)), name_(std::move(name)), interval_ms_(interval_ms), spool_(std::tmpfile()) {
  if (!spool_)
    throw vt::EnvironmentError(fmt::format("samples file: no temporary file: {}", std::strerror(errno)));
}

void Sidecar::Add(const BoardSample& sample) {
  const Json fields = record::FieldsToJson(sample.clocks);
  for (const auto& [name, field] : fields.items()) {
    if (!field["source"].is_string() || (field["value"].is_null() && sources_.contains(name))) continue;
    sources_[name] = field["source"].get<std::string>();
  }
  std::string line = SidecarJson(sample).dump(-1, ' ', false, Json::error_handler_t::replace);
  line += '\n';
  spool_failed_ |= std::fwrite(line.data(), 1, line.size(), spool_.get()) != line.size();
}

std::string Sidecar::WriteTo(const std::string& path) const {
  if (std::fflush(spool_.get()) != 0 || spool_failed_) {
    throw vt::EnvironmentError("samples file: the temporary folder is full");
  }
  Json head{{"schema", "warmleg.samples/1"}, {"pci", pci_}, {"name", name_}, {"interval_ms", interval_ms_}};
  head["sources"] = sources_;
  std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::vector<char> buffer(1U << 16U);
  const int spool = ::fileno(spool_.get());
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(spool, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw vt::EnvironmentError(fmt::format("samples file: cannot read back: {}", std::strerror(errno)));
    if (n == 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
    at += n;
  }
  Replacement out(path);
  out.Write(text.data(), text.size());
  out.Commit();
  return record::Sha256(text);
}

}  // namespace warmleg::telemetry
