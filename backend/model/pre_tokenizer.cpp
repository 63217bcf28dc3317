#include "backend/model/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

#include <array>
#include <utility>

#include "backend/model/regex_check.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

constexpr size_t kMaxPatternBytes = 8192;
constexpr uint32_t kMatchLimit = 5000000;  // backtracking steps of one match
constexpr uint32_t kHeapLimitKiB = 65536;
constexpr size_t kJitStackBytes = size_t{4} << 20;

std::string PcreText(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <class T, void (*kFree)(T*)>
struct Free {
  void operator()(T* p) const { kFree(p); }
};
template <class T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Free<T, kFree>>;

using Span = Pattern::Span;

std::vector<Span> Kept(const std::vector<Span>& spans, SplitBehavior behavior) {
  std::vector<Span> out;
  const auto forward = [&](const Span& s, bool join) {
    if (join && !out.empty())
      out.back().end = s.end;
    else
      out.push_back(s);
  };
  bool last = false;
  switch (behavior) {
    case SplitBehavior::isolated:
      return spans;
    case SplitBehavior::removed:
      for (const Span& s : spans)
        if (!s.match) out.push_back(s);
      return out;
    case SplitBehavior::contiguous:
      for (const Span& s : spans) forward(s, s.match == std::exchange(last, s.match));
      return out;
    case SplitBehavior::merged_with_previous:
      for (const Span& s : spans) {
        const bool join = s.match && !last;
        last = s.match;
        forward(s, join);
      }
      return out;
    case SplitBehavior::merged_with_next:
      for (size_t i = spans.size(); i-- > 0;) {
        const Span& s = spans[i];
        const bool join = s.match && !last && !out.empty();
        last = s.match;
        if (join)
          out.back().begin = s.begin;
        else
          out.push_back(s);
      }
      return {out.rbegin(), out.rend()};
  }
  return out;
}

}  // namespace

const char* const kByteLevelRegex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Pattern::Compiled {
  Owned<pcre2_code, pcre2_code_free> code;
  std::string source;
};

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::Literal(std::string text) {
  Pattern p;
  p.literal_ = std::move(text);
  return p;
}

Pattern Pattern::Regex(const std::string& source, const std::string& where) {
  const std::string shown = source.size() > 80 ? source.substr(0, 77) + "..." : source;
  if (source.size() > kMaxPatternBytes)
    throw vt::InputError(fmt::format("{}: the pattern has {} bytes, at most {} are taken", where,
                                     source.size(), kMaxPatternBytes));
  if (const std::string feature = UnsupportedRegexFeature(source); !feature.empty())
    throw vt::InputError(
        fmt::format("{}: the pattern uses {}, which is not supported: {}", where, feature, shown));
  const Owned<pcre2_compile_context, pcre2_compile_context_free> context(
      pcre2_compile_context_create(nullptr));
  if (context == nullptr) throw vt::OutOfMemoryError("out of memory while compiling a pattern");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 50);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Pattern p;
  p.compiled_ = std::make_unique<Compiled>();
  p.compiled_->source = shown;
  p.compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                        &error, &offset, context.get()));
  if (p.compiled_->code == nullptr)
    throw vt::InputError(fmt::format("{}: the pattern does not compile: {} at byte {}: {}", where,
                                     PcreText(error), offset, shown));
  pcre2_jit_compile(p.compiled_->code.get(), PCRE2_JIT_COMPLETE);  // without JIT the interpreter matches
  return p;
}

std::vector<Span> Pattern::Cut(std::string_view text) const {
  std::vector<Span> spans;
  size_t at = 0;
  const auto found = [&](size_t begin, size_t end) {
    if (begin > at) spans.push_back({at, begin, false});
    if (end > begin) spans.push_back({begin, end, true});
    at = end;
  };
  if (compiled_ == nullptr) {
    for (size_t i = 0; !literal_.empty() && (i = text.find(literal_, at)) != std::string_view::npos;)
      found(i, i + literal_.size());
  } else {
    const Owned<pcre2_match_data, pcre2_match_data_free> data(
        pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
    const Owned<pcre2_match_context, pcre2_match_context_free> context(pcre2_match_context_create(nullptr));
    const Owned<pcre2_jit_stack, pcre2_jit_stack_free> stack(
        pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr));
    if (data == nullptr || context == nullptr)
      throw vt::OutOfMemoryError("out of memory while matching a pattern");
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKiB);
    if (stack != nullptr) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    uint32_t options = PCRE2_NO_UTF_CHECK;  // checked once, by the caller
    for (size_t start = 0; start <= text.size();) {
      const int n = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                start, options, data.get(), context.get());
      if (n == PCRE2_ERROR_NOMATCH) break;
      if (n < 0)
        throw vt::InputError(fmt::format("the tokenizer's pattern cannot be matched on this text: {}: {}",
                                         PcreText(n), compiled_->source));
      const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
      if (span[1] < start || span[0] > span[1]) break;
      if (span[1] > span[0]) {
        found(span[0], span[1]);
        start = span[1];
        continue;
      }
      found(span[0], span[0]);  // an empty match only cuts
      start = span[1] + 1;
      while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) ++start;
    }
  }
  if (at < text.size()) spans.push_back({at, text.size(), false});
  return spans;
}

std::vector<std::string> SplitWords(const std::vector<SplitStep>& steps, std::string_view text) {
  std::vector<std::string> words;
  if (!text.empty()) words.emplace_back(text);
  for (const SplitStep& step : steps) {
    std::vector<std::string> next;
    for (std::string& word : words) {
      if (step.prefix_space && !word.starts_with(' ')) word.insert(0, 1, ' ');
      if (!step.splits) {
        next.push_back(std::move(word));
        continue;
      }
      std::vector<Span> spans = step.pattern.Cut(word);
      if (step.invert)
        for (Span& s : spans) s.match = !s.match;
      for (const Span& s : Kept(spans, step.behavior)) next.push_back(word.substr(s.begin, s.end - s.begin));
    }
    words = std::move(next);
  }
  return words;
}

}  // namespace warmleg::model
