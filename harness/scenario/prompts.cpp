#include "harness/scenario/prompts.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/scenario/text_file.h"

namespace warmleg::scenario {
namespace {

using Defects = std::vector<std::string>;

constexpr uint64_t kMaxLength = 10'000'000;  // of a made-up prompt

void ReadIds(const Json& list, Prompt& prompt, const std::string& where, Defects& defects) {
  if (!list.is_array() || list.empty()) {
    defects.push_back(where + ": ids is not a list with at least one token id");
    return;
  }
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(INT32_MAX)) {
      defects.push_back(fmt::format("{}: ids holds {}, expected token ids of 0 or more", where, id.dump()));
      return;
    }
    prompt.ids.push_back(id.get<int32_t>());
  }
}

Prompt ReadPrompt(const Json& line, const std::string& where, Chat chat, Defects& defects) {
  static const std::vector<std::string> kKeys = {"id", "class", "text", "ids", "length"};
  Prompt prompt;
  if (!line.is_object()) {
    defects.push_back(where + ": not an object");
    return prompt;
  }
  const auto text_of = [&](const char* key, std::string& out) {
    if (!line.contains(key)) return;
    if (line[key].is_string() && !line[key].get_ref<const std::string&>().empty())
      out = line[key].get<std::string>();
    else
      defects.push_back(
          fmt::format("{}: {} is {}, expected text that is not empty", where, key, line[key].dump()));
  };
  for (const auto& item : line.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), item.key()) == kKeys.end())
      defects.push_back(fmt::format("{}: unknown key \"{}\", nearest known key \"{}\"", where, item.key(),
                                    NearestKey(item.key(), kKeys)));
  }
  if (!line.contains("id")) defects.push_back(where + ": id is missing");
  text_of("id", prompt.id);
  prompt.prompt_class = "all";
  text_of("class", prompt.prompt_class);
  const int given = int{line.contains("text")} + int{line.contains("ids")} + int{line.contains("length")};
  if (given != 1) {
    defects.push_back(where + ": exactly one of text, ids and length is needed");
    return prompt;
  }
  text_of("text", prompt.text);
  if (line.contains("length")) {
    const Json& length = line["length"];
    if (length.is_number_unsigned() && length.get<uint64_t>() >= 1 && length.get<uint64_t>() <= kMaxLength)
      prompt.length = length.get<int64_t>();
    else
      defects.push_back(
          fmt::format("{}: length is {}, expected an integer of 1 to {}", where, length.dump(), kMaxLength));
  }
  if (line.contains("ids")) ReadIds(line["ids"], prompt, where, defects);
  if (!line.contains("text")) {
    if (chat != Chat::raw)
      defects.push_back(
          fmt::format("{}: ids take no template, but prompts.chat is {}; use raw", where, Name(chat)));
  }
  return prompt;
}

}  // namespace

std::vector<Prompt> ParsePrompts(std::string_view text, std::string_view what, Chat chat) {
  std::vector<Prompt> prompts;
  Defects defects;
  std::map<std::string, int64_t> line_of;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("line {}", number);
    try {
      Prompt prompt = ReadPrompt(record::ParseStrict(line, "", false, number), where, chat, defects);
      if (auto [it, fresh] = line_of.emplace(prompt.id, number); !fresh && !prompt.id.empty())
        defects.push_back(
            fmt::format("{}: id \"{}\" stands in line {} already", where, prompt.id, it->second));
      prompts.push_back(std::move(prompt));
    } catch (const vt::InputError& error) {
      std::string_view message = error.what();
      defects.emplace_back(message.substr(message.find_first_not_of(": ")));
    }
  }
  if (prompts.empty() && defects.empty()) defects.emplace_back("no prompt in it");
  ThrowAll(defects, what);
  return prompts;
}

std::vector<Prompt> LoadPrompts(const std::filesystem::path& file, Chat chat) {
  return ParsePrompts(ReadText(file, "prompts file"), file.string(), chat);
}

std::string Render(Chat chat, std::string_view text) {
  if (chat == Chat::raw) return std::string(text);
  return fmt::format("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n{}", text,
                     chat == Chat::qwen ? "\n</think>\n\n" : "");
}

}  // namespace warmleg::scenario
