#include "backend/model/bpe.h"

#include <fmt/core.h>

#include <queue>
#include <tuple>

#include "backend/model/utf8.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

struct Alphabet {
  std::array<std::string, 256> text;
  std::array<int, 512> byte_of{};

  Alphabet() {
    byte_of.fill(-1);
    char32_t next = 256;  // bytes without a printable Latin-1 character take the codes from 256 on
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      const char32_t code = printable ? b : next++;
      AppendUtf8(&text[b], code);
      byte_of[code] = static_cast<int>(b);
    }
  }
};

const Alphabet& TheAlphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

const std::array<std::string, 256>& ByteAlphabet() { return TheAlphabet().text; }

int ByteOfCharacter(char32_t code) { return code < 512 ? TheAlphabet().byte_of[code] : -1; }

bool Bpe::AddMerge(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  return merges_.emplace(PairKey(left, right), Merge{rank, merged}).second;
}

void Bpe::Finish() {
  for (size_t b = 0; b < 256; ++b) {
    const auto it = vocab.find(ByteAlphabet()[b]);
    byte_ids_[b] = it == vocab.end() ? -1 : it->second;
  }
}

const Bpe::Merge* Bpe::Find(int32_t left, int32_t right) const {
  const auto it = merges_.find(PairKey(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void Bpe::Encode(std::string_view word, std::vector<int32_t>* ids) const {
  if (ignore_merges) {
    std::string spelled;
    for (const char c : word) spelled += ByteAlphabet()[static_cast<unsigned char>(c)];
    if (const auto it = vocab.find(spelled); it != vocab.end()) return ids->push_back(it->second);
  }
  std::vector<int32_t> symbols;
  symbols.reserve(word.size());
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte_ids_[byte] < 0)
      throw vt::InputError(
          fmt::format("the tokenizer has no token for byte 0x{:02x} (\"{}\")", byte, ByteAlphabet()[byte]));
    symbols.push_back(byte_ids_[byte]);
  }
  MergeAll(&symbols);
  ids->insert(ids->end(), symbols.begin(), symbols.end());
}

void Bpe::MergeAll(std::vector<int32_t>* ids) const {
  std::vector<int32_t>& symbols = *ids;
  const size_t n = symbols.size();
  constexpr size_t kEnd = SIZE_MAX;
  std::vector<size_t> next(n), before(n);
  for (size_t i = 0; i < n; ++i) {
    next[i] = i + 1 < n ? i + 1 : kEnd;
    before[i] = i > 0 ? i - 1 : kEnd;
  }
  // Lowest rank first, then leftmost. An entry is stale when one of its ids has changed.
  using Candidate = std::tuple<int32_t, size_t, int32_t, int32_t>;  // rank, position, left id, right id
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t at) {
    if (at == kEnd || next[at] == kEnd) return;
    const int32_t left = symbols[at], right = symbols[next[at]];
    if (const Merge* merge = Find(left, right)) queue.emplace(merge->rank, at, left, right);
  };
  for (size_t i = 0; i < n; ++i) offer(i);
  while (!queue.empty()) {
    const auto [rank, at, left, right] = queue.top();
    queue.pop();
    if (symbols[at] != left || next[at] == kEnd || symbols[next[at]] != right) continue;
    const size_t gone = next[at];
    symbols[at] = Find(left, right)->merged;
    symbols[gone] = -1;
    next[at] = next[gone];
    if (next[at] != kEnd) before[next[at]] = at;
    offer(at);
    offer(before[at]);
  }
  std::erase(symbols, -1);
}

}  // namespace warmleg::model
