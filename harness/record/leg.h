// One arm decoding one prompt, as it stands in the file. Times are seconds, each read after a device
// synchronise; counts and times are summed over the leg's repeats.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/clocks.h"
#include "harness/record/reason.h"

namespace warmleg::record {

// Identities (checked by the judge): output_tokens == prefill_made + committed; bonus == rounds; accepted +
// bonus == committed + stop_trimmed + budget_trimmed; accepted <= drafted; accepted_at sums to accepted.
// Plain arm: rounds are decode steps, drafted = accepted = 0.
struct Counters {
  int64_t rounds = 0, drafted = 0, accepted = 0, bonus = 0, committed = 0;
  int64_t stop_trimmed = 0, budget_trimmed = 0, prefill_made = 0, output_tokens = 0;
  int64_t prompt_tokens = 0;
  std::vector<int64_t> rounds_with_accepted;  // [a] = rounds that accepted a drafts
  std::vector<int64_t> accepted_at;           // [j] = times the draft at block position j + 1 was accepted
  Json unknown = Json::object();
};

// Absent: not measured (a plain arm has no draft_s; a crashed leg has none). The six parts of a drafting
// arm's decode_s come from device timestamps; unaccounted_s is what they leave.
struct Times {
  std::optional<double> prefill_s, ttft_s, decode_s, e2e_s;
  std::optional<double> draft_s, select_s, verify_s, commit_s, host_s, unaccounted_s;
  Json unknown = Json::object();
};

// Derived, so null for an invalid leg and wherever a denominator is 0.
struct Rates {
  std::optional<double> decode_tok_s, prefill_tok_s, e2e_tok_s;
  std::optional<double> accepted_per_drafted, accepted_per_round, committed_per_round;
  Json unknown = Json::object();
};

// Calls of one op on one device by one provider during the leg.
struct Provider {
  std::string op, device, asked, provider;
  int64_t calls = 0, fallbacks = 0;
  std::optional<std::string> fallback_reason;
  int64_t bytes = 0;
  Json unknown = Json::object();
};

// First difference from the plain reference's ids.
struct Divergence {
  int64_t index = 0;  // position in the output
  int64_t reference_token = 0;
  int64_t token = 0;
  std::optional<double> gap;  // reference's top-1 minus top-2 logit there
  Json unknown = Json::object();
};

enum class State : uint8_t { cold, warm };

struct Leg {
  int64_t process = 0;
  int64_t index = 0;                      // in its process, from 0, in the order run
  int64_t pair = 0;                       // in its process, from 0, warm-up pairs included
  std::string arm, prompt, prompt_class;  // prompt_class: "class" in the file
  State state = State::cold;
  bool valid = false;
  bool counted = false;  // enters the statistics: warm, valid, and so is its partner
  std::vector<Reason> reasons;
  int64_t repeats = 1;
  std::optional<std::string> graph_mode;  // "graph" | "eager"; absent on cpu
  Counters counters;
  Times times;
  Rates rates;
  // Bytes that one step or round must read (weights and states, draft included): for the read roof.
  std::optional<double> read_bytes_per_round;
  ClockWindow clocks;
  std::vector<Provider> providers;
  std::optional<std::string> output_sha256;  // over the ids as little-endian int32
  std::optional<Divergence> divergence;      // null: equal to the reference, or not compared
  Json unknown = Json::object();
};

}  // namespace warmleg::record
