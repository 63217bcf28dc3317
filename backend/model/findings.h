// What a check of a checkpoint found. Checks collect; the caller raises once with everything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmleg::model {

struct Findings {
  std::vector<std::string> wrong;   // each one alone refuses the checkpoint
  std::vector<std::string> warned;  // loads, but a number made from it may mislead
  std::vector<std::string> shown;   // worth knowing: what was ignored, where a link leads

  bool ok() const { return wrong.empty(); }
  // Takes over the lines of `other`, each with `prefix` before it.
  void Append(Findings other, std::string_view prefix = {});
  // Throws vt::InputError with every line of `wrong` when there is one.
  void Raise() const;
};

// The first `limit` names one line each through `line`, then one line that counts the rest.
template <class Line>
void AddLimited(std::vector<std::string>* out, const std::vector<std::string>& names, const Line& line,
                size_t limit = 40) {
  for (size_t i = 0; i < names.size() && i < limit; ++i) out->push_back(line(names[i]));
  if (names.size() > limit) out->push_back("and " + std::to_string(names.size() - limit) + " more like it");
}

}  // namespace warmleg::model
