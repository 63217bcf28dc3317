// One file per command. AddXxx declares the command's options and, when the command line asks for it, runs it
// and leaves the exit code: 0 done and good, 1 a verdict went against you, 2 wrong usage or bad input, 3
// environment, 4 undecided, 130 interrupted.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace warmleg::cli {

void AddRun(CLI::App& app, int& exit_code);
void AddGenerate(CLI::App& app, int& exit_code);
void AddInspect(CLI::App& app, int& exit_code);
void AddDevices(CLI::App& app, int& exit_code);
void AddClocks(CLI::App& app, int& exit_code);
void AddCompare(CLI::App& app, int& exit_code);
void AddCard(CLI::App& app, int& exit_code);
void AddHistory(CLI::App& app, int& exit_code);  // add, list, trend, strike
void AddReport(CLI::App& app, int& exit_code);
void AddAb(CLI::App& app, int& exit_code);
void AddWatch(CLI::App& app, int& exit_code);
void AddWorker(CLI::App& app, int& exit_code);  // hidden: what `run` starts as its worker processes

// "warmleg 0.1.0 (git 0123456789ab-dirty)": version and revision of this build.
std::string VersionText();

// A command's --help ends with this: one command line that works in the repository root.
void SetExample(CLI::App& command, const std::string& example);

}  // namespace warmleg::cli
