// The files of a checkpoint directory: one safetensors file or an index with its shards, beside the configs.
// Names are looked up beside the path that was given (in a Hugging Face cache: the snapshot, whose files are
// links into blobs/), never beside a link's target.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/model/findings.h"
#include "backend/model/safetensors.h"

namespace warmleg::model {

struct FileTensor {
  const SafetensorsFile* file = nullptr;
  const StoredTensor* tensor = nullptr;

  const std::byte* data() const { return file->data(*tensor); }
};

class CheckpointFiles {
 public:
  // Opens and checks every file. What is wrong goes to `findings`; then there may be no tensors.
  static CheckpointFiles Open(const std::string& dir, Findings* findings);

  // By name, as the index says where there is one.
  const std::map<std::string, FileTensor>& tensors() const { return tensors_; }
  // Names that stand in more than one shard, with the shards.
  const std::map<std::string, std::vector<std::string>>& repeated() const { return repeated_; }
  // Names in a shard that the index does not list, with the shard.
  const std::map<std::string, std::string>& unlisted() const { return unlisted_; }
  uint64_t file_bytes() const;

 private:
  void OpenIndexed(const std::string& dir, Findings* findings);
  void OpenSingle(const std::string& dir, Findings* findings);

  std::vector<SafetensorsFile> files_;
  std::map<std::string, FileTensor> tensors_;
  std::map<std::string, std::vector<std::string>> repeated_;
  std::map<std::string, std::string> unlisted_;
};

// The shard of each tensor as model.safetensors.index.json says; total_size: metadata.total_size or -1.
struct ShardIndex {
  std::map<std::string, std::string> shard_of;
  int64_t total_size = -1;
};
// Throws vt::InputError when the text is no JSON; the rest goes to `findings`.
ShardIndex ParseShardIndex(std::string_view text, Findings* findings);

// The text of DIR/NAME; no value when it is not there. A file that is empty, too large, a git-lfs pointer, or
// a link that leads nowhere is refused (vt::InputError).
std::optional<std::string> ReadSmallFile(const std::string& dir, const std::string& name,
                                         uint64_t max_bytes = 64u << 20);

// Shown: where the links of a cache lead, unfinished downloads beside the files.
void ShowDirectory(const std::string& dir, Findings* findings);

}  // namespace warmleg::model
