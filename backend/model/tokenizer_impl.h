// Inside of the tokenizer: what a tokenizer.json was read into.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/model/bpe.h"
#include "backend/model/pre_tokenizer.h"
#include "backend/model/tokenizer.h"

namespace warmleg::model {

// Literal tokens that are found in the text before anything is split; the longest at a place wins.
class AddedTokens {
 public:
  void Add(const std::string& content, int32_t id);
  struct Hit {
    size_t begin = 0, end = 0;
    int32_t id = -1;  // -1: none
  };
  // The first hit at or after `from`.
  Hit Find(std::string_view text, size_t from) const;
  bool empty() const { return ids_.empty(); }

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<std::vector<std::string>> by_byte_ =
      std::vector<std::vector<std::string>>(256);  // longest first
};

struct Tokenizer::Impl {
  bool nfc = false;
  AddedTokens raw;         // looked for in the text as given
  AddedTokens normalized;  // looked for after normalisation
  std::vector<SplitStep> steps;
  Bpe bpe;
  std::unordered_map<int32_t, std::string> bytes_of;  // what each id decodes to
  int64_t size = 0;                                   // largest id + 1

  void EncodeRaw(std::string_view text, std::vector<int32_t>* ids) const;
  void EncodeWords(std::string_view text, std::vector<int32_t>* ids) const;
};

// Throws vt::InputError with every reason.
std::unique_ptr<Tokenizer::Impl> ReadTokenizer(std::string_view json, const std::string& name);

}  // namespace warmleg::model
