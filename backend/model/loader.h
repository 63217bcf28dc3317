// From a checkpoint directory to weights on a device.
#pragma once

#include <functional>
#include <string>

#include "backend/model/weights.h"

namespace warmleg::model {

struct LoadReport {
  double seconds = 0;  // wall time, checks and hashes included
  uint64_t bytes = 0;  // weight bytes uploaded
  std::string hash;    // XXH3-128 over the sorted list of (name, dtype, shape, XXH3-128 of the data), hex
};

using LoadProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// Both check the whole directory first and throw vt::InputError with every reason, one line each. File pages
// are released after each upload; staging memory is bounded.
TargetWeights LoadTarget(const std::string& dir, vt::Backend& backend, LoadReport* report = nullptr,
                         const LoadProgress& progress = {});
// `target`: the config the draft must fit (hidden size, layer count, vocabulary, mask id, tap layers).
DraftWeights LoadDraft(const std::string& dir, const TargetConfig& target, vt::Backend& backend,
                       LoadReport* report = nullptr, const LoadProgress& progress = {});

}  // namespace warmleg::model
