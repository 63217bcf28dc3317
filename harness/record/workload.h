// What was asked for: two results may be compared when every field here agrees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/record/reason.h"

namespace warmleg::record {

struct Workload {
  std::string target_hash;                // XXH3-128 over the tensors
  std::optional<std::string> draft_hash;  // null without a draft
  std::string dtype;                      // stored dtype of the target: "BF16"
  std::string prompt_ids_hash;            // SHA-256 over all prompts' ids
  int64_t prompts = 0;                    // how many
  int64_t max_new_tokens = 0;
  int64_t block_size = 0;  // of the drafting arm
  bool ignore_eos = false;
  double temperature = 0;
  int64_t top_k = 0;
  double top_p = 1;
  int64_t seed = 0;
  std::string precision;   // "exact" | "bf16"
  std::string chat;        // "raw" | "qwen" | "qwen-thinking"
  std::string graph_mode;  // "graph" | "eager"
  std::string weights;     // "checkpoint" | "random"
  Json unknown = Json::object();
};

}  // namespace warmleg::record
