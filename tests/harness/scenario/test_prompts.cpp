#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/vt/error.h"
#include "harness/scenario/prompts.h"

namespace warmleg::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text, Chat chat = Chat::raw) {
  try {
    ParsePrompts(text, "p.jsonl", chat);
  } catch (const vt::InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Prompts, TextAndIds) {
  const auto prompts = ParsePrompts(
      "{\"id\": \"a\", \"class\": \"code\", \"text\": \"x\\n\"}\n\n{\"id\": \"b\", \"ids\": [0, 7]}\r\n", "p",
      Chat::raw);
  ASSERT_EQ(prompts.size(), 2U);
  EXPECT_EQ(prompts[0].text, "x\n");
  EXPECT_EQ(prompts[0].prompt_class, "code");
  EXPECT_THAT(prompts[1].ids, ElementsAre(0, 7));
  EXPECT_EQ(prompts[1].prompt_class, "all");
}

TEST(Prompts, EveryDefectWithItsLine) {
  const std::string error = ErrorOf(R"({"id": "a", "text": "x"}
{"id": "a", "text": "y"}
{"id": "c", "text": "y", "ids": [1]}
{"id": "d"}
{"id": "e", "ids": [1, -2]}
{"id": "f", "text": ""}
{"text": "y"}
{"id": "g", "txt": "y", "text": "z"}
{"id": "h", "text": "y"
{"id": "i", "ids": [3000000000]}
{"id": "j", "text": "a", "text": "b"}
[1])");
  for (const char* part :
       {"p.jsonl: line 2: id \"a\" stands in line 1 already", "line 3: exactly one of text, ids and length",
        "line 4: exactly one of text, ids and length", "line 5: ids holds -2", "line 6: text is \"\"",
        "line 7: id is missing", "line 8: unknown key \"txt\", nearest known key \"text\"",
        "line 9: the text ends in the middle", "line 10: ids holds 3000000000",
        "line 11: key \"text\" stands twice", "line 12: not an object"})
    EXPECT_THAT(error, HasSubstr(part));
}

TEST(Prompts, EmptyFileAndIdsUnderATemplate) {
  EXPECT_THAT(ErrorOf("\n \n"), HasSubstr("no prompt in it"));
  EXPECT_THAT(ErrorOf("{\"id\": \"a\", \"ids\": [1]}", Chat::qwen), HasSubstr("ids take no template"));
}

TEST(Prompts, ALengthInPlaceOfText) {
  const auto prompts = ParsePrompts(R"({"id": "a", "length": 512})", "p", Chat::raw);
  ASSERT_EQ(prompts.size(), 1U);
  EXPECT_EQ(prompts[0].length, 512);
  EXPECT_TRUE(prompts[0].ids.empty());
  for (const char* bad : {"0", "-1", "1.5", "\"9\"", "10000001"})
    EXPECT_THAT(ErrorOf(fmt::format(R"({{"id": "a", "length": {}}})", bad)),
                HasSubstr("expected an integer of 1 to 10000000"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "length": 3})", Chat::qwen), HasSubstr("take no template"));
  EXPECT_EQ(LoadPrompts("scenarios/prompts/shape.jsonl", Chat::raw).size(), 2U);
}

TEST(Prompts, Templates) {
  EXPECT_EQ(Render(Chat::raw, "def f"), "def f");
  EXPECT_EQ(Render(Chat::qwen, "Hi {}"),
            "<|im_start|>user\nHi {}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(Render(Chat::qwen_thinking, "Hi"),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n");
}

TEST(Prompts, TheShippedOnesLoad) {
  EXPECT_GE(LoadPrompts("scenarios/prompts/code.jsonl", Chat::raw).size(), 8U);
  EXPECT_GE(LoadPrompts("scenarios/prompts/mixed.jsonl", Chat::qwen).size(), 8U);
}

}  // namespace
}  // namespace warmleg::scenario
