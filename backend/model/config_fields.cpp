#include "backend/model/config_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace warmleg::model {

namespace {

using nlohmann::json;

// The value of `key` nested under rope_parameters or flat; both and different: refused.
const json* NestedOrFlat(const Fields& fields, const Fields& nested, const char* key) {
  const json* inner = nested.Find(key);
  const json* outer = fields.Find(key);
  if (inner != nullptr && outer != nullptr && *inner != *outer)
    fields.Wrong(fmt::format("{} is {}, but rope_parameters.{} is {}; remove one", key, ShortText(*outer),
                             key, ShortText(*inner)));
  return inner != nullptr ? inner : outer;
}

void RefuseRopeType(const Fields& fields, const char* key) {
  const json* object = fields.Find(key);
  if (object == nullptr || !object->is_object()) return;
  const Fields nested = fields.Object(key);
  for (const char* name : {"rope_type", "type"}) {
    const json* type = nested.Find(name);
    if (type != nullptr && *type != "default")
      nested.Wrong(fmt::format("{} is {}, only default is supported", name, ShortText(*type)));
  }
}

}  // namespace

std::string_view Name(LayerType type) {
  switch (type) {
    case LayerType::linear_attention:
      return "linear_attention";
    case LayerType::full_attention:
      return "full_attention";
    case LayerType::sliding_attention:
      return "sliding_attention";
  }
  return "?";
}

std::string Architecture(const Fields& top) {
  const json* list = top.Find("architectures");
  if (list == nullptr) return {};
  if (list->is_array() && list->size() == 1 && list->front().is_string())
    return list->front().get<std::string>();
  top.Wrong(fmt::format("architectures is {}, expected a list of one name", ShortText(*list)));
  return {};
}

std::optional<std::vector<LayerType>> ReadLayerTypes(const Fields& fields, int64_t num_layers,
                                                     const std::vector<LayerType>& allowed) {
  const json* list = fields.Find("layer_types");
  if (list == nullptr) return std::nullopt;
  std::vector<LayerType> layers;
  if (!list->is_array()) {
    fields.Wrong(fmt::format("layer_types is {}, expected a list", ShortText(*list)));
    return layers;
  }
  if (static_cast<int64_t>(list->size()) != num_layers) {
    fields.Wrong(
        fmt::format("layer_types has {} entries, num_hidden_layers is {}", list->size(), num_layers));
    return layers;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const auto type = std::find_if(allowed.begin(), allowed.end(), [&](LayerType t) {
      return (*list)[i].is_string() && (*list)[i].get_ref<const std::string&>() == Name(t);
    });
    if (type == allowed.end())
      fields.Wrong(
          fmt::format("layer_types[{}] is {}, which is not supported here", i, ShortText((*list)[i])));
    else
      layers.push_back(*type);
  }
  return layers;
}

RopeFields ReadRope(const Fields& fields) {
  RopeFields rope;
  const Fields nested = fields.Object("rope_parameters");
  RefuseRopeType(fields, "rope_parameters");
  if (const json* scaling = fields.Find("rope_scaling"); scaling != nullptr) {
    RefuseRopeType(fields, "rope_scaling");
    if (!scaling->is_object())
      fields.Wrong(fmt::format("rope_scaling is {}, expected an object", ShortText(*scaling)));
  }
  const auto number = [&](const char* key) -> std::optional<double> {
    const json* value = NestedOrFlat(fields, nested, key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
    fields.Wrong(fmt::format("{} is {}, expected a number", key, ShortText(*value)));
    return 1.0;
  };
  const std::optional<double> theta = number("rope_theta");
  if (!theta) fields.Wrong("rope_theta is missing, in rope_parameters and beside it");
  if (theta && !(*theta >= 1.0 && *theta <= 1e12))
    fields.Wrong(fmt::format("rope_theta is {}, expected 1..1e12", *theta));
  rope.theta = theta.value_or(1.0);
  rope.partial = number("partial_rotary_factor");
  NestedOrFlat(fields, nested, "mrope_section");  // text positions only: its value does not matter
  return rope;
}

void RefuseFeatures(const Fields& fields) {
  if (const auto act = fields.String("hidden_act"); act && *act != "silu")
    fields.Wrong(fmt::format("hidden_act is \"{}\", only silu is supported", *act));
  if (const json* q = fields.Find("quantization_config"); q != nullptr) {
    const json* method = q->is_object() && q->contains("quant_method") ? &(*q)["quant_method"] : q;
    fields.Wrong(fmt::format("quantization_config ({}) is not supported; use the bf16 checkpoint",
                             ShortText(*method)));
  }
}

std::optional<std::vector<int32_t>> ReadTokenIds(const Fields& fields, const char* key, int64_t vocab) {
  const json* value = fields.Find(key);
  if (value == nullptr) return std::nullopt;
  const json list = value->is_array() ? *value : json::array({*value});
  std::vector<int32_t> ids;
  for (const json& id : list) {
    const bool fits = id.is_number_integer() && (!id.is_number_unsigned() || id.get<uint64_t>() <= INT32_MAX);
    if (!fits || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocab)
      fields.Wrong(fmt::format("{} holds {}, expected token ids of 0..{}", key, ShortText(id), vocab - 1));
    else if (const auto i = id.get<int32_t>(); std::find(ids.begin(), ids.end(), i) == ids.end())
      ids.push_back(i);
  }
  if (list.empty()) return std::nullopt;
  return ids;
}

float ReadEps(const Fields& fields) {
  const std::optional<double> eps = fields.Number("rms_norm_eps");
  if (!eps) fields.Wrong("rms_norm_eps is missing");
  if (eps && !(*eps > 0 && *eps < 1))
    fields.Wrong(fmt::format("rms_norm_eps is {}, expected more than 0 and less than 1", *eps));
  return static_cast<float>(eps.value_or(1e-6));
}

}  // namespace warmleg::model
