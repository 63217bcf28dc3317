// warmleg ab: two builds or two ROCm trees in one sitting, then the comparison.
#include "harness/run/ab.h"

#include <fmt/core.h>

#include <memory>

#include "harness/cli/commands.h"
#include "harness/judge/compare.h"
#include "harness/record/json.h"
#include "harness/report/compare.h"
#include "harness/store/store.h"

namespace warmleg::cli {

namespace {

struct Options {
  run::AbOptions ab;
  std::string base, candidate;
  std::vector<std::string> base_env, candidate_env, across;
  bool allow_clock_shift = false, json = false, markdown = false;
};

judge::Measured Read(const std::string& file) {
  judge::Measured measured = judge::Measure(store::ReadResult(file));
  measured.file = file, measured.sha256 = store::FileSha256(file);
  return measured;
}

int AbCommand(Options& options) {
  options.ab.base = run::ResolveAbSide("base", options.base, options.base_env);
  options.ab.candidate = run::ResolveAbSide("candidate", options.candidate, options.candidate_env);
  const run::AbRun done = run::MeasureAb(options.ab);
  if (done.exit_code != 0) {
    fmt::print(stderr, "warmleg: ab ended early with exit code {}; what was measured is kept in {} and {}\n",
               done.exit_code, done.base_file, done.candidate_file);
    return done.exit_code;
  }
  judge::CompareOptions rules;
  rules.across.insert(options.across.begin(), options.across.end());
  rules.allow_clock_shift = options.allow_clock_shift;
  const std::vector<judge::Measured> base = {Read(done.base_file)};
  const std::vector<judge::Measured> candidate = {Read(done.candidate_file)};
  const judge::Comparison comparison = judge::Compare(base, candidate, rules);
  if (options.json)
    fmt::print("{}", record::Dump(report::CompareJson(comparison)));
  else
    fmt::print("{}",
               options.markdown ? report::CompareMarkdown(comparison) : report::CompareText(comparison));
  fmt::print(stderr, "look at both: warmleg report {} {}\n", done.base_file, done.candidate_file);
  return comparison.exit_code;
}

}  // namespace

void AddAb(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("ab",
                                         "two warmleg builds, or this one with two ROCm trees, in turn, "
                                         "process by process: same boot, same heat. Exit codes "
                                         "are those of compare");
  auto o = std::make_shared<Options>();
  command->add_option("base", o->base, "a warmleg program, its build folder, or a ROCm tree")->required();
  command->add_option("candidate", o->candidate, "likewise")->required();
  command->add_option("scenario", o->ab.scenario, "scenario file, or the name of a shipped one")->required();
  command->add_option("--set", o->ab.sets, "override one value of the scenario; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--base-env", o->base_env, "NAME=VALUE for the base alone; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--candidate-env", o->candidate_env, "NAME=VALUE for the candidate alone")
      ->allow_extra_args(false);
  command->add_option("--out", o->ab.out,
                      "folder of base.json and candidate.json (default: results/ab-NAME-UTC)");
  command->add_flag("--force", o->ab.force, "replace results that are there");
  command->add_option("--telemetry-device", o->ab.telemetry_device,
                      "watch this board (PCI address, or auto) and enforce its clock rules");
  command->add_option("--across", o->across, "workload fields that may differ")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--allow-clock-shift", o->allow_clock_shift,
                    "compare although clocks differ by over 2 %");
  auto* json = command->add_flag("--json", o->json, "print JSON");
  command->add_flag("--markdown", o->markdown, "print Markdown")->excludes(json);
  SetExample(
      *command,
      "warmleg ab build build tiny-code --set plan.processes=2 --set plan.pairs=2 --out results/ab --force");
  command->callback([o, &exit_code] { exit_code = AbCommand(*o); });
}

}  // namespace warmleg::cli
