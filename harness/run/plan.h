// What a campaign will do, with everything resolved: the device, the prompts as ids, the numbers of the plan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/decode/sampling.h"
#include "backend/model/counts.h"
#include "backend/vt/device.h"
#include "harness/record/reason.h"

namespace warmleg::run {

struct Prompt {
  std::string id, prompt_class;
  std::vector<int32_t> ids;
};

struct Plan {
  std::string name;
  bool demo = false, allow_degenerate = false;
  vt::Device device;
  std::string target, draft;                  // directories
  bool random_weights = false;                // made from the configs by `seed`
  std::optional<double> committed_per_round;  // accepted counts are drawn
  std::vector<Prompt> prompts;                // those that the planned pairs decode, in order
  std::string chat;
  int64_t tokenizer_size = 0;  // 0: no tokenizer
  std::function<bool(int32_t)>
      layout_token;                    // white space and table rules, which degenerate output does not count
  std::vector<model::Counted> counts;  // one a prompt length, at the middle of the output
  int64_t max_new_tokens = 0;
  bool ignore_eos = false;
  std::string precision;      // exact | bf16
  decode::Sampling sampling;  // without its request, which is the prompt's index
  std::string draft_arm;      // "dflash2"
  int block_size = 0;         // 0: the draft's own
  int64_t processes = 0, pairs = 0, warmup_pairs = 0;
  double min_leg_s = 0, leg_timeout_s = 0;
  std::string perf_level;  // keep | high
  int64_t interval_ms = 0;
  // No rule over tokens applies, and no plain reference is made.
  bool made_up() const { return random_weights || committed_per_round.has_value(); }

  record::Json scenario;  // normalised, with "sha256"
};

// pair `pair` of process `process` runs plain first, or the drafting arm first; a prompt gets both orders
// over two processes.
inline bool PlainFirst(int64_t process, int64_t pair) { return (process + pair) % 2 == 0; }

// One prompt of each length, in the order of the list.
std::vector<std::vector<int32_t>> OneOfEachLength(const std::vector<Prompt>& prompts);

// Longest prompt plus max_new_tokens.
int64_t Capacity(const Plan& plan);

// Times that every leg decodes its prompt, so that one of `leg_s` seconds lasts min_leg_s. At least 1.
int64_t RepeatsFor(double min_leg_s, double leg_s);

// Pairs a process that fit when `left_s` seconds are left for `processes` processes of which each first needs
// `start_s`; at least 1, at most `planned`.
int64_t PairsWithin(double left_s, int64_t processes, double start_s, double pair_s, int64_t planned);

// "90", "90s", "15m", "1.5h" in seconds. Throws vt::InputError on anything else and on 0 or less.
double ParseDuration(const std::string& text);
// "48 s", "3 min 20 s", "2 h 5 min".
std::string DurationText(double seconds);

}  // namespace warmleg::run
