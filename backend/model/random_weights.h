// Seeded weights made on the device from the configs alone: the shapes of a model without its checkpoint. The
// same seed gives the same bits on every device; magnitudes are such that activations stay finite through any
// depth.
#pragma once

#include <cstdint>
#include <string>

#include "backend/model/loader.h"
#include "backend/model/weight_plan.h"

namespace warmleg::model {

// `dir` needs config.json alone. The report's hash is XXH3-128 over the seed and the sorted list of (name,
// dtype, shape); it never equals a checkpoint's. Both throw vt::InputError with every reason, one line each.
TargetWeights MakeRandomTarget(const std::string& dir, uint64_t seed, vt::Backend& backend,
                               LoadReport* report = nullptr, const LoadProgress& progress = {});
DraftWeights MakeRandomDraft(const std::string& dir, const TargetConfig& target, uint64_t seed,
                             vt::Backend& backend, LoadReport* report = nullptr,
                             const LoadProgress& progress = {});

// The dtype a published checkpoint of this family stores the item in: bf16, except a few small ones.
vt::DType PublishedDType(const WeightItem& item);

}  // namespace warmleg::model
