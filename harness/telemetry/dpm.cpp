#include "harness/telemetry/dpm.h"

#include <algorithm>
#include <charconv>

namespace warmleg::telemetry {
namespace {

std::string_view Trim(std::string_view s) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  const size_t begin = s.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(kSpace) - begin + 1);
}

// Takes an unsigned number off the front of `s`; false when there is none or it does not fit.
bool TakeNumber(std::string_view& s, uint64_t& out) {
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), out);
  if (error != std::errc()) return false;
  s.remove_prefix(static_cast<size_t>(end - s.data()));
  return true;
}

bool TakeUnit(std::string_view& s) {
  if (s.size() < 3) return false;
  auto is = [&](size_t i, char lower) { return (s[i] | 0x20) == lower; };
  if (!is(0, 'm') || !is(1, 'h') || !is(2, 'z')) return false;
  s.remove_prefix(3);
  return true;
}

struct Line {
  std::optional<int> number;  // null: "S:"
  uint64_t mhz = 0;
  bool marked = false;
};

std::optional<Line> ParseLine(std::string_view s) {
  Line line;
  if (s.starts_with("S:")) {
    s.remove_prefix(2);
  } else {
    uint64_t number = 0;
    if (!TakeNumber(s, number) || number > 1023 || !s.starts_with(":")) return std::nullopt;
    line.number = static_cast<int>(number);
    s.remove_prefix(1);
  }
  s = Trim(s);
  if (!TakeNumber(s, line.mhz) || !TakeUnit(s)) return std::nullopt;
  s = Trim(s);
  line.marked = s == "*";
  if (!s.empty() && !line.marked) return std::nullopt;
  return line;
}

}  // namespace

std::optional<double> DpmTable::TopMhz() const {
  const auto top = std::max_element(levels.begin(), levels.end(),
                                    [](const DpmLevel& a, const DpmLevel& b) { return a.mhz < b.mhz; });
  return top == levels.end() ? std::nullopt : std::optional<double>(top->mhz);
}

DpmTable ParseDpm(std::string_view text) {
  DpmTable table;
  bool any = false;
  bool bad = false;
  bool filler = false;
  int marked = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view raw = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (raw.empty()) continue;
    any = true;
    const std::optional<Line> line = ParseLine(raw);
    if (!line) {
      bad = true;
      continue;
    }
    const bool unfilled = IsAllOnes(line->mhz);
    const double mhz = static_cast<double>(line->mhz);
    if (line->number && !unfilled) table.levels.push_back({*line->number, mhz});
    if (!line->marked) continue;
    ++marked;
    filler = unfilled;
    table.current_mhz = mhz;
    table.current_level = line->number;
    table.deep_sleep = !line->number;
  }
  if (!any) {
    table.problem = Missing::empty;
  } else if (marked > 1) {
    table.problem = Missing::ambiguous;
  } else if (marked == 0) {
    table.problem = bad ? Missing::error : Missing::no_current_level;
  } else if (filler) {
    table.problem = Missing::sentinel_value;
  }
  if (table.problem) {
    table.current_mhz.reset();
    table.current_level.reset();
    table.deep_sleep = false;
  }
  return table;
}

}  // namespace warmleg::telemetry
