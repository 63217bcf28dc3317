// config.json and generation_config.json to the structs of config.h; every refusal of a field is here.
#pragma once

#include <optional>
#include <string_view>

#include "backend/model/config.h"
#include "backend/model/findings.h"

namespace warmleg::model {

enum class CheckpointKind : uint8_t { target, draft };

// What kind of checkpoint the text of a config.json describes. Throws vt::InputError when it is no JSON
// object.
CheckpointKind KindOfConfig(std::string_view config);

// The result is usable only when `findings` got nothing wrong. Both throw vt::InputError when a text is no
// JSON.
TargetConfig ParseTargetConfig(std::string_view config, std::optional<std::string_view> generation_config,
                               Findings* findings);
// `target`: what the draft must fit; null (inspect of a draft alone): those checks are left out.
DraftConfig ParseDraftConfig(std::string_view config, const TargetConfig* target, Findings* findings);

// Limits of what is taken for a model at all; they keep every product of two dimensions inside int64.
inline constexpr int64_t kMaxWidth = int64_t{1} << 24;  // hidden, mlp, vocabulary
inline constexpr int64_t kMaxHeads = 4096;              // heads of one kind
inline constexpr int64_t kMaxHeadDim = 4096;
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxPositions = (int64_t{1} << 31) - 1;  // positions are i32 on the device

}  // namespace warmleg::model
