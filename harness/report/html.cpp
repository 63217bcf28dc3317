#include "harness/report/html.h"

#include <cstdint>

#include "backend/model/utf8.h"

namespace warmleg::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string_view Entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const model::Utf8Step step = model::NextUtf8(text.substr(at));
    const size_t length = step.valid ? step.bytes : 0;
    const char c = text[at];
    const std::string_view entity = Entity(c);
    const bool control =
        length == 1 && (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) && c != '\n' && c != '\t';
    if (length == 0 || control)
      out += kReplacement;
    else if (!entity.empty())
      out += entity;
    else
      out += text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

Html Join(const std::vector<Html>& parts, std::string_view between) {
  Html out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += Text(between);
    out += parts[i];
  }
  return out;
}

Table::Table(std::string caption, std::vector<Column> columns)
    : caption_(std::move(caption)), columns_(std::move(columns)) {}

void Table::Row(const std::vector<Html>& cells, std::string_view kind) {
  rows_ += kind.empty() ? Format("<tr>") : Format("<tr class=\"{}\">", kind);
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool number = i < columns_.size() && columns_[i].number;
    if (i == 0)
      rows_ += Format("<th scope=\"row\">{}</th>", cells[i]);
    else
      rows_ += number ? Format("<td class=\"n\">{}</td>", cells[i]) : Format("<td>{}</td>", cells[i]);
  }
  rows_ += Format("</tr>\n");
}

Html Table::Done(bool scroll) const {
  Html head;
  for (const Column& column : columns_)
    head += column.number ? Format("<th scope=\"col\" class=\"n\">{}</th>", column.title)
                          : Format("<th scope=\"col\">{}</th>", column.title);
  // What scrolls must be reachable by keyboard.
  return Format(
      "<div class=\"table{}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">"
      "<table><caption>{}</caption><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table></div>\n",
      scroll ? " scroll" : "", caption_, caption_, head, rows_);
}

Html Figure(const Html& plot, std::string_view caption, const Html& table) {
  return Format("<div class=\"figure\"><figure>{}<figcaption>{}</figcaption></figure>{}</div>\n", plot,
                caption, table);
}

}  // namespace warmleg::report
