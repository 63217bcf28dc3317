// Checkpoints that a test writes itself, from scratch or by changing one that ships; and folders to write
// into.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace warmleg::testing {

// A folder of its own under the system's temporary one, removed with everything in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void WriteFile(const std::filesystem::path& path, std::string_view bytes);
std::string ReadFile(const std::filesystem::path& path);

struct TensorSpec {
  std::string name;
  std::string dtype;  // "BF16", "F32", ...
  std::vector<int64_t> shape;
  std::string data;
};

// A safetensors file: 8 bytes of header length, header (padded with spaces to `header_bytes` when given),
// data.
std::string SafetensorsBytes(const std::vector<TensorSpec>& tensors, size_t header_bytes = 0);
// The same around a header of the test's own making.
std::string WithHeader(std::string_view header, std::string_view data);

// Values as the file stores them.
std::string Bf16Bytes(const std::vector<float>& values);
std::string F32Bytes(const std::vector<float>& values);
std::vector<float> FloatsOf(const TensorSpec& tensor);

// A checkpoint in memory.
struct CheckpointFixture {
  nlohmann::json config;
  std::optional<nlohmann::json> generation;
  std::vector<TensorSpec> tensors;

  // Reads every shard of DIR, and its configs.
  static CheckpointFixture Read(const std::filesystem::path& dir);

  TensorSpec& At(const std::string& name);
  bool Has(const std::string& name) const;
  void Remove(const std::string& name);
  void Rename(const std::function<std::string(const std::string&)>& name);
  // Stored as F32 from here on, the same values.
  void Widen(const std::string& name);

  // One file, or an index with `shards` files named model-0000i-of-0000n.safetensors.
  void Write(const std::filesystem::path& dir, int shards = 1) const;
};

// Where the pairs that ship are, relative to the repository root.
inline constexpr const char* kTinyTarget = "scenarios/checkpoints/tiny-code/target";
inline constexpr const char* kTinyDraft = "scenarios/checkpoints/tiny-code/draft";
inline constexpr const char* kFlatTarget = "tests/data/flat-tied/target";
inline constexpr const char* kFlatDraft = "tests/data/flat-tied/draft";

}  // namespace warmleg::testing
