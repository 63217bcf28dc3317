// Strict JSON text. nlohmann's own parser keeps the last of two equal keys, so the document is built here
// from its events; the input iterator counts lines for the messages.
#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/vt/error.h"
#include "harness/record/json.h"

namespace warmleg::record {
namespace {

// Walks the text and counts the newlines passed.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  int64_t* line;

  const char& operator*() const { return *at; }
  Cursor& operator++() {
    *line += *at == '\n';
    ++at;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
};

class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view what, size_t size, const int64_t& line) : what_(what), size_(size), line_(line) {}

  Json root;

  bool null() override { return Add(nullptr); }
  bool boolean(bool v) override { return Add(v); }
  bool number_integer(number_integer_t v) override { return Add(v); }
  bool number_unsigned(number_unsigned_t v) override { return Add(v); }
  bool number_float(number_float_t v, const string_t&) override { return Add(v); }
  bool string(string_t& v) override { return Add(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& v) override {
    if (!keys_.back().insert(v).second) Fail(fmt::format("key \"{}\" stands twice in one object", v));
    key_ = std::move(v);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const Json::exception& error) override {
    std::string_view text = error.what();
    if (error.id == 406) Fail(fmt::format("number {} is out of range", token));
    // past the end also where it cuts a string or a literal, for which the parser has other words
    if (position > size_ || text.find("unexpected end of input") != std::string_view::npos) {
      Fail("the text ends in the middle of the document: a torn or unfinished file");
    }
    if (size_t at = text.rfind("; "); at != std::string_view::npos && text.find("syntax error") < at)
      text = text.substr(text.find("syntax error"));
    if (size_t bracket = text.find("] "); text.substr(0, 1) == "[" && bracket != std::string_view::npos)
      text.remove_prefix(bracket + 2);
    Fail(text);
  }

 private:
  [[noreturn]] void Fail(std::string_view problem) const {
    throw vt::InputError(fmt::format("{}: line {}: {}", what_, line_, problem));
  }

  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }
  Json* Place(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool Open(Json empty) {
    constexpr size_t kDepth = 200;  // far beyond any file of ours; keeps recursion elsewhere bounded
    if (open_.size() >= kDepth) Fail("nested too deep");
    open_.push_back(Place(std::move(empty)));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string_view what_;
  size_t size_;  // of the text, bytes
  const int64_t& line_;
  // Pointers stay good: a parent only grows after its open child was closed.
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;
  std::string key_;
};

}  // namespace

Json ParseStrict(std::string_view text, std::string_view what, bool comments, int64_t first_line) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  int64_t line = first_line;
  Builder builder(what, text.size(), line);
  Cursor begin{text.data(), &line};
  Cursor end{text.data() + text.size(), &line};
  if (!Json::sax_parse(begin, end, &builder, Json::input_format_t::json, true, comments))
    throw vt::InputError(fmt::format("{}: not a JSON document", what));
  return std::move(builder.root);
}

}  // namespace warmleg::record
