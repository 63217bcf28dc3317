// One safetensors file, mapped read-only. The whole header is checked against the file before anything is
// used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/model/findings.h"

namespace warmleg::model {

struct StoredTensor {
  std::string name;
  std::string dtype;  // as the file spells it: "BF16", "F32", "F8_E4M3"
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes of the data section

  uint64_t bytes() const { return end - begin; }
};

inline constexpr uint64_t kMaxHeaderBytes = 100000000;  // the format's own limit

// Bits of one element; 0: not a dtype of the format.
int DTypeBits(std::string_view dtype);
std::string ShapeText(const std::vector<int64_t>& shape);  // "[192, 576]"

// The header's tensors in file order. Each reason why they cannot be used is one line in `wrong`; then the
// list may be incomplete. `data_bytes`: size of the data section.
std::vector<StoredTensor> ParseSafetensorsHeader(std::string_view header, uint64_t data_bytes,
                                                 std::vector<std::string>* wrong);

// A read-only mapping of a whole regular file.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Throws vt::InputError: not there, dangling link, link loop, not a regular file, no permission.
  static MappedFile Open(const std::string& path);

  const std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // Copies [begin, begin + bytes) by read calls, which cost less than page faults. Throws
  // vt::EnvironmentError.
  void Read(uint64_t begin, uint64_t bytes, std::byte* to) const;
  // Tells the system to fetch [begin, end) meanwhile.
  void Prefetch(uint64_t begin, uint64_t end) const;
  // Gives the pages of [begin, end) back to the system: mapping and page cache.
  void Release(uint64_t begin, uint64_t end) const;

 private:
  int fd_ = -1;
  const std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

class SafetensorsFile {
 public:
  // `name`: the file's name in messages. What is wrong goes to `wrong`; then the file has no tensors.
  static SafetensorsFile Open(const std::string& path, const std::string& name,
                              std::vector<std::string>* wrong);

  const std::string& name() const { return name_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  uint64_t file_bytes() const { return file_.size(); }
  const std::byte* data(const StoredTensor& t) const { return file_.data() + data_begin_ + t.begin; }
  // Of the tensor's own bytes.
  void Read(const StoredTensor& t, uint64_t begin, uint64_t bytes, std::byte* to) const {
    file_.Read(data_begin_ + t.begin + begin, bytes, to);
  }
  void Prefetch(const StoredTensor& t, uint64_t begin, uint64_t end) const {
    file_.Prefetch(data_begin_ + t.begin + begin, data_begin_ + t.begin + end);
  }
  // After bytes [begin, end) of the tensor were used.
  void Release(const StoredTensor& t, uint64_t begin, uint64_t end) const {
    file_.Release(data_begin_ + t.begin + begin, data_begin_ + t.begin + end);
  }

 private:
  std::string name_;
  MappedFile file_;
  uint64_t data_begin_ = 0;
  std::vector<StoredTensor> tensors_;
};

// A line that says what the text is when it is no data at all: a git-lfs pointer or an HTML page. Empty:
// neither.
std::string NotAFile(std::string_view text);

}  // namespace warmleg::model
