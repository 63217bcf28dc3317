// One file per command. AddXxx declares the command's options and, when the command line asks for it, runs it
// and leaves the exit code: 0 done and good, 1 a verdict went against you, 2 wrong usage or bad input, 3
// environment, 4 undecided, 130 interrupted.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace warmleg::cli {

void AddInspect(CLI::App& app, int& exit_code);

}  // namespace warmleg::cli
