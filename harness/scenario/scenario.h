// A scenario file `warmleg.scenario/1` as the runner uses it. JSON with comments; paths are relative to the
// file; a key that is not known is refused together with the nearest known one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/reason.h"

namespace warmleg::scenario {

using record::Json;

inline constexpr std::string_view kSchema = "warmleg.scenario/1";

enum class Chat : uint8_t { raw, qwen, qwen_thinking };
std::string_view Name(Chat chat);

struct Generation {
  int64_t max_new_tokens = 0;
  bool ignore_eos = false;
  double temperature = 0;  // 0: greedy
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  int64_t seed = 1;
  std::string precision = "exact";  // "exact" | "bf16", of the prefill
};

struct Plan {
  int64_t processes = 4;
  int64_t pairs = 8;  // a process, without the warm-up
  int64_t warmup_pairs = 1;
  double min_leg_s = 0;  // a shorter leg is repeated
  double leg_timeout_s = 600;
};

struct Clocks {
  std::string perf_level = "keep";  // "keep" | "high"
  int64_t interval_ms = 100;
};

struct Scenario {
  std::string name;
  bool demo = false;
  std::string device = "auto";                        // "auto" | "cpu" | "rocm:N" | "sim:N" | "cuda:N"
  std::filesystem::path target, draft, prompts_file;  // resolved against the scenario's folder
  bool random_weights = false;  // "weights": "random": made from the configs alone, by generation.seed
  std::optional<double> committed_per_round;  // of "simulate": accepted counts are drawn, not judged
  Chat chat = Chat::raw;
  Generation generation;
  std::string drafting_arm = "dflash2";  // the other arm is "plain"
  int64_t block_size = 0;                // 0: the draft's own
  bool allow_degenerate = false;
  Plan plan;
  Clocks clocks;
  // Every field with its default filled in, paths as written, and "sha256" over the rest: the result's echo.
  Json normalised;
};

// One override of the command line, "a.b=V": V is JSON when it parses as JSON, else a string; a number in the
// path indexes a list.
struct Override {
  std::string path, value;
};
Override ParseOverride(std::string_view text);  // vt::InputError without '='

// Throws vt::InputError with every defect at once (unknown keys, types, ranges, missing files are not looked
// for).
Scenario Load(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
// `folder`: what relative paths are resolved against; `what` names the document in messages.
Scenario FromText(std::string_view text, const std::filesystem::path& folder, std::string_view what,
                  const std::vector<Override>& overrides = {});

// The known key with the smallest edit distance.
std::string NearestKey(std::string_view key, const std::vector<std::string>& known);

}  // namespace warmleg::scenario
