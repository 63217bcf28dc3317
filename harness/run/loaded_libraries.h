// Which shared libraries this process has mapped, as files: the version that really runs.
#pragma once

#include <vector>

#include "harness/run/protocol.h"

namespace warmleg::run {

// Those that can change a measurement (compute runtimes, OpenMP, C and C++ runtimes, driver libraries), by
// path.
std::vector<LibraryReply> LoadedLibraries();

}  // namespace warmleg::run
