#include "backend/model/safetensors.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

std::string LinkTarget(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::read_symlink(path, ignored).string();
}

[[noreturn]] void RaiseOpen(const std::string& path, int error) {
  const std::string target = LinkTarget(path);
  if (error == ELOOP) throw vt::InputError(fmt::format("{}: link loop (-> {})", path, target));
  if (error == ENOENT && !target.empty())
    throw vt::InputError(
        fmt::format("{}: dangling link, its target {} is not there; download it again", path, target));
  if (error == ENOENT) throw vt::InputError(fmt::format("{}: no such file", path));
  throw vt::InputError(fmt::format("{}: cannot be opened: {}", path, std::strerror(error)));
}

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

MappedFile MappedFile::Open(const std::string& path) {
  MappedFile file;
  // O_NONBLOCK: a FIFO in the folder must not hang the check.
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) RaiseOpen(path, errno);
  struct stat info {};
  if (::fstat(file.fd_, &info) != 0) RaiseOpen(path, errno);
  if (!S_ISREG(info.st_mode)) throw vt::InputError(fmt::format("{}: not a regular file", path));
  file.size_ = static_cast<uint64_t>(info.st_size);
  if (file.size_ == 0) return file;
  void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, file.fd_, 0);
  if (data == MAP_FAILED) RaiseOpen(path, errno);
  file.data_ = static_cast<const std::byte*>(data);
  return file;
}

void MappedFile::Read(uint64_t begin, uint64_t bytes, std::byte* to) const {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd_, to + done, bytes - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw vt::EnvironmentError(fmt::format("a weight file cannot be read at byte {}: {}", begin + done,
                                             n == 0 ? "it became shorter" : std::strerror(errno)));
    done += static_cast<uint64_t>(n);
  }
}

void MappedFile::Prefetch(uint64_t begin, uint64_t end) const {
  if (begin < end)
    ::posix_fadvise(fd_, static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_WILLNEED);
}

void MappedFile::Release(uint64_t begin, uint64_t end) const {
  static const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t first = begin / page * page;  // reading a released page again only costs time
  const uint64_t last = std::min((end + page - 1) / page * page, size_);
  if (data_ == nullptr || first >= last) return;
  ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
  ::posix_fadvise(fd_, static_cast<off_t>(first), static_cast<off_t>(last - first), POSIX_FADV_DONTNEED);
}

std::string NotAFile(std::string_view text) {
  const std::string_view start = text.substr(0, 512);
  if (start.starts_with("version https://git-lfs"))
    return "git-lfs pointer, not the file itself; fetch it with `git lfs pull`";
  const size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || start[first] != '<') return {};
  std::string word(start.substr(first, 9));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  if (word.starts_with("<!doctyp") || word.starts_with("<html"))
    return "HTML, not weights; the download was answered by a web page";
  return {};
}

SafetensorsFile SafetensorsFile::Open(const std::string& path, const std::string& name,
                                      std::vector<std::string>* wrong) {
  SafetensorsFile out;
  out.name_ = name;
  const auto refuse = [&](const std::string& why) {
    wrong->push_back(fmt::format("{}: {}", name, why));
    return std::move(out);
  };
  try {
    out.file_ = MappedFile::Open(path);
  } catch (const vt::InputError& error) {
    wrong->emplace_back(error.what());
    return out;
  }
  const uint64_t size = out.file_.size();
  if (const std::string why = NotAFile(out.file_.text()); !why.empty()) return refuse(why);
  if (size < 8)
    return refuse(fmt::format("{} bytes, not a safetensors file (its length prefix alone has 8)", size));
  uint64_t header = 0;
  std::memcpy(&header, out.file_.data(), sizeof header);
  if (header > kMaxHeaderBytes)
    return refuse(fmt::format("header length {} is above the format's limit of {}", header, kMaxHeaderBytes));
  if (header > size - 8)
    return refuse(fmt::format("header of {} bytes in a file of {}: short by {} bytes", header, size,
                              header - (size - 8)));
  out.data_begin_ = 8 + header;
  std::vector<std::string> lines;
  out.tensors_ = ParseSafetensorsHeader(out.file_.text().substr(8, header), size - out.data_begin_, &lines);
  if (!lines.empty()) out.tensors_.clear();
  AddLimited(wrong, lines, [&](const std::string& line) { return fmt::format("{}: {}", name, line); });
  return out;
}

}  // namespace warmleg::model
