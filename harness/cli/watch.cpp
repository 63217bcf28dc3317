// warmleg watch: somebody else's benchmark, with its clock window and what the rules say of it.
#include "harness/run/watch.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "backend/vt/error.h"
#include "harness/cli/commands.h"
#include "harness/record/json.h"
#include "harness/report/watch.h"
#include "harness/store/store.h"

namespace warmleg::cli {

namespace {

struct Options {
  run::WatchRunOptions watch;
  std::vector<std::string> rates;
  std::string out;
  bool json = false, force = false;
};

int WatchCommandLine(Options& options) {
  namespace fs = std::filesystem;
  for (const std::string& rate : options.rates) options.watch.rates.push_back(run::ParseRate(rate));
  std::error_code error;
  if (!options.out.empty() && !options.force && fs::exists(options.out, error))
    throw vt::InputError(fmt::format("{}: exists; choose another --out or add --force", options.out));
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the command's output that leaves must not cost the record
  options.watch.stdout_to_stderr = options.json;
  options.watch.on_second = [](const record::WatchSecond& second) {
    fmt::print(stderr, "{}", report::WatchLine(second));
  };
  const run::WatchRun done = run::WatchCommand(options.watch);
  fmt::print(stderr, "{}", report::WatchText(done.record));
  const std::string text = record::Dump(record::ToJson(done.record));
  if (!options.out.empty()) store::WriteAtomically(options.out, text, options.force);
  if (options.json) fmt::print("{}", text);
  return done.exit_code;
}

}  // namespace

void AddWatch(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("watch",
                                         "samples the board while another program runs; exits with that "
                                         "program's code. Its own output stays where it is, "
                                         "the clocks go to stderr");
  auto options = std::make_shared<Options>();
  command->add_option("--device", options->watch.device, "the board: a PCI address, or auto: the only GPU")
      ->capture_default_str();
  command->add_option("--interval", options->watch.interval_ms, "milliseconds between samples")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  command
      ->add_option("--rate", options->rates,
                   "NAME=PATTERN: a number that the program prints on stdout, by regular expression; kept as "
                   "unverified")
      ->allow_extra_args(false);
  command->add_option("--out", options->out, "also write the record to this file, for compare");
  command->add_flag("--force", options->force, "replace an existing file");
  command->add_flag("--json", options->json,
                    "print the record on stdout; the program's own stdout goes to stderr");
  command->add_option("command", options->watch.command, "after --: the program and its arguments")
      ->required();
  SetExample(*command,
             "warmleg watch --rate 'decode_tok_s=([0-9.]+) tok/s' --out watched.json -- sh -c 'sleep 3; echo "
             "34.1 tok/s'");
  command->callback([options, &exit_code] { exit_code = WatchCommandLine(*options); });
}

}  // namespace warmleg::cli
