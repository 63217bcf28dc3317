// Cutting text into words before merging: the Split and ByteLevel steps of a tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace warmleg::model {

// What becomes of a match of a Split; the names are the file's.
enum class SplitBehavior : uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// One compiled pattern. Matching is bounded: a pattern that backtracks too far is an InputError, never a
// hang.
class Pattern {
 public:
  // Throws vt::InputError that names the pattern and the feature, also for constructs on which the
  // tokenizers library's engine and PCRE2 differ.
  static Pattern Regex(const std::string& source, const std::string& where);
  static Pattern Literal(std::string text);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  struct Span {
    size_t begin = 0, end = 0;
    bool match = false;
  };
  // Matches and what is between them, in order, covering all of `text` (valid UTF-8).
  std::vector<Span> Cut(std::string_view text) const;

 private:
  struct Compiled;
  Pattern();
  std::unique_ptr<Compiled> compiled_;
  std::string literal_;
};

struct SplitStep {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
  bool prefix_space = false;  // a space before each piece that has none
  bool splits = true;         // false: only prefix_space
};

// The pattern of a ByteLevel step with use_regex.
extern const char* const kByteLevelRegex;

// The words of `text` after all steps.
std::vector<std::string> SplitWords(const std::vector<SplitStep>& steps, std::string_view text);

}  // namespace warmleg::model
