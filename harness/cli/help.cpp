#include <fmt/core.h>

#include "harness/cli/commands.h"
#include "warmleg_revision.h"

namespace warmleg::cli {

std::string VersionText() { return fmt::format("warmleg {} (git {})", kVersion, kGitRevision); }

void SetExample(CLI::App& command, const std::string& example) {
  command.footer(fmt::format("Example:\n  {}", example));
}

}  // namespace warmleg::cli
