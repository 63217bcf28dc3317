#include "harness/scenario/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/record/sha256.h"
#include "harness/scenario/text_file.h"

namespace warmleg::scenario {
namespace {

using Defects = std::vector<std::string>;

// One object of the file. Each getter names a key once: it checks type and range, fills in the default,
// writes the normalised value, and makes the key known.
class Section {
 public:
  Section(const Json& json, std::string path, Defects& defects)
      : json_(json), path_(std::move(path)), defects_(defects) {
    if (!json_.is_object()) Wrong("", json_, "an object");
  }

  Json normalised = Json::object();

  std::string Text(const char* key, const char* fallback) {
    const Json* v = Find(key, fallback != nullptr);
    std::string value = fallback ? fallback : "";
    if (v && (!v->is_string() || v->get_ref<const std::string&>().empty()))
      Wrong(key, *v, "text that is not empty");
    else if (v)
      value = v->get<std::string>();
    normalised[key] = value;
    return value;
  }

  std::string OneOf(const char* key, const char* fallback, const std::vector<std::string>& allowed) {
    const Json* v = Find(key, fallback != nullptr);
    std::string value = fallback ? fallback : "";
    const auto is_allowed = [&](const std::string& text) {
      return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
    };
    if (v && (!v->is_string() || !is_allowed(v->get_ref<const std::string&>())))
      Wrong(key, *v, fmt::format("one of {}", fmt::join(allowed, ", ")));
    else if (v)
      value = v->get<std::string>();
    normalised[key] = value;
    return value;
  }

  bool Flag(const char* key, bool fallback) {
    const Json* v = Find(key, true);
    if (v && !v->is_boolean()) Wrong(key, *v, "true or false");
    const bool value = v && v->is_boolean() ? v->get<bool>() : fallback;
    normalised[key] = value;
    return value;
  }

  int64_t Int(const char* key, std::optional<int64_t> fallback, int64_t low, int64_t high) {
    const Json* v = Find(key, fallback.has_value());
    int64_t value = fallback.value_or(low);
    const bool whole = v && v->is_number_integer() &&
                       !(v->is_number_unsigned() && v->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
    if (v && (!whole || v->get<int64_t>() < low || v->get<int64_t>() > high))
      Wrong(key, *v, fmt::format("an integer of {} to {}", low, high));
    else if (v)
      value = v->get<int64_t>();
    normalised[key] = value;
    return value;
  }

  double Real(const char* key, double fallback, double low, double high) {
    const Json* v = Find(key, true);
    double value = fallback;
    if (v && (!v->is_number() || v->get<double>() < low || v->get<double>() > high))
      Wrong(key, *v, fmt::format("a number of {} to {}", low, high));
    else if (v)
      value = v->get<double>();
    normalised[key] = value;
    return value;
  }

  const Json* Find(const char* key, bool optional) {
    known_.emplace_back(key);
    if (!json_.is_object()) return nullptr;
    if (auto it = json_.find(key); it != json_.end()) return &*it;
    if (!optional) defects_.push_back(fmt::format("{} is missing", At(key)));
    return nullptr;
  }

  void Wrong(const std::string& key, const Json& got, std::string_view expected) {
    std::string shown = got.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    defects_.push_back(fmt::format("{} is {}, expected {}", key.empty() ? path_ : At(key), shown, expected));
  }

  // Last: what was never asked for is not known.
  void RefuseUnknown() const {
    if (!json_.is_object()) return;
    for (const auto& item : json_.items())
      if (std::find(known_.begin(), known_.end(), item.key()) == known_.end())
        defects_.push_back(fmt::format("unknown key \"{}\"{}, nearest known key \"{}\"", item.key(),
                                       path_ == "scenario" ? "" : " in " + path_,
                                       NearestKey(item.key(), known_)));
  }

 private:
  std::string At(const std::string& key) const { return path_ == "scenario" ? key : path_ + "." + key; }

  const Json& json_;
  std::string path_;
  Defects& defects_;
  std::vector<std::string> known_;
};

const Json& Child(Section& parent, const char* key, bool optional) {
  static const Json empty = Json::object();
  const Json* child = parent.Find(key, optional);
  return child ? *child : empty;
}

void ReadGeneration(Section& root, Generation& g, Defects& defects) {
  Section s(Child(root, "generation", false), "generation", defects);
  g.max_new_tokens = s.Int("max_new_tokens", std::nullopt, 0, 1'000'000);
  g.ignore_eos = s.Flag("ignore_eos", false);
  g.temperature = s.Real("temperature", 0, 0, 100);
  g.top_k = s.Int("top_k", 0, 0, 10'000'000);
  g.top_p = s.Real("top_p", 1, 0, 1);
  g.seed = s.Int("seed", 1, 0, std::numeric_limits<int64_t>::max());
  g.precision = s.OneOf("precision", "exact", {"exact", "bf16"});
  s.RefuseUnknown();
  root.normalised["generation"] = s.normalised;
}

void ReadArms(Section& root, Scenario& out, Defects& defects) {
  const Json& arms = Child(root, "arms", false);
  Json normalised = Json::array();
  std::vector<std::string> names;
  for (size_t i = 0; arms.is_array() && i < arms.size(); ++i) {
    Section s(arms[i], fmt::format("arms.{}", i), defects);
    const std::string name = s.OneOf("name", nullptr, {"plain", "dflash2"});
    if (name != "plain") {
      // 64 rows is the widest block that any device verifies at once (vt::kMaxRows).
      out.block_size = s.Int("block_size", 0, 0, 64);
      out.drafting_arm = name.empty() ? out.drafting_arm : name;
    }
    s.RefuseUnknown();
    names.push_back(name);
    normalised.push_back(s.normalised);
  }
  const bool two = names.size() == 2 && std::count(names.begin(), names.end(), "plain") == 1;
  if (!two && root.Find("arms", true))
    defects.push_back(fmt::format("arms has [{}], expected exactly two: plain and one drafting arm (dflash2)",
                                  fmt::join(names, ", ")));
  root.normalised["arms"] = normalised;
}

void ReadPlan(Section& root, Plan& p, Defects& defects) {
  Section s(Child(root, "plan", true), "plan", defects);
  p.processes = s.Int("processes", 4, 1, 64);
  p.pairs = s.Int("pairs", 8, 1, 10'000);
  p.warmup_pairs = s.Int("warmup_pairs", 1, 0, 100);
  p.min_leg_s = s.Real("min_leg_s", 0, 0, 3600);
  p.leg_timeout_s = s.Real("leg_timeout_s", 600, 0.001, 86400);
  s.RefuseUnknown();
  root.normalised["plan"] = s.normalised;
}

void ReadClocks(Section& root, Clocks& c, Defects& defects) {
  Section s(Child(root, "clocks", true), "clocks", defects);
  c.perf_level = s.OneOf("perf_level", "keep", {"keep", "high"});
  c.interval_ms = s.Int("interval_ms", 100, 10, 10'000);
  s.RefuseUnknown();
  root.normalised["clocks"] = s.normalised;
}

// Made-up acceptance needs a greedy round: what a sampled one accepts is part of its arithmetic.
void ReadSimulate(Section& root, Scenario& out, Defects& defects) {
  const Json* simulate = root.Find("simulate", true);
  if (!simulate) return;
  Section s(*simulate, "simulate", defects);
  // As many rows as the widest block verifies.
  const double committed = s.Real("committed_per_round", 0, 1, 64);
  if (simulate->is_object() && !simulate->contains("committed_per_round"))
    defects.emplace_back("simulate.committed_per_round is missing");
  s.RefuseUnknown();
  if (out.generation.temperature != 0)
    defects.emplace_back(
        "simulate needs generation.temperature 0: accepted counts are drawn for greedy rounds");
  if (out.block_size > 0 && committed > static_cast<double>(out.block_size))
    root.Wrong("simulate.committed_per_round", committed,
               fmt::format("at most the block_size {} of the drafting arm", out.block_size));
  out.committed_per_round = committed;
  root.normalised["simulate"] = s.normalised;
}

bool IsDevice(std::string_view text) {
  if (text == "auto" || text == "cpu") return true;
  for (const std::string_view kind : {"rocm:", "sim:", "cuda:"}) {
    if (text.substr(0, kind.size()) != kind) continue;
    const std::string_view index = text.substr(kind.size());
    return !index.empty() && index.size() < 4 &&
           std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

bool IsName(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Chat ReadPrompts(Section& root, Scenario& out, const std::filesystem::path& folder, Defects& defects) {
  Section s(Child(root, "prompts", false), "prompts", defects);
  out.prompts_file = folder / s.Text("file", nullptr);
  const std::string chat = s.OneOf("chat", "raw", {"raw", "qwen", "qwen-thinking"});
  s.RefuseUnknown();
  root.normalised["prompts"] = s.normalised;
  if (chat == "qwen") return Chat::qwen;
  return chat == "qwen-thinking" ? Chat::qwen_thinking : Chat::raw;
}

// Sets json at "a.b.1.c". Objects on the way are made when they are missing; lists are not grown.
void Apply(Json& json, const Override& set) {
  Json* at = &json;
  std::string_view rest = set.path;
  while (true) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string key(rest.substr(0, dot));
    if (at->is_array()) {
      size_t index = 0;
      auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (key.empty() || error != std::errc() || end != key.data() + key.size() || index >= at->size())
        throw vt::InputError(fmt::format("--set {}: \"{}\" is no index of a list of {} (0 to {})", set.path,
                                         key, at->size(), static_cast<int64_t>(at->size()) - 1));
      at = &(*at)[index];
    } else if (at->is_object() || at->is_null()) {
      if (key.empty()) throw vt::InputError(fmt::format("--set {}: an empty key in the path", set.path));
      at = &(*at)[key];
    } else {
      throw vt::InputError(
          fmt::format("--set {}: \"{}\" lies below a value that is neither object nor list", set.path, key));
    }
    if (dot == rest.size()) break;
    rest.remove_prefix(dot + 1);
  }
  try {
    *at = record::ParseStrict(set.value, "");
  } catch (const vt::InputError&) {
    *at = set.value;
  }
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view Name(Chat chat) {
  constexpr std::array<std::string_view, 3> names = {"raw", "qwen", "qwen-thinking"};
  return names[static_cast<size_t>(chat)];
}

std::string NearestKey(std::string_view key, const std::vector<std::string>& known) {
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return EditDistance(key, a) < EditDistance(key, b);
  });
  return nearest == known.end() ? "" : *nearest;
}

Override ParseOverride(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw vt::InputError(fmt::format("--set {}: expected key=value, such as plan.pairs=4", text));
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

Scenario FromText(std::string_view text, const std::filesystem::path& folder, std::string_view what,
                  const std::vector<Override>& overrides) {
  Json json = record::ParseStrict(text, what, true);
  if (!json.is_object()) throw vt::InputError(fmt::format("{}: a scenario is a JSON object", what));
  for (const Override& set : overrides) Apply(json, set);

  Defects defects;
  Scenario out;
  Section root(json, "scenario", defects);
  root.OneOf("schema", nullptr, {std::string(kSchema)});
  out.name = root.Text("name", nullptr);
  if (!IsName(out.name))
    root.Wrong("name", out.name, "letters, digits, '.', '_' and '-' (it names the result file)");
  out.demo = root.Flag("demo", false);
  out.device = root.Text("device", "auto");
  if (!IsDevice(out.device)) root.Wrong("device", out.device, "auto, cpu, rocm:N, sim:N or cuda:N");
  out.target = folder / root.Text("target", nullptr);
  out.draft = folder / root.Text("draft", nullptr);
  out.random_weights = root.OneOf("weights", "checkpoint", {"checkpoint", "random"}) == "random";
  out.chat = ReadPrompts(root, out, folder, defects);
  ReadGeneration(root, out.generation, defects);
  ReadArms(root, out, defects);
  ReadSimulate(root, out, defects);
  out.allow_degenerate = root.Flag("allow_degenerate", false);
  ReadPlan(root, out.plan, defects);
  ReadClocks(root, out.clocks, defects);
  root.RefuseUnknown();
  ThrowAll(defects, what);
  out.normalised = root.normalised;
  out.normalised["sha256"] = record::Sha256(root.normalised.dump());
  return out;
}

Scenario Load(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  return FromText(ReadText(file, "scenario"), file.parent_path(), file.string(), overrides);
}

}  // namespace warmleg::scenario
