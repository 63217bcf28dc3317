#include "harness/judge/compare.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>

#include "harness/cli/commands.h"
#include "harness/record/json.h"
#include "harness/report/compare.h"
#include "harness/report/watch.h"
#include "harness/store/result_files.h"
#include "harness/store/store.h"

namespace warmleg::cli {

namespace {

struct Options {
  std::vector<std::string> base, candidate, across, allow_missing;
  bool allow_clock_shift = false, allow_incomplete = false, json = false, markdown = false;
  std::string format;  // of --export
};

// A file named twice must not count as twice the processes. Watch records go to `beside`.
std::vector<judge::Measured> ReadSide(const char* side, const std::vector<std::string>& paths,
                                      std::vector<report::Beside>& beside) {
  const store::ResultFiles found = store::FindResults(paths);
  for (const auto& file : found.skipped)
    fmt::print(stderr, "warmleg: {}: {} is no result file, skipped\n", side, file.string());
  std::vector<judge::Measured> measured;
  std::set<std::string> seen;
  for (const auto& file : found.files) {
    std::string sha256 = store::FileSha256(file);
    if (!seen.insert(sha256).second) {
      fmt::print(stderr, "warmleg: {}: {} has the content of another file of this side, counted once\n", side,
                 file.string());
      continue;
    }
    if (store::IsWatch(file)) {
      beside.push_back({side, file.string(), store::ReadWatch(file)});
      continue;
    }
    measured.push_back(judge::Measure(store::ReadResult(file)));
    measured.back().file = file.string(), measured.back().sha256 = std::move(sha256);
  }
  fmt::print(stderr, "warmleg: {}: {} file{}\n", side, measured.size(), measured.size() == 1 ? "" : "s");
  return measured;
}

int CompareCommand(const Options& options) {
  judge::CompareOptions rules;
  rules.across.insert(options.across.begin(), options.across.end());
  rules.allow_missing.insert(options.allow_missing.begin(), options.allow_missing.end());
  rules.allow_clock_shift = options.allow_clock_shift, rules.allow_incomplete = options.allow_incomplete;
  std::vector<report::Beside> beside;
  const std::vector<judge::Measured> base = ReadSide("base", options.base, beside);
  const std::vector<judge::Measured> candidate = ReadSide("candidate", options.candidate, beside);
  const judge::Comparison comparison = judge::Compare(base, candidate, rules);
  if (!options.format.empty()) {
    fmt::print("{}", record::Dump(report::GoogleBenchmarkJson(comparison)));
  } else if (options.json) {
    record::Json json = report::CompareJson(comparison);
    json["beside"] = report::BesideJson(beside);
    fmt::print("{}", record::Dump(json));
  } else if (options.markdown) {
    fmt::print("{}{}", report::CompareMarkdown(comparison), report::BesideMarkdown(beside));
  } else {
    fmt::print("{}{}", report::CompareText(comparison), report::BesideText(beside));
  }
  // Whatever the format, stderr says why nothing was compared.
  const auto say = [](const std::vector<record::Reason>& reasons) {
    for (const record::Reason& r : reasons)
      fmt::print(stderr, "warmleg: {}: {}; {}\n", record::Name(r.code), r.text, r.remedy);
  };
  for (const judge::WorkloadVerdict& w : comparison.workloads) say(w.reasons);
  say(comparison.reasons);
  return comparison.exit_code;
}

}  // namespace

void AddCompare(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "compare",
      "verdict per workload and phase. Exit: 0 every gate endpoint same or faster, 1 one slower, 2 refused, "
      "3 environment, 4 undecided");
  auto options = std::make_shared<Options>();
  command->add_option("base", options->base, "result files, or folders of them")->required();
  command->add_option("--with", options->candidate, "the candidate's files or folders")->required();
  command->add_option("--across", options->across, "workload fields that may differ")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--allow-clock-shift", options->allow_clock_shift,
                    "compare although clocks differ by over 2 %");
  command->add_flag("--allow-incomplete", options->allow_incomplete, "take files that are complete: false");
  command->add_option("--allow-missing", options->allow_missing, "scenario that the candidate need not have")
      ->allow_extra_args(false);
  auto* json = command->add_flag("--json", options->json, "print JSON");
  auto* markdown = command->add_flag("--markdown", options->markdown, "print Markdown");
  auto* format = command->add_option("--export", options->format, "print for another tool: gbench");
  format->check(CLI::IsMember({"gbench"}));
  json->excludes(markdown)->excludes(format);
  markdown->excludes(format);
  SetExample(*command, "warmleg compare results/examples/base.json --with results/examples/candidate.json");
  command->callback([options, &exit_code] { exit_code = CompareCommand(*options); });
}

}  // namespace warmleg::cli
