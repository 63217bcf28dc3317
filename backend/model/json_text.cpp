#include "backend/model/json_text.h"

#include <fmt/core.h>

#include <cmath>
#include <unordered_set>

#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

using nlohmann::json;
constexpr int kMaxDepth = 32;

const json& EmptyObject() {
  static const json empty = json::object();
  return empty;
}

}  // namespace

json ParseJson(std::string_view text, const std::string& name) {
  std::vector<std::unordered_set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth)
      throw vt::InputError(fmt::format("{}: nested deeper than {} levels", name, kMaxDepth));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get_ref<std::string&>()).second)
      throw vt::InputError(fmt::format("{}: key {} appears twice in one object", name, ShortText(parsed)));
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::exception& error) {
    std::string why = error.what();
    if (const size_t end = why.find("] "); end != std::string::npos) why = why.substr(end + 2);
    if (why.size() > 200) why = why.substr(0, 200) + "...";
    for (char& c : why)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    throw vt::InputError(fmt::format("{}: not valid JSON: {}", name, why));
  }
}

std::string ShortText(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

Fields::Fields(const json& object, std::string where, Findings* findings)
    : object_(&object), where_(std::move(where)), findings_(findings) {
  if (object_->is_object()) return;
  Wrong(fmt::format("expected an object, found {}", ShortText(object)));
  object_ = &EmptyObject();
}

const json* Fields::Find(const char* key) const {
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

std::optional<int64_t> Fields::Int(const char* key, int64_t low, int64_t high) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_unsigned() ? value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                                : value->is_number_integer();
  if (fits && value->get<int64_t>() >= low && value->get<int64_t>() <= high) return value->get<int64_t>();
  Wrong(fmt::format("{} is {}, expected an integer of {}..{}", key, ShortText(*value), low, high));
  return low;
}

int64_t Fields::NeedInt(const char* key, int64_t low, int64_t high) const {
  const std::optional<int64_t> value = Int(key, low, high);
  if (!value) Wrong(fmt::format("{} is missing", key));
  return value.value_or(low);
}

std::optional<double> Fields::Number(const char* key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  Wrong(fmt::format("{} is {}, expected a number", key, ShortText(*value)));
  return 1.0;
}

std::optional<bool> Fields::Bool(const char* key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  Wrong(fmt::format("{} is {}, expected true or false", key, ShortText(*value)));
  return std::nullopt;
}

std::optional<std::string> Fields::String(const char* key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  Wrong(fmt::format("{} is {}, expected a string", key, ShortText(*value)));
  return std::nullopt;
}

Fields Fields::Object(const char* key) const {
  const json* value = Find(key);
  return {value != nullptr ? *value : EmptyObject(), fmt::format("{}{}.", where_, key), findings_};
}

}  // namespace warmleg::model
