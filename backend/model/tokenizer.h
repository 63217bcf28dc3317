// Byte-level BPE from a Hugging Face tokenizer.json. What is supported stands in tokenizer_file.cpp;
// any other normalizer, pre-tokenizer, decoder or model is refused by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warmleg::model {

class Tokenizer {
 public:
  // `path`: the tokenizer.json file. Throws vt::InputError naming the file and the field.
  static Tokenizer Load(const std::string& path);
  // From the text of the file; `name` stands in messages.
  static Tokenizer Parse(std::string_view json, const std::string& name);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Throws vt::InputError when the text is not UTF-8.
  std::vector<int32_t> Encode(std::string_view text) const;
  // Bytes of the ids joined; bytes that are not UTF-8 become U+FFFD. Throws vt::InputError on an id outside
  // the vocabulary.
  std::string Decode(std::span<const int32_t> ids) const;
  // Largest id + 1. A model may have more rows than this.
  int64_t size() const;
  bool contains(int32_t id) const;

  struct Impl;  // tokenizer_impl.h

 private:
  Tokenizer();
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmleg::model
