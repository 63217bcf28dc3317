#include "harness/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/record/sha256.h"

namespace warmleg::store {
namespace {

namespace fs = std::filesystem;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  // The result of close() is where some file systems report a full disk.
  bool Close() {
    const int fd = fd_;
    fd_ = -1;
    return close(fd) == 0;
  }

 private:
  int fd_;
};

// Removes the temporary file unless it was renamed away.
struct TempFile {
  fs::path path;
  TempFile() = default;
  ~TempFile() {
    if (!path.empty()) unlink(path.c_str());
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
};

[[noreturn]] void CannotWrite(const fs::path& file, std::string_view step) {
  throw vt::EnvironmentError(
      fmt::format("{}: cannot write: {}: {}", file.string(), step, std::strerror(errno)));
}

[[noreturn]] void Exists(const fs::path& file) {
  throw vt::InputError(fmt::format("{}: exists; name another file or use --force", file.string()));
}

void WriteAll(const Fd& fd, std::string_view bytes, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) CannotWrite(file, "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

// ".NAME.PID.COUNT.tmp": no two writers share it, on one machine.
fs::path TempName(const fs::path& file) {
  static std::atomic<uint64_t> count{0};
  return file.parent_path() /
         fmt::format(".{}.{}.{}.tmp", file.filename().string(), getpid(), count.fetch_add(1));
}

// Opens a fresh temporary file. A name left behind by a killed writer is passed over.
int Create(const fs::path& file, TempFile& temp) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const fs::path path = TempName(file);
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      temp.path = path;
      return fd;
    }
    if (errno != EEXIST) break;
  }
  CannotWrite(file, "create a temporary file beside it");
}

void SyncFolder(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder (EINVAL); the rename itself has happened.
  if (fd.get() < 0 || (fsync(fd.get()) != 0 && errno != EINVAL)) CannotWrite(file, "fsync of the folder");
}

void CheckSchema(const record::Json& json, const std::string& what, std::string_view wanted) {
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string())
    throw vt::InputError(fmt::format("{}: no schema field, so not a {} file", what, wanted));
  const auto schema = json["schema"].get<std::string>();
  if (schema == wanted) return;
  const std::string_view family = wanted.substr(0, wanted.find('/') + 1);
  if (schema.substr(0, family.size()) == family)
    throw vt::InputError(fmt::format("{}: schema {} is not one this build reads ({}); use a newer warmleg",
                                     what, schema, wanted));
  throw vt::InputError(fmt::format("{}: schema is {}, expected {}", what, schema, wanted));
}

}  // namespace

std::string ReadBytes(const fs::path& file) {
  const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0)
    throw vt::InputError(fmt::format("{}: cannot read: {}", file.string(), std::strerror(errno)));
  std::string bytes;
  std::string chunk(1 << 16, '\0');
  while (true) {
    const ssize_t n = read(fd.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw vt::InputError(fmt::format("{}: cannot read: {}", file.string(), std::strerror(errno)));
    if (n == 0) return bytes;
    bytes.append(chunk, 0, static_cast<size_t>(n));
  }
}

record::Result ReadResult(const fs::path& file) {
  const record::Json json = record::ParseStrict(ReadBytes(file), file.string());
  CheckSchema(json, file.string(), record::kResultSchema);
  return record::FromJson<record::Result>(json, file.string());
}

bool IsWatch(const fs::path& file) {
  constexpr size_t kHead = 256;  // `schema` is the first key that we write
  std::string head(kHead, '\0');
  const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd.get() < 0 ? -1 : read(fd.get(), head.data(), head.size());
  return n > 0 && head.find("\"warmleg.watch/") != std::string::npos;
}

record::Watch ReadWatch(const fs::path& file) {
  const record::Json json = record::ParseStrict(ReadBytes(file), file.string());
  CheckSchema(json, file.string(), record::kWatchSchema);
  return record::FromJson<record::Watch>(json, file.string());
}

void WriteAtomically(const fs::path& file, std::string_view bytes, bool force) {
  struct stat seen {};
  const bool there = lstat(file.c_str(), &seen) == 0;
  if (there && S_ISDIR(seen.st_mode))
    throw vt::EnvironmentError(fmt::format("{}: cannot write: is a folder", file.string()));
  if (there && !force) Exists(file);

  TempFile temp;
  Fd fd(Create(file, temp));
  WriteAll(fd, bytes, file);
  if (fsync(fd.get()) != 0) CannotWrite(file, "fsync");
  if (!fd.Close()) CannotWrite(file, "close");

  // link() fails where a file has come in between, which rename() would replace.
  if (!force) {
    if (link(temp.path.c_str(), file.c_str()) == 0) return SyncFolder(file);
    if (errno == EEXIST) Exists(file);
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) CannotWrite(file, "link");
  }
  if (rename(temp.path.c_str(), file.c_str()) != 0) CannotWrite(file, "rename");
  temp.path.clear();
  SyncFolder(file);
}

void WriteResult(const fs::path& file, const record::Result& result, bool force) {
  WriteAtomically(file, record::Dump(record::ToJson(result)), force);
}

std::string FileSha256(const fs::path& file) { return record::Sha256(ReadBytes(file)); }

}  // namespace warmleg::store
