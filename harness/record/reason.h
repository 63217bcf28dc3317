// Why a leg, a pair, a process or a campaign does not count, or counts with a remark. A closed list: every
// code has one severity, one text and one remedy, and the file carries all three.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace warmleg::record {

using Json = nlohmann::ordered_json;

enum class Severity : uint8_t {
  cold,      // the leg is cold: kept with its rates, in no statistic
  invalid,   // the leg (or pair) is invalid: kept with its data, rates null, in no statistic
  warning,   // the number stands, with a remark
  campaign,  // about the whole file: its verdict, its completeness, or a refused comparison
};

enum class Code : uint8_t {
  // Cold legs.
  warmup,
  no_warmup,
  first_use_in_leg,
  ramping,
  // Clocks and the board.
  clock_low_under_load,
  perf_level_changed,
  power_cap_changed,
  thermal_throttle,
  hw_slowdown,
  board_moved,
  slow_process,
  telemetry_suspect,
  thermal_drift,
  arms_ran_at_different_clocks,
  page_cache_differs,
  not_alone,
  noisy,
  clock_unverified,
  clocks_not_enforced,
  perf_level_not_set,
  rocm_smi_aborted,
  telemetry_lost,
  // Legs, beside clocks.
  reference_tier_hits,
  counter_identity,
  times_inconsistent,
  structural_divergence,
  near_tie_divergence,
  reference_unavailable,
  state_leak,
  degenerate_output,
  token_outside_vocabulary,
  implausible_rate,
  graph_replay_mismatch,
  crashed,
  oom,
  timeout,
  gpu_hang,
  load_stalled,
  partner_left_out,
  // Campaign.
  graph_eager,
  graph_mode_differs,
  output_counts_differ,
  all_pairs_differ,
  no_valid_pair,
  simulated_device,
  made_up_weights,
  made_up_accepted,
  mixed_rocm,
  budget_exhausted,
  interrupted,
  not_finite,
  // Compare.
  workload_differs,
  clock_shifted,
  insufficient_samples,
  nothing_compared,
  no_valid_legs,
  incomplete,
  missing_workload,
  new_workload,
  fingerprint_differs,
  provider_mix_differs,
};

struct CodeInfo {
  Code code;
  std::string_view name;  // as in files
  Severity severity;
  std::string_view text;    // what it means
  std::string_view remedy;  // what to do about it
};

// Every code, in the order of the enum.
std::span<const CodeInfo> AllCodes();
const CodeInfo& Info(Code code);
std::string_view Name(Code code);
std::string_view Name(Severity severity);
std::optional<Code> CodeFromName(std::string_view name);

// R of the result file. `value` is what was seen and `limit` what was allowed: numbers, or strings such as
// "high".
struct Reason {
  Code code = Code::crashed;
  std::string text;
  std::string remedy;
  Json value;  // null when there is none
  Json limit;
  std::optional<int64_t> process;
  std::optional<int64_t> leg;
  Json unknown = Json::object();  // fields this build does not know, kept on rewrite
};

// Text and remedy of the code's entry; `detail` is appended to the text after a colon.
Reason MakeReason(Code code, Json value = nullptr, Json limit = nullptr, std::string_view detail = {});

bool Has(const std::vector<Reason>& reasons, Code code);
bool HasSeverity(const std::vector<Reason>& reasons, Severity severity);

}  // namespace warmleg::record
