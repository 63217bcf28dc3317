#include "harness/store/history.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "backend/vt/error.h"
#include "harness/cli/commands.h"
#include "harness/judge/trend.h"
#include "harness/record/json.h"
#include "harness/report/trend.h"
#include "harness/store/result_files.h"
#include "harness/store/store.h"

namespace warmleg::cli {

namespace {

struct Options {
  std::string db = "results/history.db", by = "rocm", key, reason;
  std::vector<std::string> paths;
  bool json = false, allow_clock_shift = false;
};

struct Added {
  size_t added = 0, known = 0;
  std::vector<std::string> refused;
};

// Reading JSON is most of the work, so files are read in parallel; the one connection is used in turn.
Added AddFiles(const std::vector<std::filesystem::path>& files, store::History& history) {
  constexpr unsigned kMostThreads = 16;
  Added out;
  std::mutex turn;
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) {
      try {
        std::string sha256 = store::FileSha256(files[i]);
        if (const std::lock_guard lock(turn); history.Contains(sha256)) {
          ++out.known;
          continue;
        }
        judge::Measured measured = judge::Measure(store::ReadResult(files[i]));
        measured.file = files[i].string(), measured.sha256 = std::move(sha256);
        const std::lock_guard lock(turn);
        ++(history.Add(measured) ? out.added : out.known);
      } catch (const vt::InputError& e) {
        const std::lock_guard lock(turn);
        out.refused.emplace_back(e.what());
      }
    }
  };
  std::vector<std::future<void>> threads;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads); ++i)
    threads.push_back(std::async(std::launch::async, work));
  for (auto& thread : threads) thread.wait();
  for (auto& thread : threads) thread.get();  // a full disk ends here, after all threads have stopped
  std::sort(out.refused.begin(), out.refused.end());
  return out;
}

// A file that cannot be read is named and does not keep the others out: adding again is safe.
int Add(const Options& options) {
  const store::ResultFiles found = store::FindResults(options.paths);
  store::History history(options.db);
  const Added done = AddFiles(found.files, history);
  for (const auto& file : found.skipped)
    fmt::print(stderr, "warmleg: {} is no result file, skipped\n", file.string());
  for (const std::string& line : done.refused) fmt::print(stderr, "warmleg: not added: {}\n", line);
  fmt::print("{} added, {} known already, {} refused: {}\n", done.added, done.known, done.refused.size(),
             options.db);
  return done.refused.empty() ? 0 : 2;
}

int List(const Options& options) {
  store::History history(options.db, false);
  if (!options.json)
    fmt::print("{:<12} {:<20} {:<24} {:<10} {:<8} {:<16} {:>9} {:>9} {:>9}\n", "hash", "created", "scenario",
               "verdict", "ROCm", "board", "plain", "drafting", "prefill");
  history.ForEach([&](const store::HistoryEntry& e) {
    fmt::print("{}", options.json ? report::HistoryLineJson(e).dump() + "\n" : report::HistoryLine(e));
  });
  return 0;
}

// Exit 1 when a phase became slower somewhere: a trend can gate a nightly job.
int ShowTrend(const Options& options) {
  store::History history(options.db, false);
  bool slower = false;
  record::Json json = record::Json::array();
  history.ForEachGroup([&](std::vector<judge::Measured> files) {
    const judge::Trend trend = judge::MakeTrend(std::move(files), options.by, options.allow_clock_shift);
    slower = slower || !trend.first_bad.empty();
    if (options.json)
      json.push_back(report::TrendJson(trend));
    else
      fmt::print("{}", report::TrendText(trend));
  });
  if (options.json)
    fmt::print("{}", record::Dump({{"schema", "warmleg.trend/1"}, {"by", options.by}, {"trends", json}}));
  return slower ? 1 : 0;
}

int Strike(const Options& options) {
  if (options.reason.empty()) throw vt::InputError("--reason: is empty; say why this result must not count");
  store::History(options.db, false).Strike(options.key, options.reason);
  fmt::print("struck {}: {}\n", options.key, options.reason);
  return 0;
}

}  // namespace

void AddHistory(CLI::App& app, int& exit_code) {
  CLI::App* history = app.add_subcommand("history", "a store of results and their trend over ROCm releases");
  history->require_subcommand(1);
  auto options = std::make_shared<Options>();
  const auto command = [&](const char* name, const char* does, int (*run)(const Options&),
                           const char* example) {
    CLI::App* sub = history->add_subcommand(name, does);
    sub->add_option("--db", options->db, "the SQLite file")->capture_default_str();
    SetExample(*sub, std::string("warmleg history ") + example);
    sub->callback([options, &exit_code, run] { exit_code = run(*options); });
    return sub;
  };
  CLI::App* add = command("add", "takes in result files; the same content twice counts once", Add,
                          "add results/examples");
  add->add_option("paths", options->paths, "result files, or folders of them")->required();
  CLI::App* list = command("list", "one line a result", List, "list");
  list->add_flag("--json", options->json, "print JSON, one object a line");
  CLI::App* trend =
      command("trend", "rates by release, and the first bad release of each phase; exit 1 when there is one",
              ShowTrend, "trend --by rocm");
  trend->add_option("--by", options->by, "what a release is")
      ->check(CLI::IsMember(judge::TrendKeys()))
      ->capture_default_str();
  trend->add_flag("--allow-clock-shift", options->allow_clock_shift,
                  "compare although clocks differ by over 2 %");
  trend->add_flag("--json", options->json, "print JSON");
  CLI::App* strike = command("strike", "keeps a result out of trends, with the reason", Strike,
                             "strike 0123456789ab --reason 'ran on battery'");
  strike->add_option("result", options->key, "its hash (8 digits or more) or its file, as listed")
      ->required();
  strike->add_option("--reason", options->reason, "why")->required();
  SetExample(*history, "warmleg history add results/examples && warmleg history trend --by rocm");
}

}  // namespace warmleg::cli
