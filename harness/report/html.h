// HTML whose text cannot carry markup: Format escapes every argument that is not Html already.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace warmleg::report {

// For text and for attribute values. Control characters and bytes that are no UTF-8 become U+FFFD.
std::string Escape(std::string_view text);

class Html {
 public:
  Html() = default;
  // Takes `markup` as it is: for this header and for literals.
  static Html Trusted(std::string markup) {
    Html html;
    html.text_ = std::move(markup);
    return html;
  }
  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  Html& operator+=(const Html& more) {
    text_ += more.text_;
    return *this;
  }
  friend Html operator+(Html a, const Html& b) { return a += b; }

 private:
  std::string text_;
};

template <class T>
auto EscapedArgument(const T& value) {
  if constexpr (std::is_same_v<T, Html>)
    return value.str();
  else if constexpr (std::is_arithmetic_v<T>)
    return value;
  else
    return Escape(value);
}
template <class T>
using Escaped = decltype(EscapedArgument(std::declval<const T&>()));

// fmt::format with every text argument escaped.
template <class... T>
Html Format(fmt::format_string<Escaped<T>...> markup, const T&... arguments) {
  return Html::Trusted(fmt::format(markup, EscapedArgument(arguments)...));
}

inline Html Text(std::string_view text) { return Format("{}", text); }

Html Join(const std::vector<Html>& parts, std::string_view between);

struct Column {
  std::string title;
  bool number = false;  // right-aligned, figures of one width
};

// A table with a caption; the first cell of a row is its heading.
class Table {
 public:
  Table(std::string caption, std::vector<Column> columns);
  // `kind`: a class of the style sheet: "out" for what does not count, "strong".
  void Row(const std::vector<Html>& cells, std::string_view kind = {});
  bool empty() const { return rows_.empty(); }
  // `scroll`: at most a screen high, except on paper.
  Html Done(bool scroll = false) const;

 private:
  std::string caption_;
  std::vector<Column> columns_;
  Html rows_;
};

// A plot with the table of its numbers beside it.
Html Figure(const Html& plot, std::string_view caption, const Html& table);

}  // namespace warmleg::report
