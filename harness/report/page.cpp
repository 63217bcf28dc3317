#include "harness/report/page.h"

namespace warmleg::report {

Html Badge(std::string_view text, std::string_view kind) {
  return Format("<span class=\"badge {}\">{}</span>", kind, text);
}

Html Cards(const std::vector<Card>& cards) {
  Html out;
  for (const Card& card : cards)
    out += Format(
        "<div class=\"card\"><div class=\"name\">{}</div><div class=\"value\">{}</div>"
        "<div class=\"note\">{}</div></div>\n",
        card.title, card.value, card.note);
  return Format("<div class=\"cards\">\n{}</div>\n", out);
}

Html Note(std::string_view kind, const Html& text) {
  return Format("<div class=\"remark {}\">{}</div>\n", kind, text);
}

Html Key(std::string_view kind, std::string_view text) {
  return Format("<span class=\"key\"><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\">{}</svg>{}</span> ",
                kind == "draft"   ? Format("<path d=\"M7 1L13 7L7 13L1 7Z\" class=\"draft\"/>")
                : kind == "cross" ? Format("<path d=\"M3 3L11 11M3 11L11 3\" class=\"cross\"/>")
                : kind.starts_with("plain") || kind == "hollow"
                    ? Format("<circle cx=\"7\" cy=\"7\" r=\"5\" class=\"{}\"/>", kind)
                    : Format("<rect x=\"1\" y=\"2\" width=\"12\" height=\"10\" class=\"{}\"/>", kind),
                text);
}

Html Nested(const std::vector<Section>& sections, std::string_view prefix) {
  Html out;
  for (const Section& s : sections)
    out += Format("<section id=\"{}{}\"><h3>{}</h3>\n{}</section>\n", prefix, s.id, s.title, s.body);
  return out;
}

std::string Page(std::string_view title, const Html& header, const std::vector<Section>& sections) {
  Html links;
  Html body;
  for (const Section& s : sections) {
    links += Format("<a href=\"#{}\">{}</a>\n", s.id, s.title);
    body += Format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", s.id, s.title, s.body);
  }
  // The policy keeps the promise of this page even where a browser finds something to fetch or to run.
  return Format(
             "<!doctype html>\n<!-- warmleg.report/1 -->\n<html lang=\"en\">\n<head>\n<meta "
             "charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'unsafe-inline'; "
             "img-src data:\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n"
             "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<header>\n{}</header>\n"
             "<nav aria-label=\"Sections\">\n{}</nav>\n<main id=\"content\">\n{}</main>\n"
             "<footer>Made by warmleg from result files; every number is theirs. Codes and words: "
             "docs/reasons.md and docs/measuring.md.</footer>\n</body>\n</html>\n",
             title, Html::Trusted(kStyleSheet), header, links, body)
      .str();
}

}  // namespace warmleg::report
