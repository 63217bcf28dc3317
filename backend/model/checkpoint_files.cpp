#include "backend/model/checkpoint_files.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "backend/model/json_text.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

namespace fs = std::filesystem;
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string Join(const std::string& dir, const std::string& name) { return (fs::path(dir) / name).string(); }

// There in any form, a dangling link included.
bool Present(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  return !error && status.type() != fs::file_type::not_found;
}

std::vector<std::string> NamesEndingIn(const fs::path& dir, std::string_view end) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), last; !error && it != last; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(end)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool PlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

std::optional<std::string> ReadSmallFile(const std::string& dir, const std::string& name,
                                         uint64_t max_bytes) {
  const std::string path = Join(dir, name);
  if (!Present(path)) return std::nullopt;
  const MappedFile file = MappedFile::Open(path);
  if (file.size() == 0) throw vt::InputError(fmt::format("{}: empty (0 bytes); download it again", path));
  if (file.size() > max_bytes)
    throw vt::InputError(fmt::format("{}: {} bytes, at most {} are read", path, file.size(), max_bytes));
  if (const std::string why = NotAFile(file.text()); !why.empty())
    throw vt::InputError(fmt::format("{}: {}", path, why));
  return std::string(file.text());
}

ShardIndex ParseShardIndex(std::string_view text, Findings* findings) {
  const nlohmann::json json = ParseJson(text, kIndex);
  const Fields top(json, fmt::format("{}: ", kIndex), findings);
  ShardIndex index;
  const nlohmann::json* map = top.Find("weight_map");
  if (map == nullptr || !map->is_object()) {
    top.Wrong("weight_map is missing or not an object");
    return index;
  }
  for (const auto& [name, value] : map->items()) {
    if (value.is_string() && PlainFileName(value.get_ref<const std::string&>()))
      index.shard_of[name] = value.get<std::string>();
    else
      top.Wrong(fmt::format("weight_map sends {} to {}, which is not a file name beside the index",
                            ShortText(name), ShortText(value)));
  }
  if (map->empty()) top.Wrong("weight_map is empty");
  const nlohmann::json* metadata = top.Find("metadata");
  if (metadata != nullptr && metadata->is_object() && metadata->contains("total_size")) {
    const nlohmann::json& total = (*metadata)["total_size"];
    if (total.is_number_unsigned() && total.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX))
      index.total_size = total.get<int64_t>();
    else
      findings->shown.push_back(
          fmt::format("{}: metadata.total_size is {}, not a byte count", kIndex, ShortText(total)));
  }
  return index;
}

uint64_t CheckpointFiles::file_bytes() const {
  uint64_t sum = 0;
  for (const SafetensorsFile& file : files_) sum += file.file_bytes();
  return sum;
}

CheckpointFiles CheckpointFiles::Open(const std::string& dir, Findings* findings) {
  CheckpointFiles out;
  std::error_code error;
  if (!fs::is_directory(dir, error)) {
    findings->wrong.push_back(fmt::format("{}: not a directory", dir));
    return out;
  }
  ShowDirectory(dir, findings);
  const bool single = Present(Join(dir, kSingle));
  if (Present(Join(dir, kIndex))) {
    if (single)
      findings->shown.push_back(fmt::format("{} is ignored: {} is there too and wins", kSingle, kIndex));
    out.OpenIndexed(dir, findings);
  } else if (single) {
    out.OpenSingle(dir, findings);
  } else {
    findings->wrong.push_back(fmt::format("{}: neither {} nor {} is there", dir, kSingle, kIndex));
  }
  return out;
}

void CheckpointFiles::OpenSingle(const std::string& dir, Findings* findings) {
  files_.push_back(SafetensorsFile::Open(Join(dir, kSingle), kSingle, &findings->wrong));
  for (const StoredTensor& t : files_[0].tensors()) tensors_[t.name] = {files_.data(), &t};
  for (const std::string& name : NamesEndingIn(dir, ".safetensors"))
    if (name != kSingle)
      findings->shown.push_back(fmt::format("{} is ignored: {} is the checkpoint", name, kSingle));
}

void CheckpointFiles::OpenIndexed(const std::string& dir, Findings* findings) {
  ShardIndex index;
  try {
    index = ParseShardIndex(ReadSmallFile(dir, kIndex).value_or(""), findings);
  } catch (const vt::InputError& error) {
    findings->wrong.emplace_back(error.what());
    return;
  }
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : index.shard_of) shards.insert(shard);
  for (const std::string& name : NamesEndingIn(dir, ".safetensors"))
    if (!shards.contains(name) && name != kSingle)
      findings->shown.push_back(fmt::format("{} is ignored: the index does not name it", name));
  files_.reserve(shards.size());
  std::set<std::string> broken;
  for (const std::string& shard : shards) {
    const size_t before = findings->wrong.size();
    if (!Present(Join(dir, shard))) {
      findings->wrong.push_back(fmt::format("{}: shard {} is not there", kIndex, shard));
    } else {
      files_.push_back(SafetensorsFile::Open(Join(dir, shard), shard, &findings->wrong));
    }
    if (findings->wrong.size() != before) broken.insert(shard);
  }
  int64_t bytes = 0;
  std::map<std::string, std::vector<std::string>> places;
  for (const SafetensorsFile& file : files_) {
    for (const StoredTensor& t : file.tensors()) {
      bytes += static_cast<int64_t>(t.bytes());
      places[t.name].push_back(file.name());
      const auto listed = index.shard_of.find(t.name);
      if (listed == index.shard_of.end())
        unlisted_[t.name] = file.name();
      else if (listed->second == file.name())
        tensors_[t.name] = {&file, &t};
    }
  }
  for (auto& [name, files] : places)
    if (files.size() > 1) repeated_[name] = std::move(files);
  std::vector<std::string> lacking;
  for (const auto& [name, shard] : index.shard_of)
    if (!tensors_.contains(name) && !broken.contains(shard)) lacking.push_back(name);
  AddLimited(&findings->wrong, lacking, [&](const std::string& name) {
    return fmt::format("{}: {} should be in {}, which lacks it", kIndex, name, index.shard_of[name]);
  });
  if (index.total_size >= 0 && index.total_size != bytes && broken.empty())
    findings->shown.push_back(fmt::format("{}: metadata.total_size is {}, the shards hold {} bytes", kIndex,
                                          index.total_size, bytes));
}

void ShowDirectory(const std::string& dir, Findings* findings) {
  std::error_code error;
  std::set<fs::path> blob_folders;
  std::vector<std::string> links;
  for (fs::directory_iterator it(dir, error), last; !error && it != last; it.increment(error)) {
    std::error_code ignored;
    if (!fs::is_symlink(it->path(), ignored)) continue;
    const fs::path target = fs::read_symlink(it->path(), ignored);
    const fs::path folder = (target.is_absolute() ? target : fs::path(dir) / target).parent_path();
    links.push_back(fmt::format("{} is a link to {}", it->path().string(), target.filename().string()));
    blob_folders.insert(folder.lexically_normal());
  }
  std::sort(links.begin(), links.end());
  AddLimited(&findings->shown, links, [](const std::string& line) { return line; });
  std::vector<std::string> unfinished;
  for (const std::string& name : NamesEndingIn(dir, ".incomplete")) unfinished.push_back(name);
  for (const fs::path& folder : blob_folders)
    for (const std::string& name : NamesEndingIn(folder, ".incomplete"))
      unfinished.push_back((folder.filename() / name).string());
  AddLimited(&findings->shown, unfinished, [](const std::string& name) {
    return fmt::format("{}: an unfinished download lies beside the files", name);
  });
}

}  // namespace warmleg::model
