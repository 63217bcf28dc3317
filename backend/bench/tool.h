// What the programs of this folder do alike: arguments, errors, exit codes.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "backend/vt/error.h"

namespace vt::bench {

// Parses and runs `body`. 0: done or help; 2: wrong arguments or bad input; 3: the environment.
template <class Body>
int RunTool(CLI::App& app, int argc, char** argv, const char* name, const Body& body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    body();
    return 0;
  } catch (const InputError& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 3;
  }
}

}  // namespace vt::bench
