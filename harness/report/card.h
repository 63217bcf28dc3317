// A dozen Markdown lines about one result, to post in an issue or a chat.
#pragma once

#include <string>

#include "harness/record/result.h"

namespace warmleg::report {

// `sha256`: of the result file, so that a reader can tell which file the card speaks of.
std::string Card(const record::Result& result, const std::string& file, const std::string& sha256);

}  // namespace warmleg::report
