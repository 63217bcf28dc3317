#include "backend/decode/generate.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "backend/model/checkpoint.h"
#include "backend/model/loader.h"
#include "backend/model/tokenizer.h"
#include "backend/vt/error.h"
#include "harness/cli/commands.h"
#include "harness/run/devices.h"
#include "harness/run/interrupt.h"
#include "harness/store/store.h"

namespace warmleg::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Settings {
  std::string target, draft, device = "auto", precision, trace;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_ids;
  int64_t max_new_tokens = 0;
  decode::Sampling sampling;
  int64_t seed = 1;
  bool ignore_eos = false;
};

// "1,2,3", spaces allowed around each id.
std::vector<int32_t> ParseIds(const std::string& text) {
  std::vector<int32_t> ids;
  std::string_view rest = text;
  while (true) {
    std::string_view item = rest.substr(0, rest.find(','));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    int32_t id = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), id);
    if (error != std::errc{} || end != item.data() + item.size()) {
      throw vt::InputError(
          fmt::format("--prompt-ids '{}': '{}' is not a token id; give them as 1,2,3", text, item));
    }
    ids.push_back(id);
    const size_t comma = rest.find(',');
    if (comma == std::string_view::npos) return ids;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<model::Tokenizer> FindTokenizer(const Settings& s) {
  const std::string path = (std::filesystem::path(s.target) / "tokenizer.json").string();
  if (!std::filesystem::exists(path)) {
    if (s.prompt_ids) return std::nullopt;
    throw vt::InputError(fmt::format("{}: no such file; give the prompt as --prompt-ids", path));
  }
  try {
    return model::Tokenizer::Load(path);
  } catch (const vt::InputError& e) {
    if (!s.prompt_ids) throw;
    fmt::print(stderr, "warmleg: {}; printing ids\n", e.what());
    return std::nullopt;
  }
}

vt::Precision PrecisionOf(const Settings& s, vt::Device device) {
  if (s.precision == "exact") return vt::Precision::exact;
  if (s.precision == "bf16") return vt::Precision::bf16;
  const bool gpu = device.type == vt::DeviceType::rocm || device.type == vt::DeviceType::cuda;
  return gpu ? vt::Precision::bf16 : vt::Precision::exact;
}

Json TraceJson(const decode::Generation& g) {
  Json rounds = Json::array();
  for (const decode::Round& r : g.rounds) {
    rounds.push_back({{"anchor", r.anchor},
                      {"position", r.position},
                      {"drafted", r.drafted},
                      {"accepted", r.accepted},
                      {"emitted", r.emitted}});
  }
  return {{"schema", "warmleg.trace/1"},
          {"prompt_ids", g.prompt_ids},
          {"output_ids", g.output_ids},
          {"finish", g.finish == decode::Finish::stop ? "stop" : "length"},
          {"first_logits", {{"ids", g.first_ids}, {"values", g.first_logits}}},
          {"rounds", rounds}};
}

void PrintOutput(const decode::Generation& g, const std::optional<model::Tokenizer>& tokenizer) {
  if (tokenizer) {
    try {
      fmt::print("{}\n", tokenizer->Decode(g.output_ids));
      return;
    } catch (const vt::InputError& e) {
      fmt::print(stderr, "warmleg: {}; printing ids\n", e.what());
    }
  }
  fmt::print("{}\n", fmt::join(g.output_ids, ","));
}

// Loading takes minutes: what the headers and configs already decide is refused before.
void CheckBeforeLoading(const Settings& s, std::span<const int32_t> prompt, const decode::Options& options) {
  const model::CheckedTarget target = model::CheckTarget(s.target);
  target.findings.Raise();
  if (s.draft.empty()) {
    decode::CheckRequest(target.weights.config, nullptr, prompt, options);
    return;
  }
  const model::CheckedDraft draft = model::CheckDraft(s.draft, &target.weights.config);
  draft.findings.Raise();
  decode::CheckRequest(target.weights.config, &draft.weights.config, prompt, options);
}

int RunGenerate(const Settings& s) {
  if (s.seed < 0) throw vt::InputError(fmt::format("--seed {}: must not be negative", s.seed));
  if (s.max_new_tokens < 0) {
    throw vt::InputError(fmt::format("--max-new-tokens {}: must not be negative", s.max_new_tokens));
  }
  run::RegisterBackends();
  run::CatchInterrupts();
  std::vector<std::string> notes;
  const std::vector<vt::DeviceInfo> devices = vt::ListDevices(&notes);
  const vt::Device device = run::ResolveDevice(s.device, devices, notes);
  if (!std::filesystem::is_directory(s.target)) {
    throw vt::InputError(fmt::format("--target {}: no such directory", s.target));
  }
  const std::optional<model::Tokenizer> tokenizer = FindTokenizer(s);
  const std::vector<int32_t> prompt = s.prompt_ids ? ParseIds(*s.prompt_ids) : tokenizer->Encode(*s.prompt);

  decode::Options options;
  options.max_new_tokens = s.max_new_tokens;
  options.sampling = s.sampling;
  options.sampling.seed = static_cast<uint64_t>(s.seed);
  CheckBeforeLoading(s, prompt, options);

  vt::Backend& backend = vt::GetBackend(device);
  const model::TargetWeights target = model::LoadTarget(s.target, backend);
  std::optional<model::DraftWeights> draft;
  if (!s.draft.empty()) draft = model::LoadDraft(s.draft, target.config, backend);
  decode::Session session(target, draft ? &*draft : nullptr,
                          static_cast<int64_t>(prompt.size()) + s.max_new_tokens);
  options.ignore_eos = s.ignore_eos;
  options.precision = PrecisionOf(s, device);
  options.first_logits = s.trace.empty() ? 0 : 8;
  options.interrupted = run::InterruptPending;
  const decode::Generation g = draft ? session.DFlash2(prompt, options) : session.Plain(prompt, options);
  if (!s.trace.empty()) store::WriteAtomically(s.trace, TraceJson(g).dump() + "\n", true);
  PrintOutput(g, tokenizer);
  return 0;
}

}  // namespace

void AddGenerate(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("generate", "decodes one prompt; text on stdout");
  auto s = std::make_shared<Settings>();
  command->add_option("--target", s->target, "checkpoint directory of the target")->required();
  command->add_option("--draft", s->draft,
                      "checkpoint directory of the DFlash2 draft; without it plain decoding");
  CLI::Option* prompt =
      command->add_option("--prompt", s->prompt, "prompt text (needs the target's tokenizer.json)");
  CLI::Option* ids = command->add_option("--prompt-ids", s->prompt_ids, "prompt as token ids: 1,2,3");
  prompt->excludes(ids);
  command->add_option("--max-new-tokens", s->max_new_tokens, "tokens to make at most")->required();
  command->add_option("--device", s->device, "cpu, rocm:0, ...; auto: the only GPU, else cpu")
      ->capture_default_str();
  command
      ->add_option("--precision", s->precision,
                   "activations of the prefill: exact or bf16 (default: bf16 on GPUs, else exact)")
      ->check(CLI::IsMember({"exact", "bf16"}));
  command->add_option("--temperature", s->sampling.temperature, "0: greedy; else 0.001 to 100")
      ->capture_default_str();
  command->add_option("--top-k", s->sampling.top_k, "with a temperature: draw from the K best tokens; 0: all")
      ->capture_default_str();
  command
      ->add_option(
          "--top-p", s->sampling.top_p,
          "with a temperature: draw from the best tokens that together have this probability; 1: all")
      ->capture_default_str();
  command
      ->add_option(
          "--seed", s->seed,
          "of the random numbers: the same seed gives the same tokens on every device, as long as the "
          "logits do not differ")
      ->capture_default_str();
  command->add_flag("--ignore-eos", s->ignore_eos, "stop tokens do not end the output");
  command->add_option("--trace", s->trace, "write ids, first logits and every draft round to this file");
  SetExample(
      *command,
      "warmleg generate --target scenarios/checkpoints/tiny-code/target \\\n"
      "      --draft scenarios/checkpoints/tiny-code/draft --prompt 'def add(a, b):' --max-new-tokens 32");
  command->callback([s, &exit_code] {
    if (!s->prompt_ids && !s->prompt) throw CLI::RequiredError("--prompt or --prompt-ids");
    exit_code = RunGenerate(*s);
  });
}

}  // namespace warmleg::cli
