#include "harness/run/worker.h"

#include <memory>

#include "harness/cli/commands.h"

namespace warmleg::cli {

void AddWorker(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "a worker process of `run`");
  command->group("");  // not in --help
  auto parent = std::make_shared<pid_t>(0);
  command->add_option("--parent", *parent)->required();
  command->callback([parent, &exit_code] { exit_code = run::WorkerMain(*parent); });
}

}  // namespace warmleg::cli
