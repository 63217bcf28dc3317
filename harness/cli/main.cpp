#include <fmt/core.h>

#include <exception>

#include "backend/decode/generate.h"
#include "backend/vt/error.h"
#include "harness/cli/commands.h"
#include "harness/run/interrupt.h"

int main(int argc, char** argv) {
  using namespace warmleg;
  CLI::App app(
      "warmleg measures speculative decoding: warm legs of a DFlash2 chain against the plain target");
  app.set_version_flag("--version", cli::VersionText());
  app.require_subcommand(1);
  int exit_code = 0;
  cli::AddRun(app, exit_code);
  cli::AddGenerate(app, exit_code);
  cli::AddInspect(app, exit_code);
  cli::AddDevices(app, exit_code);
  cli::AddClocks(app, exit_code);
  cli::AddCompare(app, exit_code);
  cli::AddCard(app, exit_code);
  cli::AddHistory(app, exit_code);
  cli::AddReport(app, exit_code);
  cli::AddAb(app, exit_code);
  cli::AddWatch(app, exit_code);
  cli::AddWorker(app, exit_code);
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const vt::InputError& e) {
    fmt::print(stderr, "warmleg: {}\n", e.what());
    return 2;
  } catch (const decode::Interrupted&) {
    return 130;
  } catch (const run::InterruptedError&) {
    return 130;
  } catch (const std::exception& e) {
    fmt::print(stderr, "warmleg: {}\n", e.what());
    return 3;
  }
}
