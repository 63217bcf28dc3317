// Constructs that PCRE2 reads otherwise than Oniguruma, the engine the tokenizers library uses, or that have
// no place in a pattern which is matched on every prompt.
#pragma once

#include <string>
#include <string_view>

namespace warmleg::model {

// The first such construct, in words; empty: none.
std::string UnsupportedRegexFeature(std::string_view pattern);

}  // namespace warmleg::model
