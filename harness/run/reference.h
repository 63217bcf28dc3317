// The plain reference: output ids and top-1/top-2 gaps of every prompt, made by a process of their own and
// kept in a cache under $XDG_CACHE_HOME/warmleg (else ~/.cache/warmleg). A cache file that is torn or of
// another key is not used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace warmleg::run {

struct ReferenceOutput {
  std::vector<int32_t> ids;
  std::vector<float> gaps;  // top-1 minus top-2 logit where ids[i] was chosen
  bool operator==(const ReferenceOutput&) const = default;
};

struct Reference {
  std::vector<ReferenceOutput> outputs;  // one a prompt
  std::string source;                    // "process" | "cache"
};

// Everything that the reference depends on.
struct ReferenceKey {
  std::string weights;  // hash of the target
  std::vector<std::vector<int32_t>> prompts;
  int64_t max_new_tokens = 0;
  bool ignore_eos = false;
  std::string precision, device, device_name;
  std::string build;  // BuildFingerprint()

  std::string Hash() const;  // hex
};

// Hash of this program's own file and of the libraries that matter: a rebuilt kernel is another reference.
std::string BuildFingerprint();

// Folder of the cache; empty when neither XDG_CACHE_HOME nor HOME is set.
std::string CacheFolder();

std::optional<Reference> ReadCached(const std::string& folder, const ReferenceKey& key);
// Atomically; a cache that cannot be written is no error, only slower: returns why, or nothing.
std::optional<std::string> WriteCached(const std::string& folder, const ReferenceKey& key,
                                       const Reference& reference);

}  // namespace warmleg::run
