// tokenizer.json to Tokenizer::Impl. Supported, everything else is refused by name:
//   normalizer      null, NFC, Sequence of NFC
//   pre_tokenizer   Split (all behaviours, String and Regex), then ByteLevel; alone or in a Sequence
//   model           BPE without dropout, unk_token, affixes, fuse_unk, byte_fallback
//   post_processor  null, ByteLevel (moves offsets only)
//   decoder         ByteLevel
//   added_tokens    special and normalized; lstrip, rstrip and single_word must be false
#include <fmt/core.h>

#include <limits>

#include "backend/model/json_text.h"
#include "backend/model/tokenizer_impl.h"
#include "backend/model/utf8.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

using nlohmann::json;
constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max() - 1;

class Reader {
 public:
  Reader(const json& top, const std::string& name) : top_(top, name + ": ", &findings_) {}

  std::unique_ptr<Tokenizer::Impl> Read() {
    for (const char* key : {"truncation", "padding"})
      if (top_.Find(key) != nullptr) top_.Wrong(fmt::format("{} is set, which is not supported", key));
    if (const json* n = top_.Find("normalizer")) ReadNormalizer(*n, top_.where() + "normalizer.");
    if (const json* p = top_.Find("pre_tokenizer")) ReadPreTokenizer(*p, top_.where() + "pre_tokenizer.");
    if (findings_.ok() && !byte_level_)
      top_.Wrong("pre_tokenizer has no ByteLevel step: only byte-level vocabularies are supported");
    OnlyByteLevel("post_processor", true);
    OnlyByteLevel("decoder", false);
    ReadModel(top_.Object("model"));
    ReadAdded();
    findings_.Raise();
    impl_->bpe.Finish();
    return std::move(impl_);
  }

 private:
  void ReadNormalizer(const json& value, const std::string& where) {
    const Fields f(value, where, &findings_);
    const std::string type = f.String("type").value_or("");
    if (type == "NFC") {
      impl_->nfc = true;
    } else if (type == "Sequence") {
      for (const json& inner : List(f, "normalizers")) {
        if (TypeOf(inner) == "NFC")
          impl_->nfc = true;
        else
          f.Wrong(fmt::format("normalizers holds {}, only NFC is supported", ShortText(inner)));
      }
    } else {
      f.Wrong(fmt::format("type is \"{}\", only NFC is supported", type));
    }
  }

  void ReadPreTokenizer(const json& value, const std::string& where, bool inside = false) {
    const Fields f(value, where, &findings_);
    const std::string type = f.String("type").value_or("");
    if (type == "Sequence" && !inside) {
      for (const json& inner : List(f, "pretokenizers")) ReadPreTokenizer(inner, where, true);
    } else if (byte_level_ && (type == "Split" || type == "ByteLevel")) {
      f.Wrong(fmt::format("a {} step after ByteLevel is not supported", type));
    } else if (type == "Split") {
      ReadSplit(f);
    } else if (type == "ByteLevel") {
      byte_level_ = true;
      const std::optional<bool> prefix = f.Bool("add_prefix_space");
      if (!prefix) f.Wrong("add_prefix_space is missing");
      SplitStep step{Pattern::Literal(""), SplitBehavior::isolated, false, prefix.value_or(false), false};
      if (f.Bool("use_regex").value_or(true)) {
        step.pattern = Pattern::Regex(kByteLevelRegex, where);
        step.splits = true;
      }
      if (step.splits || step.prefix_space) impl_->steps.push_back(std::move(step));
    } else {
      f.Wrong(fmt::format("type is \"{}\", only Sequence, Split and ByteLevel are supported", type));
    }
  }

  void ReadSplit(const Fields& f) {
    const Fields pattern = f.Object("pattern");
    const std::optional<std::string> regex = pattern.String("Regex"), literal = pattern.String("String");
    const std::optional<SplitBehavior> behavior = Behavior(f.String("behavior").value_or(""));
    if (!behavior)
      f.Wrong(fmt::format("behavior is {}, which is not a behaviour of Split",
                          f.Find("behavior") ? ShortText(*f.Find("behavior")) : "missing"));
    if (regex.has_value() == literal.has_value()) return f.Wrong("pattern needs either a Regex or a String");
    if (literal && literal->empty()) return f.Wrong("pattern is an empty String");
    if (!behavior) return;
    try {
      SplitStep step{regex ? Pattern::Regex(*regex, f.where() + "pattern") : Pattern::Literal(*literal),
                     *behavior, f.Bool("invert").value_or(false)};
      impl_->steps.push_back(std::move(step));
    } catch (const vt::InputError& error) {
      findings_.wrong.emplace_back(error.what());
    }
  }

  static std::optional<SplitBehavior> Behavior(const std::string& name) {
    if (name == "Removed") return SplitBehavior::removed;
    if (name == "Isolated") return SplitBehavior::isolated;
    if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
    if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
    if (name == "Contiguous") return SplitBehavior::contiguous;
    return std::nullopt;
  }

  void OnlyByteLevel(const char* key, bool optional) {
    const json* value = top_.Find(key);
    if (value == nullptr && optional) return;
    if (value == nullptr) return top_.Wrong(fmt::format("{} is missing, only ByteLevel is supported", key));
    if (const std::string type = TypeOf(*value); type != "ByteLevel")
      top_.Wrong(fmt::format("{}.type is \"{}\", only ByteLevel is supported", key, type));
  }

  void ReadModel(const Fields& model) {
    if (const auto type = model.String("type"); type != "BPE")
      return model.Wrong(fmt::format("type is \"{}\", only BPE is supported", type.value_or("")));
    for (const char* key : {"unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const auto text = model.String(key); text && !text->empty())
        model.Wrong(fmt::format("{} is \"{}\", which is not supported", key, *text));
    for (const char* key : {"fuse_unk", "byte_fallback"})
      if (model.Bool(key).value_or(false))
        model.Wrong(fmt::format("{} is true, which is not supported", key));
    if (model.Number("dropout").value_or(0) != 0) model.Wrong("dropout is set, which is not supported");
    impl_->bpe.ignore_merges = model.Bool("ignore_merges").value_or(false);
    ReadVocab(model);
    ReadMerges(model);
  }

  void ReadVocab(const Fields& model) {
    const json* vocab = model.Find("vocab");
    if (vocab == nullptr || !vocab->is_object() || vocab->empty())
      return model.Wrong("vocab is missing, empty or not an object");
    impl_->bpe.vocab.reserve(vocab->size());
    std::vector<std::string> wrong;
    for (const auto& [token, id] : vocab->items()) {
      const int64_t i = IdOf(id);
      if (i < 0) {
        wrong.push_back(
            fmt::format("vocab gives {} the id {}, expected 0..{}", ShortText(token), ShortText(id), kMaxId));
      } else if (!impl_->bytes_of.emplace(static_cast<int32_t>(i), RawBytes(token)).second) {
        wrong.push_back(fmt::format("vocab gives the id {} to two tokens, one is {}", i, ShortText(token)));
      } else {
        impl_->bpe.vocab.emplace(token, static_cast<int32_t>(i));
        impl_->size = std::max(impl_->size, i + 1);
      }
    }
    AddLimited(
        &findings_.wrong, wrong, [&](const std::string& line) { return model.where() + line; }, 10);
  }

  void ReadMerges(const Fields& model) {
    const json* merges = model.Find("merges");
    if (merges == nullptr || !merges->is_array() || merges->empty())
      return model.Wrong("merges is missing, empty or not a list");
    std::vector<std::string> wrong;
    for (size_t i = 0; i < merges->size(); ++i)
      if (const std::string why = AddMerge((*merges)[i], static_cast<int32_t>(i)); !why.empty())
        wrong.push_back(fmt::format("merges[{}] {} {}", i, ShortText((*merges)[i]), why));
    AddLimited(
        &findings_.wrong, wrong, [&](const std::string& line) { return model.where() + line; }, 10);
  }

  // Empty when all is well.
  std::string AddMerge(const json& merge, int32_t rank) {
    std::string left, right;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
        return "is not two pieces with one space between them";
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      return "is neither \"a b\" nor [\"a\", \"b\"]";
    }
    if (left.empty() || right.empty()) return "has an empty piece";
    const auto& vocab = impl_->bpe.vocab;
    const auto a = vocab.find(left), b = vocab.find(right), ab = vocab.find(left + right);
    if (a == vocab.end() || b == vocab.end() || ab == vocab.end())
      return "names a piece that is not in vocab";
    if (!impl_->bpe.AddMerge(a->second, b->second, rank, ab->second)) return "is there twice";
    return {};
  }

  void ReadAdded() {
    for (const json& value : List(top_, "added_tokens")) {
      const Fields f(value, top_.where() + "added_tokens: ", &findings_);
      const std::string content = f.String("content").value_or("");
      const json* id = f.Find("id");
      const int64_t i = id != nullptr ? IdOf(*id) : -1;
      if (content.empty() || i < 0) {
        f.Wrong(fmt::format("{} needs a content and an id of 0..{}", ShortText(value), kMaxId));
        continue;
      }
      for (const char* key : {"lstrip", "rstrip", "single_word"})
        if (f.Bool(key).value_or(false))
          f.Wrong(fmt::format("{} of {} is true, which is not supported", key, ShortText(content)));
      AddToken(f, content, static_cast<int32_t>(i));
    }
  }

  void AddToken(const Fields& f, const std::string& content, int32_t id) {
    const auto& vocab = impl_->bpe.vocab;
    const auto known = vocab.find(content);
    const auto taken = impl_->bytes_of.find(id);
    if (known != vocab.end() ? known->second != id : taken != impl_->bytes_of.end())
      return f.Wrong(fmt::format("{} has the id {}, which vocab or another added token contradicts",
                                 ShortText(content), id));
    impl_->bytes_of[id] = content;
    impl_->size = std::max<int64_t>(impl_->size, id + int64_t{1});
    // normalized: absent means the opposite of special, as the library that writes these files has it.
    const bool after = f.Bool("normalized").value_or(!f.Bool("special").value_or(false));
    const std::string looked_for = after && impl_->nfc ? ComposeNfc(content) : content;
    (after ? impl_->normalized : impl_->raw).Add(looked_for, id);
  }

  // The bytes a vocabulary entry stands for; one that is not spelled in the byte alphabet stands for itself.
  static std::string RawBytes(const std::string& token) {
    std::string bytes;
    for (size_t i = 0; i < token.size();) {
      const Utf8Step step = NextUtf8(std::string_view(token).substr(i));
      const int byte = step.valid ? ByteOfCharacter(step.code) : -1;
      if (byte < 0) return token;
      bytes.push_back(static_cast<char>(byte));
      i += step.bytes;
    }
    return bytes;
  }

  static int64_t IdOf(const json& id) {
    if (!id.is_number_integer() ||
        (id.is_number_unsigned() && id.get<uint64_t>() > static_cast<uint64_t>(kMaxId)))
      return -1;
    return id.get<int64_t>() <= kMaxId ? id.get<int64_t>() : -1;
  }

  static std::string TypeOf(const json& value) {
    const auto it = value.is_object() ? value.find("type") : value.end();
    return it != value.end() && it->is_string() ? it->get<std::string>() : "";
  }

  const json& List(const Fields& f, const char* key) {
    static const json empty = json::array();
    const json* list = f.Find(key);
    if (list != nullptr && list->is_array()) return *list;
    if (list != nullptr) f.Wrong(fmt::format("{} is {}, expected a list", key, ShortText(*list)));
    return empty;
  }

  Findings findings_;
  Fields top_;
  bool byte_level_ = false;
  std::unique_ptr<Tokenizer::Impl> impl_ = std::make_unique<Tokenizer::Impl>();
};

}  // namespace

std::unique_ptr<Tokenizer::Impl> ReadTokenizer(std::string_view text, const std::string& name) {
  const json top = ParseJson(text, name);
  return Reader(top, name).Read();
}

}  // namespace warmleg::model
