#include "harness/run/run.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "backend/vt/error.h"
#include "harness/run/campaign.h"
#include "harness/run/interrupt.h"
#include "harness/run/make_plan.h"
#include "harness/run/table.h"
#include "harness/run/to_record.h"
#include "harness/scenario/scenario.h"
#include "harness/store/store.h"

namespace warmleg::run {

namespace {

namespace fs = std::filesystem;

scenario::Scenario LoadScenario(const RunOptions& options) {
  std::vector<scenario::Override> overrides;
  overrides.reserve(options.sets.size());
  for (const std::string& set : options.sets) overrides.push_back(scenario::ParseOverride(set));
  return scenario::Load(FindScenario(options.scenario), overrides);
}

// Everything about the file that can be refused is refused before minutes are measured.
void CheckOut(const fs::path& out, bool force, bool watched) {
  std::error_code error;
  if (fs::is_directory(out, error)) {
    throw vt::EnvironmentError(fmt::format("{}: is a folder; --out names a file", out.string()));
  }
  if (!force && fs::exists(out, error)) {
    throw vt::InputError(fmt::format("{}: exists; choose another --out or add --force", out.string()));
  }
  const fs::path samples = fs::path(out).replace_extension(".samples.jsonl");
  if (!force && watched && fs::exists(samples, error)) {
    throw vt::InputError(fmt::format("{}: exists; choose another --out or add --force", samples.string()));
  }
  const fs::path folder = out.has_parent_path() ? out.parent_path() : ".";
  fs::create_directories(folder, error);
  if (error) throw vt::EnvironmentError(fmt::format("{}: {}", folder.string(), error.message()));
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw vt::EnvironmentError(
        fmt::format("{}: cannot write there: {}", folder.string(), std::strerror(errno)));
  }
}

int ExitCode(Ending ending, record::Verdict verdict) {
  if (ending == Ending::interrupted) return 130;
  if (ending == Ending::hung) return 3;
  return verdict == record::Verdict::invalid ? 1 : 0;
}

}  // namespace

int RunScenario(const RunOptions& options) {
  CatchInterrupts();
  const Plan plan = MakePlan(LoadScenario(options));
  CampaignOptions campaign_options;
  campaign_options.out = !options.out.empty() ? options.out
                         : !options.resume.empty()
                             ? options.resume
                             : fmt::format("results/{}-{}.json", plan.name, UtcNowCompact());
  // A resumed file is continued in place; any other existing file needs --force.
  campaign_options.force = options.force || campaign_options.out == options.resume;
  campaign_options.budget_s = options.budget_s;
  campaign_options.telemetry_device = options.telemetry_device;
  campaign_options.processes_now = options.processes_now;
  campaign_options.resumed_from = options.resume;
  Progress progress;
  if (options.plan_only) {
    try {
      const std::string text = Campaign(plan, campaign_options, progress).DescribePlan();
      progress.ClearPassing();
      fmt::print("{}", text);
    } catch (const WorkerFailure& failure) {
      throw vt::EnvironmentError(fmt::format("{}: {}", record::Name(failure.code), failure.text));
    }
    return 0;
  }
  const bool watched = !options.telemetry_device.empty() || plan.device.type == vt::DeviceType::rocm;
  CheckOut(campaign_options.out, campaign_options.force, watched);
  Campaign campaign(plan, campaign_options, progress);
  if (!options.resume.empty()) campaign.Resume(store::ReadResult(options.resume));
  const Ending ending = campaign.Measure();
  if (ending == Ending::interrupted) {
    progress.Line(fmt::format("interrupted; kept in {} (continue with --resume {})", campaign_options.out,
                              campaign_options.out));
  } else {
    progress.ClearPassing();
    fmt::print("{}", RenderTable(campaign.result(), campaign_options.out, ScreenWidth()));
  }
  return ExitCode(ending, campaign.result().verdict);
}

}  // namespace warmleg::run
