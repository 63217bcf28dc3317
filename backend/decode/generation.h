// What one generation yields: ids, rounds, counters, times. The harness turns it into a leg.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/vt/ops.h"

namespace warmleg::decode {

enum class Finish : uint8_t { length, stop };

// One draft and verify round. `accepted` counts before the cuts by limit and stop token, `emitted` after.
struct Round {
  int32_t anchor = 0;            // newest token before the round
  int64_t position = 0;          // its position
  std::vector<int32_t> drafted;  // verify - 1 tokens
  int accepted = 0;              // drafts only
  int emitted = 0;               // committed tokens of the round
};

// Summed over the rounds of a drafting arm; for plain decoding rounds = steps and drafted = accepted = 0.
// output_tokens == prefill_made + committed; bonus == rounds (0 for plain steps' drafts, still one token
// each); accepted + bonus == committed + stop_trimmed + budget_trimmed; accepted_at sums to accepted.
struct Counters {
  int64_t rounds = 0, drafted = 0, accepted = 0, bonus = 0, committed = 0;
  int64_t stop_trimmed = 0, budget_trimmed = 0, prefill_made = 0, output_tokens = 0;
  std::array<int64_t, vt::kMaxRows> rounds_with_accepted{};  // histogram: [a] = rounds that accepted a drafts
  std::array<int64_t, vt::kMaxRows>
      accepted_at{};  // [j] = times the draft at block position j + 1 was accepted

  Counters& operator+=(const Counters& other);
};

// Seconds, each read after a device synchronise. The parts of a drafting arm's rounds come from device
// stamps; decode_s = draft + select + verify + commit + host + unaccounted.
struct Times {
  double prefill_s = 0, ttft_s = 0, decode_s = 0, e2e_s = 0;
  double draft_s = 0, select_s = 0, verify_s = 0, commit_s = 0, host_s = 0, unaccounted_s = 0;
};

struct Generation {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> output_ids;  // stop token included
  Finish finish = Finish::length;
  std::vector<int32_t> first_ids;  // top 8 after the prompt, best first
  std::vector<float> first_logits;
  std::vector<Round> rounds;  // empty for plain decoding
  // Plain decoding with record_margins: top-1 minus top-2 logit where output_ids[i] was chosen.
  std::vector<float> margins;
  bool graph = false;         // every step ran as a captured graph
  std::string graph_refusal;  // why not, on a device that can capture
  bool graph_replay_mismatch =
      false;  // a replay differed from the eager run: the numbers of this process are void
  Counters counters;
  Times times;
};

}  // namespace warmleg::decode
