// What the two config parsers share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/model/config.h"
#include "backend/model/json_text.h"

namespace warmleg::model {

// architectures[0]; empty when missing, a line in findings when it is not a list of one string.
std::string Architecture(const Fields& top);

// layer_types as a list of the names in `allowed`, and one a layer.
std::optional<std::vector<LayerType>> ReadLayerTypes(const Fields& fields, int64_t num_layers,
                                                     const std::vector<LayerType>& allowed);

struct RopeFields {
  double theta = 0;
  std::optional<double> partial;  // partial_rotary_factor
};
// rope_parameters.X or X at the level of `fields`; both and different, a rope type other than default, or no
// theta is refused.
RopeFields ReadRope(const Fields& fields);

// hidden_act must be silu, quantization must be absent.
void RefuseFeatures(const Fields& fields);

// A number or a list of numbers; no value when absent or an empty list.
std::optional<std::vector<int32_t>> ReadTokenIds(const Fields& fields, const char* key, int64_t vocab);

float ReadEps(const Fields& fields);

std::string_view Name(LayerType type);

}  // namespace warmleg::model
