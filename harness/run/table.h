// The screen after a run. Every number comes from the result; what is missing says why.
#pragma once

#include <string>

#include "harness/record/result.h"

namespace warmleg::run {

// Lines of at most `width` columns, without colour. `file`: where the result stands.
std::string RenderTable(const record::Result& result, const std::string& file, size_t width = 100);

// Columns of the terminal on stdout, between 60 and 100; 100 when it is none.
size_t ScreenWidth();

}  // namespace warmleg::run
