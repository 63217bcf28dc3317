// Strict reading of the JSON files beside the weights: duplicate keys and deep nesting are refused, and
// fields are read with their type and range checked.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "backend/model/findings.h"

namespace warmleg::model {

// `name` stands in messages. Throws vt::InputError.
nlohmann::json ParseJson(std::string_view text, const std::string& name);

// The value as it stands in the file, shortened for a message.
std::string ShortText(const nlohmann::json& value);

// Typed access to the fields of one object. A field that is null counts as absent. What does not fit becomes
// a line in findings.wrong, and the reader goes on with a harmless value.
class Fields {
 public:
  // `where`: "config.json: text_config." or "config.json: "
  Fields(const nlohmann::json& object, std::string where, Findings* findings);

  const nlohmann::json* Find(const char* key) const;  // null when absent or null
  std::optional<int64_t> Int(const char* key, int64_t low, int64_t high) const;
  int64_t NeedInt(const char* key, int64_t low, int64_t high) const;
  std::optional<double> Number(const char* key) const;  // finite
  std::optional<bool> Bool(const char* key) const;
  std::optional<std::string> String(const char* key) const;
  // The fields of a nested object; absent: an empty object.
  Fields Object(const char* key) const;

  const std::string& where() const { return where_; }
  void Wrong(std::string line) const { findings_->wrong.push_back(where_ + std::move(line)); }
  Findings* findings() const { return findings_; }

 private:
  const nlohmann::json* object_;
  std::string where_;
  Findings* findings_;
};

}  // namespace warmleg::model
