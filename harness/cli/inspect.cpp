#include "backend/model/inspect.h"

#include <fmt/core.h>

#include <memory>

#include "harness/cli/commands.h"

namespace warmleg::cli {

namespace {

struct InspectArguments {
  std::string dir, target;
  bool json = false;
  double roof_gb_s = 0;
  model::InspectOptions model;
};

// The report goes to stdout whatever it says; what refuses the checkpoint also to stderr, one line each.
int InspectCommand(const InspectArguments& options) {
  const model::InspectReport report = model::Inspect(options.dir, options.target, options.model);
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
  auto options = std::make_shared<InspectArguments>();
  command->add_option("dir", options->dir, "folder of a target or of a draft")->required();
  command->add_option("--target", options->target, "the target a draft is checked against");
  command->add_flag("--config-only", options->model.config_only, "the configs alone, without weights");
  command->add_option("--context", options->model.context, "positions at which steps and rounds are counted")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31))
      ->capture_default_str();
  command
      ->add_option("--roof", options->roof_gb_s, "read roof in GB/s: also print the floor of each op in time")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Example: warmleg inspect scenarios/checkpoints/tiny-code/draft --target "
      "scenarios/checkpoints/tiny-code/target");
  command->callback([options, &exit_code] {
    if (options->roof_gb_s > 0) options->model.roof_gb_s = options->roof_gb_s;
    exit_code = InspectCommand(*options);
  });
}

}  // namespace warmleg::cli
