// The page around the sections: one file, no script, nothing fetched, readable on screen and on paper.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/report/html.h"

namespace warmleg::report {

struct Section {
  std::string id, title;
  Html body;
};

// A number that a reader should see first.
struct Card {
  std::string title, value, note;
};

// `kind`: "good", "warn", "bad", "note" or "plain" of the style sheet.
Html Badge(std::string_view text, std::string_view kind);
Html Cards(const std::vector<Card>& cards);
// A remark in a box, with the colour of its kind.
Html Note(std::string_view kind, const Html& text);
// A word that explains a mark: <span class="key KIND"> before the text.
Html Key(std::string_view kind, std::string_view text);

// Everything inside <body>'s sections is already escaped; `title` is not.
std::string Page(std::string_view title, const Html& header, const std::vector<Section>& sections);
// Sections without a page, one level lower, to stand inside another one; ids get the prefix.
Html Nested(const std::vector<Section>& sections, std::string_view prefix);

extern const char* const kStyleSheet;

}  // namespace warmleg::report
