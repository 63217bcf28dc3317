#include "backend/model/findings.h"

#include <iterator>

#include "backend/vt/error.h"

namespace warmleg::model {

void Findings::Append(Findings other, std::string_view prefix) {
  const auto take = [&](std::vector<std::string>& from, std::vector<std::string>& to) {
    for (std::string& line : from) to.push_back(std::string(prefix) + std::move(line));
  };
  take(other.wrong, wrong);
  take(other.warned, warned);
  take(other.shown, shown);
}

void Findings::Raise() const {
  if (ok()) return;
  std::string text;
  for (const std::string& line : wrong) text += (text.empty() ? "" : "\n") + line;
  throw vt::InputError(text);
}

}  // namespace warmleg::model
