// Byte-pair merging of one word, and the byte alphabet of byte-level vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace warmleg::model {

// The printable character that stands for each byte in a byte-level vocabulary, as UTF-8 (GPT-2's table).
const std::array<std::string, 256>& ByteAlphabet();
// The byte a character of the alphabet stands for; -1: none.
int ByteOfCharacter(char32_t code);

class Bpe {
 public:
  std::unordered_map<std::string, int32_t> vocab;  // spelled in the byte alphabet
  bool ignore_merges = false;                      // a word that is a token is taken whole

  // Merge number `rank` (lower first): a pair of ids becomes one. False: the pair has a merge already.
  bool AddMerge(int32_t left, int32_t right, int32_t rank, int32_t merged);
  // After vocab is complete.
  void Finish();

  // Appends the ids of one word of raw bytes. Throws vt::InputError when a byte has no token.
  void Encode(std::string_view word, std::vector<int32_t>* ids) const;

 private:
  struct Merge {
    int32_t rank = 0, merged = 0;
  };
  const Merge* Find(int32_t left, int32_t right) const;
  // O(n log n): candidates in a queue over a linked list.
  void MergeAll(std::vector<int32_t>* ids) const;

  std::unordered_map<uint64_t, Merge> merges_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace warmleg::model
