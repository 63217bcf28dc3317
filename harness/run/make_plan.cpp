#include "harness/run/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

#include "backend/decode/generate.h"
#include "backend/model/checkpoint.h"
#include "backend/model/tokenizer.h"
#include "backend/vt/error.h"
#include "harness/judge/output_rules.h"
#include "harness/run/devices.h"
#include "harness/scenario/prompts.h"

namespace warmleg::run {

namespace {

namespace fs = std::filesystem;

// The shipped scenarios: where the program is run, or beside the build folder it lies in.
std::vector<fs::path> ScenarioFolders() {
  std::vector<fs::path> folders = {"scenarios"};
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int up = 0; up < 3 && !error; ++up) {  // build/warmleg, out/PRESET/warmleg
    folder = folder.parent_path();
    folders.push_back(folder / "scenarios");
  }
  return folders;
}

std::vector<std::string> ShippedNames() {
  std::vector<std::string> names;
  for (const fs::path& folder : ScenarioFolders()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
    }
    if (!names.empty()) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<const model::Tokenizer> FindTokenizer(const scenario::Scenario& scenario, bool needed) {
  const fs::path file = scenario.target / "tokenizer.json";
  if (!needed && !fs::exists(file)) return nullptr;
  return std::make_shared<const model::Tokenizer>(model::Tokenizer::Load(file.string()));
}

void AddPrompts(const scenario::Scenario& scenario, Plan& plan) {
  std::vector<scenario::Prompt> prompts = scenario::LoadPrompts(scenario.prompts_file, scenario.chat);
  // The pairs of every process go through the list in order; what they never reach is not part of the
  // workload.
  prompts.resize(std::min(prompts.size(), static_cast<size_t>(std::max<int64_t>(plan.pairs, 1))));
  const bool text = std::any_of(prompts.begin(), prompts.end(), [](const auto& p) { return p.ids.empty(); });
  const std::shared_ptr<const model::Tokenizer> tokenizer = FindTokenizer(scenario, text);
  if (tokenizer != nullptr) plan.tokenizer_size = tokenizer->size();
  plan.layout_token = [tokenizer](int32_t id) {
    if (tokenizer == nullptr || !tokenizer->contains(id)) return false;
    return judge::IsLayout(tokenizer->Decode(std::span(&id, 1)));
  };
  for (const scenario::Prompt& prompt : prompts) {
    Prompt& out = plan.prompts.emplace_back(Prompt{prompt.id, prompt.prompt_class, prompt.ids});
    if (out.ids.empty()) out.ids = tokenizer->Encode(scenario::Render(scenario.chat, prompt.text));
  }
}

// Loading takes minutes: what the headers and configs already decide is refused before a worker starts.
void CheckRequests(const Plan& plan) {
  const model::CheckedTarget target = model::CheckTarget(plan.target);
  target.findings.Raise();
  const model::CheckedDraft draft = model::CheckDraft(plan.draft, &target.weights.config);
  draft.findings.Raise();
  decode::Options options;
  options.max_new_tokens = plan.max_new_tokens;
  options.block_size = plan.block_size;
  for (const Prompt& prompt : plan.prompts) {
    try {
      decode::CheckRequest(target.weights.config, &draft.weights.config, prompt.ids, options);
    } catch (const vt::InputError& e) {
      throw vt::InputError(fmt::format("prompt '{}': {}", prompt.id, e.what()));
    }
  }
}

}  // namespace

std::string FindScenario(const std::string& name_or_path) {
  if (fs::exists(name_or_path)) return name_or_path;
  const bool bare = name_or_path.find('/') == std::string::npos && !name_or_path.ends_with(".json");
  if (bare) {
    for (const fs::path& folder : ScenarioFolders()) {
      const fs::path file = folder / (name_or_path + ".json");
      if (fs::exists(file)) return file.string();
    }
  }
  throw vt::InputError(fmt::format("scenario '{}': no such file; shipped scenarios: {}", name_or_path,
                                   fmt::join(ShippedNames(), ", ")));
}

Plan MakePlan(const scenario::Scenario& scenario) {
  Plan plan;
  plan.name = scenario.name;
  plan.demo = scenario.demo;
  plan.allow_degenerate = scenario.allow_degenerate;
  plan.target = scenario.target.string();
  plan.draft = scenario.draft.string();
  plan.chat = std::string(scenario::Name(scenario.chat));
  const scenario::Generation& generation = scenario.generation;
  if (generation.temperature != 0) {
    throw vt::InputError(fmt::format("generation.temperature is {}: only greedy decoding (0) is supported",
                                     generation.temperature));
  }
  plan.max_new_tokens = generation.max_new_tokens;
  plan.ignore_eos = generation.ignore_eos;
  plan.precision = generation.precision;
  plan.top_k = generation.top_k, plan.top_p = generation.top_p, plan.seed = generation.seed;
  plan.draft_arm = scenario.drafting_arm;
  plan.block_size = static_cast<int>(scenario.block_size);
  plan.processes = scenario.plan.processes;
  plan.pairs = scenario.plan.pairs;
  plan.warmup_pairs = scenario.plan.warmup_pairs;
  plan.min_leg_s = scenario.plan.min_leg_s;
  plan.leg_timeout_s = scenario.plan.leg_timeout_s;
  plan.perf_level = scenario.clocks.perf_level;
  plan.interval_ms = scenario.clocks.interval_ms;
  plan.scenario = scenario.normalised;
  RegisterBackends();
  std::vector<std::string> notes;
  const std::vector<vt::DeviceInfo> devices = vt::ListDevices(&notes);
  plan.device = ResolveDevice(scenario.device, devices, notes);
  AddPrompts(scenario, plan);
  CheckRequests(plan);
  return plan;
}

}  // namespace warmleg::run
