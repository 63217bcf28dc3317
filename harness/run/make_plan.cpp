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
#include "backend/vt/random_bits.h"
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

// Returns the lengths of the prompts whose ids are made up; 0 for the others.
std::vector<int64_t> AddPrompts(const scenario::Scenario& scenario, Plan& plan) {
  std::vector<scenario::Prompt> prompts = scenario::LoadPrompts(scenario.prompts_file, scenario.chat);
  // The pairs of every process go through the list in order; what they never reach is not part of the
  // workload.
  prompts.resize(std::min(prompts.size(), static_cast<size_t>(std::max<int64_t>(plan.pairs, 1))));
  const bool text =
      std::any_of(prompts.begin(), prompts.end(), [](const auto& p) { return !p.text.empty(); });
  const std::shared_ptr<const model::Tokenizer> tokenizer = FindTokenizer(scenario, text);
  if (tokenizer != nullptr) plan.tokenizer_size = tokenizer->size();
  plan.layout_token = [tokenizer](int32_t id) {
    if (tokenizer == nullptr || !tokenizer->contains(id)) return false;
    return judge::IsLayout(tokenizer->Decode(std::span(&id, 1)));
  };
  std::vector<int64_t> lengths;
  for (const scenario::Prompt& prompt : prompts) {
    Prompt& out = plan.prompts.emplace_back(Prompt{prompt.id, prompt.prompt_class, prompt.ids});
    if (!prompt.text.empty()) out.ids = tokenizer->Encode(scenario::Render(scenario.chat, prompt.text));
    lengths.push_back(prompt.length);
  }
  return lengths;
}

// What the headers and configs decide.
struct Checked {
  model::CheckedTarget target;
  model::CheckedDraft draft;
};

// Loading takes minutes: what is wrong with the checkpoints is refused before a worker starts.
Checked CheckModels(const Plan& plan) {
  Checked out;
  out.target = plan.random_weights ? model::CheckTargetConfig(plan.target) : model::CheckTarget(plan.target);
  out.target.findings.Raise();
  const model::TargetConfig& config = out.target.weights.config;
  out.draft = plan.random_weights ? model::CheckDraftConfig(plan.draft, &config)
                                  : model::CheckDraft(plan.draft, &config);
  out.draft.findings.Raise();
  const auto block = static_cast<double>(out.draft.weights.config.block_size);
  if (plan.committed_per_round.value_or(0) > block)
    throw vt::InputError(
        fmt::format("simulate.committed_per_round is {}, a block of the draft commits at most {}",
                    *plan.committed_per_round, block));
  return out;
}

// Ids that mean nothing, the same for the same seed.
void MakePrompts(Plan& plan, const std::vector<int64_t>& lengths, int64_t vocab) {
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > 0 && !plan.random_weights)
      throw vt::InputError(fmt::format(
          "prompt '{}': a length makes up ids, which needs \"weights\": \"random\"", plan.prompts[i].id));
    const uint64_t key = vt::RandomWord(plan.sampling.seed, i);
    for (int64_t at = 0; at < lengths[i]; ++at)
      plan.prompts[i].ids.push_back(static_cast<int32_t>(vt::RandomWord(key, static_cast<uint64_t>(at)) %
                                                         static_cast<uint64_t>(vocab)));
  }
}

// Made-up weights lie on no disk, so that nothing else says early that a device has no room for them.
void CheckFits(const Plan& plan, const Checked& models, const std::vector<vt::DeviceInfo>& devices) {
  if (!plan.random_weights) return;
  uint64_t bytes = 0;
  for (const auto& items : {model::SizedItems(models.target.plan, models.target.match),
                            model::SizedItems(models.draft.plan, models.draft.match)})
    for (const model::SizedItem& item : items) bytes += item.bytes();
  for (const vt::DeviceInfo& info : devices)
    if (info.device == plan.device && info.memory_bytes > 0 && bytes > info.memory_bytes)
      throw vt::EnvironmentError(fmt::format(
          "made-up weights of {:.1f} GB do not fit into the {:.1f} GB of {}; name another device with "
          "--set device=",
          static_cast<double>(bytes) / 1e9, static_cast<double>(info.memory_bytes) / 1e9,
          vt::ToString(plan.device)));
}

// What steps and rounds must move at the least, for every prompt length.
void CountBytes(Plan& plan, const Checked& models) {
  const auto& target = models.target.weights.config;
  const auto& draft = models.draft.weights.config;
  const auto target_items = model::SizedItems(models.target.plan, models.target.match);
  const auto draft_items = model::SizedItems(models.draft.plan, models.draft.match);
  const int64_t rows = plan.block_size > 0 ? plan.block_size : draft.block_size;
  for (const std::vector<int32_t>& prompt : OneOfEachLength(plan.prompts))
    plan.counts.push_back(model::Count(target, target_items, &draft, &draft_items,
                                       static_cast<int64_t>(prompt.size()) + plan.max_new_tokens / 2, rows));
}

void CheckRequests(const Plan& plan, const Checked& models) {
  decode::Options options;
  options.max_new_tokens = plan.max_new_tokens;
  options.block_size = plan.block_size;
  options.sampling = plan.sampling;
  for (const Prompt& prompt : plan.prompts) {
    try {
      decode::CheckRequest(models.target.weights.config, &models.draft.weights.config, prompt.ids, options);
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
  plan.random_weights = scenario.random_weights;
  plan.committed_per_round = scenario.committed_per_round;
  plan.chat = std::string(scenario::Name(scenario.chat));
  const scenario::Generation& generation = scenario.generation;
  plan.max_new_tokens = generation.max_new_tokens;
  plan.ignore_eos = generation.ignore_eos;
  plan.precision = generation.precision;
  plan.sampling.temperature = generation.temperature;
  plan.sampling.top_k = generation.top_k;
  plan.sampling.top_p = generation.top_p;
  plan.sampling.seed = static_cast<uint64_t>(generation.seed);
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
  const std::vector<int64_t> lengths = AddPrompts(scenario, plan);
  const Checked models = CheckModels(plan);
  MakePrompts(plan, lengths, models.target.weights.config.vocab);
  CheckFits(plan, models, devices);
  CheckRequests(plan, models);
  CountBytes(plan, models);
  return plan;
}

}  // namespace warmleg::run
