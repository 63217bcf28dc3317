// The prompts of a scenario: one JSON object a line, {"id", "class", "text" | "ids" | "length"}; blank
// lines are skipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/scenario.h"

namespace warmleg::scenario {

struct Prompt {
  std::string id;
  std::string prompt_class;  // "class" in the file
  std::string text;          // empty when ids are given
  std::vector<int32_t> ids;  // taken as they are, no template
  int64_t length = 0;        // that many made-up ids, for random weights; 0: text or ids
};

// Throws vt::InputError with every defect and its line: not JSON, missing or duplicate id, more or less than
// one of text, ids and length, ids or a length under a chat template, an empty prompt, an empty file.
std::vector<Prompt> LoadPrompts(const std::filesystem::path& file, Chat chat);
std::vector<Prompt> ParsePrompts(std::string_view text, std::string_view what, Chat chat);

// The text that is tokenized. raw: as it is. qwen: one user turn in ChatML and the opened assistant turn with
// an empty think block, which is how Qwen's own template spells thinking off. qwen-thinking: the same with
// the think block left open. Special tokens stand in the text and are found by the tokenizer.
//
//   <|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n     qwen
//   <|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\n<think>\n                   qwen-thinking
std::string Render(Chat chat, std::string_view text);

}  // namespace warmleg::scenario
