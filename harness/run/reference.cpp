#include "harness/run/reference.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "backend/vt/error.h"
#include "harness/record/sha256.h"
#include "harness/run/hash.h"
#include "harness/run/loaded_libraries.h"
#include "harness/store/store.h"

namespace warmleg::run {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kSchema = "warmleg.reference/1";

std::string FilePath(const std::string& folder, const ReferenceKey& key) {
  return fmt::format("{}/reference-{}.json", folder, key.Hash().substr(0, 32));
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string ReferenceKey::Hash() const {
  return record::Sha256(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", weights, IdListsSha256(prompts),
                                    max_new_tokens, ignore_eos, precision, device, device_name, build));
}

std::string BuildFingerprint() {
  static const std::string fingerprint = [] {
    std::string text = record::Sha256(ReadAll("/proc/self/exe"));
    for (const LibraryReply& library : LoadedLibraries())
      text += "\n" + library.path + " " + library.build_id;
    return record::Sha256(text);
  }();
  return fingerprint;
}

std::string CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fmt::format("{}/warmleg", cache);
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? fmt::format("{}/.cache/warmleg", home) : "";
}

// The file: {"schema", "key", "sha256" of the dumped "outputs", "outputs": [{"ids", "gaps"}]}.
std::optional<Reference> ReadCached(const std::string& folder, const ReferenceKey& key) {
  if (folder.empty()) return std::nullopt;
  const std::string text = ReadAll(FilePath(folder, key));
  if (text.empty()) return std::nullopt;
  try {
    const Json file = Json::parse(text);
    const Json& outputs = file.at("outputs");
    const bool ours = file.at("schema") == kSchema && file.at("key") == key.Hash();
    if (!ours || file.at("sha256") != record::Sha256(outputs.dump()) ||
        outputs.size() != key.prompts.size()) {
      return std::nullopt;
    }
    Reference reference;
    reference.source = "cache";
    for (const Json& output : outputs) {
      reference.outputs.push_back({output.at("ids"), output.at("gaps")});
      if (reference.outputs.back().ids.size() != reference.outputs.back().gaps.size()) return std::nullopt;
    }
    return reference;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // torn: it is made again
  }
}

std::optional<std::string> WriteCached(const std::string& folder, const ReferenceKey& key,
                                       const Reference& reference) {
  if (folder.empty()) return "neither XDG_CACHE_HOME nor HOME is set";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fmt::format("{}: {}", folder, error.message());
  Json outputs = Json::array();
  for (const ReferenceOutput& output : reference.outputs) {
    outputs.push_back({{"ids", output.ids}, {"gaps", output.gaps}});
  }
  const Json file = {{"schema", kSchema},
                     {"key", key.Hash()},
                     {"sha256", record::Sha256(outputs.dump())},
                     {"outputs", outputs}};
  try {
    store::WriteAtomically(FilePath(folder, key), file.dump() + "\n", true);
  } catch (const vt::EnvironmentError& e) {
    return e.what();
  }
  return std::nullopt;
}

}  // namespace warmleg::run
