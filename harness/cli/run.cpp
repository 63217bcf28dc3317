#include "harness/run/run.h"

#include <memory>

#include "harness/cli/commands.h"
#include "harness/run/plan.h"

namespace warmleg::cli {

void AddRun(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "measures a scenario: table on stdout, result as JSON");
  auto o = std::make_shared<run::RunOptions>();
  auto budget = std::make_shared<std::string>();
  command->add_option("scenario", o->scenario, "scenario file, or the name of a shipped one")->required();
  command
      ->add_option("--set", o->sets, "override one value: plan.pairs=4, arms.1.block_size=4; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--out", o->out, "result file (default: results/NAME-UTC.json)");
  command->add_flag("--force", o->force, "replace an existing result file");
  command->add_flag("--plan", o->plan_only, "calibrate, print what the run would cost, and stop");
  command->add_option("--budget", *budget,
                      "time for the whole run (90s, 15m, 1h): fewer pairs, the same workload");
  command->add_option("--resume", o->resume,
                      "continue an unfinished result of this scenario, boot and build");
  command->add_option("--telemetry-device", o->telemetry_device,
                      "watch this board (PCI address, or auto: the only GPU) and enforce its clock rules");
  // Hidden: `ab` lets two campaigns take turns with it.
  command
      ->add_option("--processes-now", o->processes_now,
                   "measure so many processes, leave the rest to --resume")
      ->check(CLI::PositiveNumber)
      ->group("");
  SetExample(*command, "warmleg run tiny-code --set plan.processes=2 --out results/example.json --force");
  command->callback([o, budget, &exit_code] {
    if (!budget->empty()) o->budget_s = run::ParseDuration(*budget);
    exit_code = run::RunScenario(*o);
  });
}

}  // namespace warmleg::cli
