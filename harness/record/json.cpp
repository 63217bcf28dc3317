#include "harness/record/json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "backend/vt/error.h"
#include "harness/record/fields.h"

namespace warmleg::record {
namespace {

constexpr std::array<std::string_view, 4> kVerdicts = {"verified", "unverified", "simulated", "invalid"};
constexpr int64_t kExact = int64_t{1} << 53;  // above it a double (so most JSON readers) loses integers

struct FieldWriter;
struct FieldReader;

template <class T>
concept Record = requires(FieldWriter& io, const T& t) {
  Fields(io, t);
};

// Paths of numbers that were not finite are collected in `not_finite`.
struct Out {
  std::vector<std::string>& not_finite;

  Json operator()(bool v, const std::string&) { return v; }
  Json operator()(const std::string& v, const std::string&) { return v; }
  Json operator()(const Json& v, const std::string& path) { return CheckFinite(v, path); }
  Json operator()(Code v, const std::string&) { return std::string(Name(v)); }
  Json operator()(State v, const std::string&) { return v == State::warm ? "warm" : "cold"; }
  Json operator()(Verdict v, const std::string&) { return std::string(Name(v)); }
  Json operator()(int64_t v, const std::string&) {
    if (v > kExact || v < -kExact) return fmt::format("{}", v);
    return v;
  }
  Json operator()(double v, const std::string& path) {
    if (std::isfinite(v)) return v;
    not_finite.push_back(path);
    return nullptr;
  }
  template <class T>
  Json operator()(const std::optional<T>& v, const std::string& path) {
    if (!v) return nullptr;
    return (*this)(*v, path);
  }
  template <class T>
  Json operator()(const std::vector<T>& v, const std::string& path) {
    return List(v, path);
  }
  Json operator()(const std::array<double, 2>& v, const std::string& path) { return List(v, path); }
  template <class T>
  Json operator()(const std::map<std::string, T>& v, const std::string& path) {
    Json json = Json::object();
    for (const auto& [key, value] : v) json[key] = (*this)(value, path + "." + key);
    return json;
  }
  template <Record T>
  Json operator()(const T& v, const std::string& path);

  template <class L>
  Json List(const L& v, const std::string& path) {
    Json json = Json::array();
    size_t i = 0;
    for (const auto& value : v) json.push_back((*this)(value, fmt::format("{}[{}]", path, i++)));
    return json;
  }

  // Values we pass through (scenario echo, unknown fields) obey the same rule.
  Json CheckFinite(const Json& v, const std::string& path) {
    if (v.is_number_float()) return (*this)(v.get<double>(), path);
    if (!v.is_structured()) return v;
    Json copy = v;
    for (auto it = copy.begin(); it != copy.end(); ++it)
      *it = CheckFinite(*it, v.is_object() ? path + "." + it.key() : path + "[]");
    return copy;
  }
};

struct FieldWriter {
  Out& out;
  Json& json;
  const std::string& path;

  template <class T>
  void operator()(const char* name, const T& v) {
    json[name] = out(v, path.empty() ? name : path + "." + name);
  }
  template <class T>
  void May(const char* name, const T& v) {
    (*this)(name, v);
  }
};

template <Record T>
Json Out::operator()(const T& v, const std::string& path) {
  Json json = Json::object();
  FieldWriter writer{*this, json, path};
  Fields(writer, v);
  for (const auto& [key, value] : v.unknown.items()) json[key] = CheckFinite(value, path + "." + key);
  return json;
}

// Collects every defect with its path; the caller raises once.
struct In {
  std::vector<std::string>& defects;

  void Wrong(const std::string& path, const char* expected, const Json& got) {
    std::string shown = got.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    defects.push_back(fmt::format("{} is {}, expected {}", path, shown, expected));
  }

  void operator()(const Json& j, bool& v, const std::string& path) {
    if (j.is_boolean())
      v = j.get<bool>();
    else
      Wrong(path, "true or false", j);
  }
  void operator()(const Json& j, std::string& v, const std::string& path) {
    if (j.is_string())
      v = j.get<std::string>();
    else
      Wrong(path, "a string", j);
  }
  void operator()(const Json& j, Json& v, const std::string&) { v = j; }
  void operator()(const Json& j, int64_t& v, const std::string& path) {
    if (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      Wrong(path, "a 64-bit integer", j);
    else if (j.is_number_integer())
      v = j.get<int64_t>();
    else if (!j.is_string() || !FromDigits(j.get_ref<const std::string&>(), v))
      Wrong(path, "an integer", j);
  }
  static bool FromDigits(const std::string& s, int64_t& v) {
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    return !s.empty() && error == std::errc() && end == s.data() + s.size();
  }
  void operator()(const Json& j, double& v, const std::string& path) {
    if (j.is_number())
      v = j.get<double>();
    else
      Wrong(path, "a number", j);
  }
  void operator()(const Json& j, Code& v, const std::string& path) {
    auto code = j.is_string() ? CodeFromName(j.get_ref<const std::string&>()) : std::nullopt;
    if (code)
      v = *code;
    else
      Wrong(path, "a known reason code", j);
  }
  void operator()(const Json& j, State& v, const std::string& path) {
    if (j == "warm" || j == "cold")
      v = j == "warm" ? State::warm : State::cold;
    else
      Wrong(path, "cold or warm", j);
  }
  void operator()(const Json& j, Verdict& v, const std::string& path) {
    for (size_t i = 0; i < kVerdicts.size(); ++i)
      if (j == kVerdicts[i]) return void(v = static_cast<Verdict>(i));
    Wrong(path, "verified, unverified, simulated or invalid", j);
  }
  template <class T>
  void operator()(const Json& j, std::optional<T>& v, const std::string& path) {
    v.reset();
    if (j.is_null()) return;
    (*this)(j, v.emplace(), path);
  }
  template <class T>
  void operator()(const Json& j, std::vector<T>& v, const std::string& path) {
    v.clear();
    if (!j.is_array()) return Wrong(path, "a list", j);
    v.resize(j.size());
    for (size_t i = 0; i < v.size(); ++i) (*this)(j[i], v[i], fmt::format("{}[{}]", path, i));
  }
  void operator()(const Json& j, std::array<double, 2>& v, const std::string& path) {
    if (!j.is_array() || j.size() != 2) return Wrong(path, "a list of two numbers", j);
    for (size_t i = 0; i < 2; ++i) (*this)(j[i], v[i], fmt::format("{}[{}]", path, i));
  }
  template <class T>
  void operator()(const Json& j, std::map<std::string, T>& v, const std::string& path) {
    v.clear();
    if (!j.is_object()) return Wrong(path, "an object", j);
    for (const auto& [key, value] : j.items()) (*this)(value, v[key], path + "." + key);
  }
  template <Record T>
  void operator()(const Json& j, T& v, const std::string& path);
};

struct FieldReader {
  In& in;
  const Json& json;
  const std::string& path;
  std::set<std::string, std::less<>> known = {};

  std::string At(const char* name) const { return path.empty() ? name : path + "." + name; }

  template <class T>
  void operator()(const char* name, T& v) {
    if (!json.contains(name)) in.defects.push_back(At(name) + " is missing");
    May(name, v);
  }
  template <class T>
  void May(const char* name, T& v) {
    known.insert(name);
    if (auto it = json.find(name); it != json.end()) in(*it, v, At(name));
  }
};

template <Record T>
void In::operator()(const Json& j, T& v, const std::string& path) {
  if (!j.is_object()) return Wrong(path.empty() ? "the document" : path, "an object", j);
  FieldReader reader{*this, j, path};
  Fields(reader, v);
  v.unknown = Json::object();
  for (const auto& [key, value] : j.items())
    if (!reader.known.contains(key)) v.unknown[key] = value;
}

void Raise(const std::vector<std::string>& defects, std::string_view what) {
  if (defects.empty()) return;
  constexpr size_t shown = 20;  // a file of another kind has hundreds
  std::string message = fmt::format("{}: ", what);
  for (size_t i = 0; i < std::min(defects.size(), shown); ++i) message += (i ? "; " : "") + defects[i];
  if (defects.size() > shown) message += fmt::format("; and {} more", defects.size() - shown);
  throw vt::InputError(message);
}

}  // namespace

std::string_view Name(Verdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

template <class T>
Json ToJson(const T& record) {
  std::vector<std::string> not_finite;
  Out out{not_finite};
  Json json = out(record, "");
  if constexpr (std::is_same_v<T, Result>) {
    for (const std::string& path : not_finite) {
      std::vector<std::string> none;
      json["warnings"].push_back(Out{none}(MakeReason(Code::not_finite, nullptr, nullptr, path), ""));
    }
  }
  return json;
}

template <class T>
T FromJson(const Json& json, std::string_view what) {
  std::vector<std::string> defects;
  T record;
  In{defects}(json, record, "");
  Raise(defects, what);
  return record;
}

#define WARMLEG_RECORD(T)         \
  template Json ToJson(const T&); \
  template T FromJson(const Json&, std::string_view);
WARMLEG_RECORD(Reason)
WARMLEG_RECORD(ClockWindow)
WARMLEG_RECORD(Counters)
WARMLEG_RECORD(Times)
WARMLEG_RECORD(Rates)
WARMLEG_RECORD(Provider)
WARMLEG_RECORD(Divergence)
WARMLEG_RECORD(Leg)
WARMLEG_RECORD(Workload)
WARMLEG_RECORD(Gpu)
WARMLEG_RECORD(Rocm)
WARMLEG_RECORD(Environment)
WARMLEG_RECORD(Telemetry)
WARMLEG_RECORD(Process)
WARMLEG_RECORD(Metric)
WARMLEG_RECORD(Speedup)
WARMLEG_RECORD(Speedups)
WARMLEG_RECORD(Result)
WARMLEG_RECORD(Watch)
#undef WARMLEG_RECORD

std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace warmleg::record
