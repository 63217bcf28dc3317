#include "backend/model/inspect.h"

#include <fmt/core.h>

#include <memory>

#include "harness/cli/commands.h"

namespace warmleg::cli {

namespace {

struct InspectOptions {
  std::string dir, target;
  bool json = false;
};

// The report goes to stdout whatever it says; what refuses the checkpoint also to stderr, one line each.
int InspectCommand(const InspectOptions& options) {
  const model::InspectReport report = model::Inspect(options.dir, options.target);
  if (options.json)
    fmt::print("{}\n",
               model::InspectJson(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}", model::InspectText(report));
  for (const std::string& line : report.Reasons()) fmt::print(stderr, "warmleg: {}\n", line);
  return report.ok() ? 0 : 2;
}

}  // namespace

void AddInspect(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("inspect", "checks a checkpoint without loading it");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("dir", options->dir, "folder of a target or of a draft")->required();
  command->add_option("--target", options->target, "the target a draft is checked against");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Example: warmleg inspect scenarios/checkpoints/tiny-code/draft --target "
      "scenarios/checkpoints/tiny-code/target");
  command->callback([options, &exit_code] { exit_code = InspectCommand(*options); });
}

}  // namespace warmleg::cli
