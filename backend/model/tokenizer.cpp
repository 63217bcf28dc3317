#include "backend/model/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "backend/model/checkpoint_files.h"
#include "backend/model/tokenizer_impl.h"
#include "backend/model/utf8.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

// Runs `between` over the text that is no added token, and appends the ids of those that are.
template <class Between>
void CutAtTokens(const AddedTokens& tokens, std::string_view text, std::vector<int32_t>* ids,
                 const Between& between) {
  size_t at = 0;
  while (at < text.size()) {
    const AddedTokens::Hit hit = tokens.Find(text, at);
    const size_t end = hit.id < 0 ? text.size() : hit.begin;
    if (end > at) between(text.substr(at, end - at));
    if (hit.id < 0) return;
    ids->push_back(hit.id);
    at = hit.end;
  }
}

}  // namespace

void AddedTokens::Add(const std::string& content, int32_t id) {
  if (!ids_.emplace(content, id).second) return;
  std::vector<std::string>& list = by_byte_[static_cast<unsigned char>(content[0])];
  const auto longer = [](const std::string& a, const std::string& b) { return a.size() > b.size(); };
  list.insert(std::upper_bound(list.begin(), list.end(), content, longer), content);
}

AddedTokens::Hit AddedTokens::Find(std::string_view text, size_t from) const {
  if (empty()) return {};
  for (size_t i = from; i < text.size(); ++i)
    for (const std::string& content : by_byte_[static_cast<unsigned char>(text[i])])
      if (text.substr(i).starts_with(content)) return {i, i + content.size(), ids_.at(content)};
  return {};
}

void Tokenizer::Impl::EncodeWords(std::string_view text, std::vector<int32_t>* ids) const {
  CutAtTokens(normalized, text, ids, [&](std::string_view part) {
    for (const std::string& word : SplitWords(steps, part)) bpe.Encode(word, ids);
  });
}

void Tokenizer::Impl::EncodeRaw(std::string_view text, std::vector<int32_t>* ids) const {
  CutAtTokens(raw, text, ids, [&](std::string_view part) {
    if (nfc)
      EncodeWords(ComposeNfc(part), ids);
    else
      EncodeWords(part, ids);
  });
}

Tokenizer::Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::Load(const std::string& path) {
  const std::filesystem::path file(path);
  const std::optional<std::string> text =
      ReadSmallFile(file.parent_path().string(), file.filename().string(), kMaxFileBytes);
  if (!text) throw vt::InputError(fmt::format("{}: no such file", path));
  return Parse(*text, path);
}

Tokenizer Tokenizer::Parse(std::string_view json, const std::string& name) {
  Tokenizer out;
  out.impl_ = ReadTokenizer(json, name);
  return out;
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text) const {
  if (const size_t bad = FindInvalidUtf8(text); bad != std::string_view::npos)
    throw vt::InputError(fmt::format("the text is not UTF-8 at byte {} (0x{:02x})", bad,
                                     static_cast<unsigned char>(text[bad])));
  std::vector<int32_t> ids;
  impl_->EncodeRaw(text, &ids);
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    const auto it = impl_->bytes_of.find(id);
    if (it == impl_->bytes_of.end())
      throw vt::InputError(
          fmt::format("token id {} is not in the tokenizer's vocabulary (ids below {})", id, impl_->size));
    bytes += it->second;
  }
  return RepairUtf8(bytes);
}

int64_t Tokenizer::size() const { return impl_->size; }
bool Tokenizer::contains(int32_t id) const { return impl_->bytes_of.contains(id); }

}  // namespace warmleg::model
