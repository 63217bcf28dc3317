#include "backend/model/tokenizer.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "backend/vt/error.h"
#include "tests/support/checkpoint_fixture.h"

namespace warmleg::model {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr const char* kTokenizer = "scenarios/checkpoints/tiny-code/target/tokenizer.json";

json File() {
  static const json file = json::parse(warmleg::testing::ReadFile(kTokenizer));
  return file;
}
Tokenizer Make(const json& file) { return Tokenizer::Parse(file.dump(), "tokenizer.json"); }

std::string RefusalOf(const json& file) {
  try {
    Make(file);
  } catch (const vt::InputError& error) {
    return error.what();
  }
  return "accepted";
}

// The pre-tokenizer steps after which each word is seen as one token, because every byte is one and nothing
// merges.
std::vector<std::string> Words(const std::vector<json>& steps, const std::string& text) {
  json file = File();
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
  file["model"]["ignore_merges"] = true;
  json& vocab = file["model"]["vocab"];
  // Every piece of the ASCII text, spelled in the byte alphabet, is a token of its own.
  int32_t next = 5000;
  const auto spell = [](std::string s) {
    std::string out;
    for (const char c : s) out += c == ' ' ? "\u0120" : c == '\n' ? "\u010a" : std::string(1, c);
    return out;
  };
  const std::string longer = " " + text;
  for (const std::string& source : {text, longer})
    for (size_t i = 0; i < source.size(); ++i)
      for (size_t n = 1; i + n <= source.size(); ++n)
        if (!vocab.contains(spell(source.substr(i, n)))) vocab[spell(source.substr(i, n))] = next++;
  const Tokenizer t = Make(file);
  std::vector<std::string> words;
  for (const int32_t id : t.Encode(text)) words.push_back(t.Decode(Ids{id}));
  return words;
}

json ByteLevel(bool prefix, bool regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", regex}};
}
json Split(const json& pattern, const std::string& behavior, bool invert = false) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}

TEST(Tokenizer, EveryGoldenPromptGivesItsIdsAndDecodesBack) {
  const Tokenizer t = Tokenizer::Load(kTokenizer);
  const json goldens = json::parse(warmleg::testing::ReadFile("tests/data/goldens/tiny-code.json"));
  int64_t cases = 0;
  for (const json& c : goldens["cases"]) {
    const auto ids = c["prompt_ids"].get<Ids>();
    EXPECT_EQ(t.Encode(c["prompt"].get<std::string>()), ids);
    EXPECT_EQ(t.Decode(ids), c["prompt"].get<std::string>());
    EXPECT_EQ(t.Decode(c["greedy"].get<Ids>()), c["text"].get<std::string>());
    ++cases;
  }
  EXPECT_EQ(cases, 22);
  EXPECT_EQ(t.size(), 2048);
  EXPECT_TRUE(t.contains(2047));
  EXPECT_FALSE(t.contains(2048));
}

TEST(Tokenizer, BothSpellingsOfMergesAreTheSame) {
  json file = File();
  for (json& merge : file["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const std::string text = "def main(self):\n    return None";
  EXPECT_EQ(Make(file).Encode(text), Make(File()).Encode(text));
  EXPECT_LT(Make(file).Encode(text).size(), text.size());
}

TEST(Tokenizer, APieceMayHoldASpaceInThePairForm) {
  json file = File();
  file["model"]["vocab"]["a b"] = 3000;
  file["model"]["vocab"]["a bc"] = 3001;
  file["model"]["merges"].push_back(json::array({"a b", "c"}));
  EXPECT_NO_THROW(Make(file));
}

TEST(Tokenizer, ComposesMarks) {
  const Tokenizer t = Make(File());
  const std::string nfc = " Vi\u1ec7t", nfd = " Vie\u0323\u0302t";
  EXPECT_EQ(t.Encode(nfd), t.Encode(nfc));
  EXPECT_EQ(t.Decode(t.Encode(nfd)), nfc);
}

TEST(Tokenizer, TextComesBackAsItWas) {
  const Tokenizer t = Make(File());
  for (const std::string text :
       {"", "\r\n", "a\r\n\r\n  b", "      ", "x    y", "1234567", "\U0001F600 \U0001F468\u200d\U0001F469",
        "\t\tif x:\n", "it's WE'LL I'm", "<|im_start|>user\nhi<|im_end|>", "\u4e2d\u6587\u3002"})
    EXPECT_EQ(t.Decode(t.Encode(text)), text);
  EXPECT_TRUE(t.Encode("").empty());
  std::string nul("a\0b", 3);
  EXPECT_EQ(t.Decode(t.Encode(nul)), nul);
}

TEST(Tokenizer, DigitsStandAlone) { EXPECT_EQ(Make(File()).Encode("1234").size(), 4u); }

TEST(Tokenizer, AddedTokensInsideText) {
  const Tokenizer t = Make(File());
  const Ids ids = t.Encode("a<|im_end|><|mask|>b");
  EXPECT_THAT(ids, ElementsAre(t.Encode("a")[0], 2046, 2047, t.Encode("b")[0]));
}

TEST(Tokenizer, TheLongestAddedTokenWins) {
  json file = File();
  file["added_tokens"].push_back(
      {{"id", 2050}, {"content", "<|im"}, {"normalized", false}, {"special", true}});
  const Tokenizer t = Make(file);
  EXPECT_EQ(t.Encode("<|im_end|>"), Ids{2046});
  EXPECT_EQ(t.Encode("<|im")[0], 2050);
}

// A normalized token is looked for after NFC, so its decomposed spelling matches; one that is not, does not.
TEST(Tokenizer, NormalizedAddedTokensAreFoundAfterNormalisation) {
  for (const bool normalized : {true, false}) {
    json file = File();
    file["added_tokens"].push_back(
        {{"id", 2050}, {"content", "\u00e9!"}, {"normalized", normalized}, {"special", false}});
    EXPECT_EQ(Make(file).Encode("e\u0301!") == Ids{2050}, normalized);
    EXPECT_EQ(Make(file).Encode("\u00e9!"), Ids{2050});
  }
}

TEST(Tokenizer, IgnoreMergesTakesAWholeWord) {
  json file = File();
  file["model"]["vocab"]["zqzq"] = 3000;
  EXPECT_GT(Make(file).Encode("zqzq").size(), 1u);
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(Make(file).Encode("zqzq"), Ids{3000});
}

TEST(Tokenizer, MergesByRankAndThenFromTheLeft) {
  json file = File();
  json& model = file["model"];
  model["merges"] = json::array({{"a", "a"}, {"b", "c"}, {"a", "b"}});
  model["vocab"]["aa"] = 3000;
  model["vocab"]["bc"] = 3001;
  model["vocab"]["ab"] = 3002;
  const Tokenizer t = Make(file);
  const int32_t a = model["vocab"]["a"];
  EXPECT_EQ(t.Encode("aaa"), (Ids{3000, a}));
  EXPECT_EQ(t.Encode("abc"), (Ids{a, 3001}));
  EXPECT_EQ(t.Encode("aab"), (Ids{3000, model["vocab"]["b"]}));
}

TEST(Tokenizer, ByteLevelRegexAbsentTrueFalse) {
  const std::string text = "it's  a b12";
  const std::vector<std::string> cut = {"it", "'s", " ", " a", " b", "12"};
  json absent = ByteLevel(false, true);
  absent.erase("use_regex");
  EXPECT_EQ(Words({absent}, text), cut);
  EXPECT_EQ(Words({ByteLevel(false, true)}, text), cut);
  EXPECT_EQ(Words({ByteLevel(false, false)}, text), std::vector<std::string>{text});
}

TEST(Tokenizer, PrefixSpace) {
  EXPECT_EQ(Words({ByteLevel(true, true)}, "a b"), (std::vector<std::string>{" a", " b"}));
  EXPECT_EQ(Words({ByteLevel(true, false)}, " a"), (std::vector<std::string>{" a"}));
}

TEST(Tokenizer, SplitBehaviours) {
  using Strings = std::vector<std::string>;
  const std::string text = "the-final--countdown";
  const json dash = {{"String", "-"}};
  const auto words = [&](const std::string& behavior) {
    return Words({Split(dash, behavior), ByteLevel(false, false)}, text);
  };
  EXPECT_EQ(words("Removed"), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(words("Isolated"), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(words("MergedWithPrevious"), (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(words("MergedWithNext"), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(words("Contiguous"), (Strings{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(Words({Split({{"Regex", "[a-z]+"}}, "Removed", true), ByteLevel(false, false)}, text),
            (Strings{"the", "final", "countdown"}));
}

TEST(Tokenizer, RefusesWhatItDoesNotKnowByName) {
  const auto with = [](const char* pointer, const json& value) {
    json file = File();
    file[json::json_pointer(pointer)] = value;
    return RefusalOf(file);
  };
  EXPECT_THAT(with("/normalizer/type", "NFKC"), HasSubstr("NFKC"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "Whitespace"}}), HasSubstr("Whitespace"));
  EXPECT_THAT(with("/pre_tokenizer", nullptr), HasSubstr("ByteLevel"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/behavior", "Sometimes"), HasSubstr("Sometimes"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a"), HasSubstr("does not compile"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\h+"), HasSubstr("\\h"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "[a&&b]"), HasSubstr("&&"));
  EXPECT_THAT(with("/model/type", "Unigram"), HasSubstr("Unigram"));
  EXPECT_THAT(with("/model/byte_fallback", true), HasSubstr("byte_fallback"));
  EXPECT_THAT(with("/model/unk_token", "<unk>"), HasSubstr("unk_token"));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("dropout"));
  EXPECT_THAT(with("/model/continuing_subword_prefix", "##"), HasSubstr("continuing_subword_prefix"));
  EXPECT_THAT(with("/decoder/type", "Metaspace"), HasSubstr("Metaspace"));
  EXPECT_THAT(with("/post_processor", {{"type", "TemplateProcessing"}}), HasSubstr("TemplateProcessing"));
  EXPECT_THAT(with("/truncation", {{"max_length", 5}}), HasSubstr("truncation"));
  EXPECT_THAT(with("/added_tokens/0/lstrip", true), HasSubstr("lstrip"));
  EXPECT_THAT(with("/added_tokens/0/id", 5), HasSubstr("contradicts"));
  EXPECT_THAT(with("/added_tokens/0/id", -1), HasSubstr("id"));
  EXPECT_THAT(with("/model/vocab/a", 5000000000), HasSubstr("5000000000"));
  EXPECT_THAT(with("/model/vocab/a", -3), HasSubstr("-3"));
  EXPECT_THAT(with("/model/merges", json::array()), HasSubstr("merges"));
  EXPECT_THAT(with("/model/merges/0", "abc"), HasSubstr("merges[0]"));
  EXPECT_THAT(with("/model/merges/0", json::array({"a"})), HasSubstr("merges[0]"));
  EXPECT_THAT(with("/model/merges/0", json::array({"a", "nosuchpiece"})), HasSubstr("nosuchpiece"));
}

TEST(Tokenizer, AMissingMergesListIsRefused) {
  json file = File();
  file["model"].erase("merges");
  EXPECT_THAT(RefusalOf(file), HasSubstr("merges"));
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefused) {
  const Tokenizer t = Make(File());
  for (const std::string text : {"ab\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "x\xe4\xb8"})
    EXPECT_THROW(t.Encode(text), vt::InputError);
}

TEST(Tokenizer, DecodingRepairsAndRefuses) {
  const Tokenizer t = Make(File());
  const Ids smile = t.Encode("\U0001F600");
  ASSERT_GT(smile.size(), 1u);
  EXPECT_EQ(t.Decode(Ids{smile[0]}), "\ufffd");
  EXPECT_THROW(t.Decode(Ids{2048}), vt::InputError);
  EXPECT_THROW(t.Decode(Ids{-1}), vt::InputError);
}

// Quadratic merging or matching would take minutes here.
TEST(Tokenizer, LongRunsAreQuick) {
  const Tokenizer t = Make(File());
  for (const char c : {'a', ' ', '\n', '(', '1'}) {
    const std::string run(100000, c);
    EXPECT_EQ(t.Decode(t.Encode(run)), run);
  }
}

TEST(Tokenizer, APatternThatBacktracksForeverIsAnError) {
  json file = File();
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(?:a|aa)*[^a]";
  EXPECT_THROW(Make(file).Encode(std::string(200, 'a')), vt::InputError);
}

}  // namespace
}  // namespace warmleg::model
