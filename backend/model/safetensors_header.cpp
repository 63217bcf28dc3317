#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "backend/model/safetensors.h"

namespace warmleg::model {

namespace {

using nlohmann::json;

constexpr std::array<std::pair<std::string_view, int>, 19> kDTypes = {{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

constexpr size_t kMaxRank = 16;
constexpr size_t kMaxTensors = 1000000;

// Reads the header without building a document, so that memory is that of the tensor list. Returning false
// ends the parse; why_ says what was found.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  std::vector<StoredTensor> tensors;
  std::string why;

  bool null() override { return Value("null"); }
  bool boolean(bool) override { return Value("a boolean"); }
  bool number_integer(number_integer_t) override { return Value("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Value("a fraction or a number too large");
  }
  bool binary(binary_t&) override { return Value("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::shape && state_ != State::offsets) return Value("a number");
    if (state_ == State::shape) {
      if (value > static_cast<uint64_t>(INT64_MAX)) return Value("a number too large");
      if (tensors.back().shape.size() == kMaxRank) return Fail("shape has more than 16 dimensions");
      tensors.back().shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (offsets_ == 2) return Fail("data_offsets has more than two numbers");
    (offsets_++ == 0 ? tensors.back().begin : tensors.back().end) = value;
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::metadata) return true;
    if (state_ != State::tensor || field_ != Field::dtype) return Value("a string");
    tensors.back().dtype = value;
    seen_[0] = true;
    return true;
  }

  bool start_object(size_t) override {
    if (state_ == State::outside) {
      state_ = State::top;
      return true;
    }
    if (state_ != State::top_value) return Value("an object");
    state_ = metadata_ ? State::metadata : State::tensor;
    if (metadata_) metadata_keys_.clear();
    return true;
  }

  bool end_object() override {
    if (state_ == State::tensor) {
      if (!seen_[0] || !seen_[1] || !seen_[2] || offsets_ != 2)
        return Fail("needs dtype, shape and two data_offsets");
    }
    state_ = state_ == State::top ? State::done : State::top;
    return true;
  }

  bool start_array(size_t) override {
    if (state_ != State::tensor || field_ == Field::dtype) return Value("an array");
    state_ = field_ == Field::shape ? State::shape : State::offsets;
    return true;
  }

  bool end_array() override {
    state_ = State::tensor;
    return true;
  }

  bool key(string_t& name) override {
    if (state_ == State::top) return TopKey(name);
    if (state_ == State::metadata)
      return metadata_keys_.insert(name).second ||
             Fail(fmt::format("__metadata__ has \"{}\" twice", Short(name)));
    static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
    const size_t i = static_cast<size_t>(std::find(kFields.begin(), kFields.end(), name) - kFields.begin());
    if (i == kFields.size()) return Fail(fmt::format("has an unknown field \"{}\"", Short(name)));
    if (std::exchange(keys_[i], true)) return Fail(fmt::format("has {} twice", name));
    field_ = static_cast<Field>(i);
    if (i > 0) seen_[i] = true;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    if (why.empty()) why = fmt::format("header is not valid JSON (at byte {})", position);
    return false;
  }

 private:
  enum class State { outside, top, top_value, metadata, tensor, shape, offsets, done };
  enum class Field { dtype, shape, data_offsets };

  static std::string Short(const std::string& text) {
    return text.size() > 120 ? text.substr(0, 117) + "..." : text;
  }

  bool TopKey(const string_t& name) {
    state_ = State::top_value;
    metadata_ = name == "__metadata__";
    if (!names_.insert(name).second)
      return Fail(fmt::format("\"{}\" stands in the header twice", Short(name)), false);
    if (metadata_) return true;
    if (tensors.size() == kMaxTensors) return Fail("the header lists more than 1000000 tensors", false);
    tensors.emplace_back().name = name;
    keys_ = seen_ = {};
    offsets_ = 0;
    return true;
  }

  bool Fail(const std::string& what, bool with_name = true) {
    const bool named = with_name && !tensors.empty() && !metadata_;
    why = named ? fmt::format("{} {}", Short(tensors.back().name), what) : what;
    return false;
  }
  bool Value(std::string_view found) {
    if (state_ == State::outside) return Fail(fmt::format("header is {}, expected an object", found), false);
    if (state_ == State::metadata || metadata_)
      return Fail(fmt::format("__metadata__ has {} where a string belongs", found), false);
    return Fail(fmt::format("has {} where it does not belong", found));
  }

  State state_ = State::outside;
  Field field_ = Field::dtype;
  bool metadata_ = false;
  std::array<bool, 3> keys_{}, seen_{};
  int offsets_ = 0;
  std::unordered_set<std::string> names_, metadata_keys_;
};

// Bytes of shape x dtype; false when it overflows or is not a whole number.
bool ByteCount(const StoredTensor& t, int bits, uint64_t* bytes) {
  uint64_t n = 1;
  if (std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end()) n = 0;
  for (const int64_t d : t.shape)
    if (n != 0 && __builtin_mul_overflow(n, static_cast<uint64_t>(d), &n)) return false;
  if (__builtin_mul_overflow(n, static_cast<uint64_t>(bits), &n) || n % 8 != 0) return false;
  *bytes = n / 8;
  return true;
}

void CheckTensor(const StoredTensor& t, std::vector<std::string>* wrong) {
  const int bits = DTypeBits(t.dtype);
  uint64_t bytes = 0;
  if (bits == 0) {
    wrong->push_back(
        fmt::format("{} has dtype \"{}\", which the format does not know", t.name, t.dtype.substr(0, 40)));
  } else if (t.end < t.begin) {
    wrong->push_back(
        fmt::format("{} has data_offsets [{}, {}], which run backwards", t.name, t.begin, t.end));
  } else if (!ByteCount(t, bits, &bytes)) {
    wrong->push_back(
        fmt::format("{} is {} {}: no byte count fits that", t.name, ShapeText(t.shape), t.dtype));
  } else if (bytes != t.bytes()) {
    wrong->push_back(fmt::format("{} is {} {} = {} bytes, but its data_offsets [{}, {}] hold {}", t.name,
                                 ShapeText(t.shape), t.dtype, bytes, t.begin, t.end, t.bytes()));
  }
}

// The data section must be covered once, without holes.
void CheckLayout(const std::vector<StoredTensor>& tensors, uint64_t data_bytes,
                 std::vector<std::string>* wrong) {
  std::vector<const StoredTensor*> order;
  order.reserve(tensors.size());
  for (const StoredTensor& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  for (const StoredTensor* t : order) {
    if (t->begin < at)
      wrong->push_back(fmt::format("{} starts at byte {}, inside the tensor before it (which ends at {})",
                                   t->name, t->begin, at));
    else if (t->begin > at)
      wrong->push_back(fmt::format("{} starts at byte {}, which leaves a hole of {} bytes before it", t->name,
                                   t->begin, t->begin - at));
    at = std::max(at, t->end);
  }
  if (at > data_bytes)
    wrong->push_back(fmt::format(
        "short by {} bytes: the header describes {} bytes of data, the file has {}; download it again",
        at - data_bytes, at, data_bytes));
  if (at < data_bytes)
    wrong->push_back(fmt::format("{} trailing bytes after the last tensor", data_bytes - at));
}

}  // namespace

int DTypeBits(std::string_view dtype) {
  const auto it =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& d) { return d.first == dtype; });
  return it == kDTypes.end() ? 0 : it->second;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<StoredTensor> ParseSafetensorsHeader(std::string_view header, uint64_t data_bytes,
                                                 std::vector<std::string>* wrong) {
  if (!header.starts_with('{')) {
    wrong->push_back("header does not start with '{'; not a safetensors file");
    return {};
  }
  HeaderReader reader;
  if (!json::sax_parse(header.begin(), header.end(), &reader)) {
    wrong->push_back(reader.why);
    return {};
  }
  for (const StoredTensor& t : reader.tensors) CheckTensor(t, wrong);
  if (wrong->empty()) CheckLayout(reader.tensors, data_bytes, wrong);
  return std::move(reader.tensors);
}

}  // namespace warmleg::model
