#include "harness/report/card.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/store/store.h"

namespace warmleg::cli {

void AddCard(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("card", "a dozen Markdown lines to post about one result");
  auto file = std::make_shared<std::string>();
  command->add_option("file", *file, "result file")->required();
  SetExample(*command, "warmleg card results/examples/candidate.json");
  command->callback([file, &exit_code] {
    const record::Result result = store::ReadResult(*file);
    // The folder is the poster's own affair.
    const std::string name = std::filesystem::path(*file).filename().string();
    fmt::print("{}", report::Card(result, name, store::FileSha256(*file)));
    exit_code = 0;
  });
}

}  // namespace warmleg::cli
