#include "harness/report/report.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <set>

#include "backend/vt/error.h"
#include "harness/cli/commands.h"
#include "harness/store/result_files.h"
#include "harness/store/store.h"

namespace warmleg::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> paths;
  std::string out, by = "rocm";
  bool force = false, allow_clock_shift = false;
};

report::Document Read(const fs::path& file) {
  report::Document document;
  document.name = file.filename().string(), document.sha256 = store::FileSha256(file);
  document.result = store::ReadResult(file);
  document.measured = judge::Measure(document.result);
  document.measured.file = document.name, document.measured.sha256 = document.sha256;
  document.samples = report::ReadSamples(document.result.telemetry, file);
  for (const std::string& problem : document.samples.problems) fmt::print(stderr, "warmleg: {}\n", problem);
  return document;
}

// Many files are read one after the other and only measured, so memory does not grow with their legs.
std::string Trends(const std::vector<fs::path>& paths, const Options& options) {
  std::vector<judge::Measured> files;
  std::set<std::string> seen;
  for (const fs::path& path : paths) {
    std::string sha256 = store::FileSha256(path);
    if (!seen.insert(sha256).second) {
      fmt::print(stderr, "warmleg: {} has the content of another file, counted once\n", path.string());
      continue;
    }
    files.push_back(judge::Measure(store::ReadResult(path)));
    files.back().file = path.filename().string(), files.back().sha256 = std::move(sha256);
  }
  std::vector<judge::Trend> trends;
  for (std::vector<judge::Measured>& group : judge::GroupForTrends(files))
    trends.push_back(judge::MakeTrend(std::move(group), options.by, options.allow_clock_shift));
  return report::TrendPage(trends, files, options.by);
}

std::string MakePage(const std::vector<fs::path>& files, const Options& options) {
  if (files.size() == 1) return report::CampaignPage(Read(files[0]));
  if (files.size() > 2) return Trends(files, options);
  const report::Document base = Read(files[0]);
  const report::Document candidate = Read(files[1]);
  judge::CompareOptions rules;
  rules.allow_clock_shift = options.allow_clock_shift;
  const std::vector<judge::Measured> a = {base.measured};
  const std::vector<judge::Measured> b = {candidate.measured};
  return report::ComparisonPage(base, candidate, judge::Compare(a, b, rules));
}

// A page may be made again; anything else at that path is somebody's work.
bool MayReplace(const fs::path& out) {
  constexpr std::string_view kMark = "<!-- warmleg.report/";
  constexpr size_t kHead = 200;
  return store::ReadBytes(out).substr(0, kHead).find(kMark) != std::string::npos;
}

int ReportCommand(const Options& options) {
  const store::ResultFiles found = store::FindResults(options.paths);
  for (const auto& file : found.skipped)
    fmt::print(stderr, "warmleg: {} is no result file, skipped\n", file.string());
  const fs::path out = options.out.empty() ? fs::path("report.html") : fs::path(options.out);
  std::error_code error;
  const bool there = fs::exists(out, error);
  if (there && fs::is_directory(out, error))
    throw vt::EnvironmentError(fmt::format("{}: is a folder; -o names a file", out.string()));
  if (there && !options.force && !MayReplace(out))
    throw vt::InputError(
        fmt::format("{}: exists and is no report; choose another -o or add --force", out.string()));
  store::WriteAtomically(out, MakePage(found.files, options), true);
  fmt::print("{}\n", out.string());
  return 0;
}

}  // namespace

void AddReport(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "report",
      "one HTML page to look at: one result, a comparison of two (base, candidate), or the trend of more");
  auto options = std::make_shared<Options>();
  command->add_option("files", options->paths, "result files, or folders of them")->required();
  command->add_option("-o,--out", options->out,
                      "the page (default: report.html); an older report there is replaced");
  command->add_flag("--force", options->force, "replace whatever is there");
  command->add_option("--by", options->by, "what a release is, in a trend")
      ->check(CLI::IsMember(judge::TrendKeys()))
      ->capture_default_str();
  command->add_flag("--allow-clock-shift", options->allow_clock_shift,
                    "compare although clocks differ by over 2 %");
  SetExample(*command,
             "warmleg report results/examples/base.json results/examples/candidate.json -o report.html");
  command->callback([options, &exit_code] { exit_code = ReportCommand(*options); });
}

}  // namespace warmleg::cli
