// Stored tensors against a plan.
#pragma once

#include "backend/model/checkpoint.h"

namespace warmleg::model {

// The group of names that is skipped and counted: "model.visual.", "visual.", "mtp."; empty: none.
std::string SkippedGroupOf(const std::string& name);

// The one prefix before "layers.N." and "embed_tokens." of the text model's names. No value, with a line in
// findings, when there is none, more than one, or another than those in `expected`.
std::optional<std::string> FindPrefix(const CheckpointFiles& files, const std::vector<std::string>& expected,
                                      Findings* findings);

// `skips`: whether the groups above are skipped (target) or left-over names (draft).
TensorMatch MatchTensors(const CheckpointFiles& files, const std::vector<WeightItem>& plan, bool skips,
                         const std::vector<std::string>& also_used, Findings* findings);

}  // namespace warmleg::model
