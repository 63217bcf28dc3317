#include "harness/run/ab.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "backend/vt/error.h"
#include "harness/run/make_plan.h"
#include "harness/run/to_record.h"
#include "harness/run/watched_command.h"
#include "harness/scenario/scenario.h"
#include "harness/store/store.h"

namespace warmleg::run {

namespace {

namespace fs = std::filesystem;

bool IsProgram(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// The folder of a ROCm tree's libraries, empty when `tree` is none.
fs::path LibraryFolder(const fs::path& tree) {
  for (const char* folder : {"lib", "lib64"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(tree / folder, error))
      if (entry.path().filename().string().starts_with("libamdhip64.so")) return tree / folder;
  }
  return {};
}

// One process of one side; the rest is left to the next turn.
int Turn(const AbSide& side, const AbOptions& options, const std::string& file, bool first) {
  CommandOptions command;
  command.words = {side.program, "run", options.scenario, "--processes-now", "1"};
  for (const std::string& set : options.sets) command.words.insert(command.words.end(), {"--set", set});
  if (!options.telemetry_device.empty())
    command.words.insert(command.words.end(), {"--telemetry-device", options.telemetry_device});
  if (first)
    command.words.insert(command.words.end(), {"--out", file, "--force"});
  else
    command.words.insert(command.words.end(), {"--resume", file});
  command.environment = side.environment;
  command.stdout_to_stderr = true;
  const CommandEnd end = RunCommand(command);
  if (end.exit_code == 2 && !fs::exists(file))
    fmt::print(
        stderr,
        "warmleg: {}: {} did not start a run; both sides of ab need a warmleg that knows --processes-now\n",
        side.name, side.program);
  return end.exit_code;
}

void RefuseExisting(const std::string& file, bool force) {
  std::error_code error;
  if (!force && fs::exists(file, error))
    throw vt::InputError(fmt::format("{}: exists; choose another --out or add --force", file));
}

std::string Loaded(const record::Result& result) {
  const auto& rocm = result.environment.rocm;
  return rocm && rocm->loaded ? *rocm->loaded : "none";
}

// A tree that the loader did not take would compare a release with itself.
void WarnWhenTreesWereNotTaken(const AbOptions& options, const AbRun& run) {
  if (options.base.tree == options.candidate.tree) return;
  const record::Result base = store::ReadResult(run.base_file);
  const record::Result candidate = store::ReadResult(run.candidate_file);
  if (Loaded(base) != Loaded(candidate)) return;
  fmt::print(stderr,
             "warmleg: both sides loaded ROCm {}: the loader did not take the libraries of one tree (another "
             "soname, or "
             "an RPATH of the program)\n",
             Loaded(base));
}

}  // namespace

AbSide ResolveAbSide(const std::string& name, const std::string& what,
                     const std::vector<std::string>& variables) {
  AbSide side;
  side.name = name;
  const fs::path path = fs::absolute(what);
  if (IsProgram(path)) {
    side.program = path.string();
  } else if (IsProgram(path / "warmleg")) {
    side.program = (path / "warmleg").string();
  } else if (const fs::path libraries = LibraryFolder(path); !libraries.empty()) {
    side.program = fs::read_symlink("/proc/self/exe").string();
    side.tree = path.string();
    const char* before = std::getenv("LD_LIBRARY_PATH");
    side.environment["LD_LIBRARY_PATH"] =
        libraries.string() + (before == nullptr || *before == '\0' ? "" : ":" + std::string(before));
    side.environment["ROCM_PATH"] = side.environment["HIP_PATH"] = path.string();
  } else {
    throw vt::InputError(fmt::format(
        "{} {}: is no warmleg program, no build folder with one, and no ROCm tree (lib/libamdhip64.so*)",
        name, what));
  }
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0)
      throw vt::InputError(fmt::format("--{}-env {}: wants NAME=VALUE", name, variable));
    side.environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return side;
}

AbRun MeasureAb(const AbOptions& options) {
  std::vector<scenario::Override> overrides;
  for (const std::string& set : options.sets) overrides.push_back(scenario::ParseOverride(set));
  const scenario::Scenario scenario = scenario::Load(FindScenario(options.scenario), overrides);
  const fs::path folder = options.out.empty()
                              ? fs::path(fmt::format("results/ab-{}-{}", scenario.name, UtcNowCompact()))
                              : fs::path(options.out);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw vt::EnvironmentError(fmt::format("{}: {}", folder.string(), error.message()));
  AbRun run;
  run.base_file = (folder / "base.json").string(), run.candidate_file = (folder / "candidate.json").string();
  for (const std::string& file : {run.base_file, run.candidate_file}) RefuseExisting(file, options.force);
  const int64_t processes = scenario.plan.processes;
  for (int64_t i = 0; i < processes; ++i) {
    for (int turn = 0; turn < 2; ++turn) {
      const bool is_base = (i + turn) % 2 == 0;
      const AbSide& side = is_base ? options.base : options.candidate;
      fmt::print(stderr, "ab: process {}/{} of {}\n", i + 1, processes, side.name);
      run.exit_code = Turn(side, options, is_base ? run.base_file : run.candidate_file, i == 0);
      if (run.exit_code != 0) return run;
    }
  }
  WarnWhenTreesWereNotTaken(options, run);
  return run;
}

}  // namespace warmleg::run
