#include "harness/run/protocol.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace warmleg::run {

namespace {

using nlohmann::json;

// ---- which fields a message has: one list, walked by the writer and by the strict reader

template <class F>
void Fields(F& f, LoadRequest& m) {
  f("target", m.target), f("draft", m.draft), f("device", m.device), f("capacity", m.capacity);
  f("weights", m.weights), f("seed", m.seed), f("committed_per_round", m.committed_per_round);
}
template <class F>
void Fields(F& f, decode::Sampling& m) {
  f("temperature", m.temperature), f("top_k", m.top_k), f("top_p", m.top_p), f("seed", m.seed);
  f("request", m.request);
}
template <class F>
void Fields(F& f, WarmRequest& m) {
  f("prompts", m.prompts), f("draft_arm", m.draft_arm), f("block_size", m.block_size);
  f("precision", m.precision), f("sampling", m.sampling), f("max_new_tokens", m.max_new_tokens);
}
template <class F>
void Fields(F& f, LegRequest& m) {
  f("process", m.process), f("index", m.index), f("arm", m.arm), f("prompt_ids", m.prompt_ids),
      f("max_new_tokens", m.max_new_tokens);
  f("block_size", m.block_size), f("ignore_eos", m.ignore_eos), f("precision", m.precision);
  f("sampling", m.sampling), f("repeats", m.repeats);
  f("clock_interval_ms", m.clock_interval_ms), f("margins", m.margins);
}
template <class F>
void Fields(F& f, SentinelRequest& m) {
  f("prompt_ids", m.prompt_ids), f("steps", m.steps), f("seconds", m.seconds);
}
template <class F>
void Fields(F& f, RoofRequest& m) {
  f("bytes", m.bytes);
}
template <class F>
void Fields(F&, QuitRequest&) {}
template <class F>
void Fields(F& f, ProgressReply& m) {
  f("what", m.what), f("done_bytes", m.done_bytes), f("total_bytes", m.total_bytes);
}
template <class F>
void Fields(F& f, LibraryReply& m) {
  f("path", m.path), f("soname", m.soname), f("build_id", m.build_id);
}
template <class F>
void Fields(F& f, DeviceReply& m) {
  f("device", m.device), f("name", m.name), f("gfx", m.gfx), f("pci", m.pci);
  f("compute_units", m.compute_units), f("integrated", m.integrated), f("memory_bytes", m.memory_bytes);
  f("peak_gb_s", m.peak_gb_s), f("top_clock_mhz", m.top_clock_mhz), f("built_with", m.built_with);
  f("runtime", m.runtime), f("driver", m.driver), f("memory_kind", m.memory_kind);
}
template <class F>
void Fields(F& f, LoadedReply& m) {
  f("load_s", m.load_s), f("target_hash", m.target_hash), f("draft_hash", m.draft_hash);
  f("target_bytes", m.target_bytes), f("draft_bytes", m.draft_bytes), f("dtype", m.dtype);
  f("vocab", m.vocab), f("draft_block_size", m.draft_block_size), f("can_capture", m.can_capture);
  f("device", m.device), f("libraries", m.libraries);
}
template <class F>
void Fields(F& f, SpanReply& m) {
  f("start", m.start), f("prefill_end", m.prefill_end), f("end", m.end);
}
template <class F>
void Fields(F& f, decode::Counters& m) {
  f("rounds", m.rounds), f("drafted", m.drafted), f("accepted", m.accepted), f("bonus", m.bonus);
  f("committed", m.committed), f("stop_trimmed", m.stop_trimmed), f("budget_trimmed", m.budget_trimmed);
  f("prefill_made", m.prefill_made), f("output_tokens", m.output_tokens);
  f("rounds_with_accepted", m.rounds_with_accepted), f("accepted_at", m.accepted_at);
}
template <class F>
void Fields(F& f, decode::Times& m) {
  f("prefill_s", m.prefill_s), f("ttft_s", m.ttft_s), f("decode_s", m.decode_s), f("e2e_s", m.e2e_s);
  f("draft_s", m.draft_s), f("select_s", m.select_s), f("verify_s", m.verify_s), f("commit_s", m.commit_s);
  f("host_s", m.host_s), f("unaccounted_s", m.unaccounted_s);
}
template <class F>
void Fields(F& f, vt::OpTotals& m) {
  f("op", m.op), f("device", m.device), f("asked", m.asked), f("provider", m.provider);
  f("calls", m.calls), f("fallbacks", m.fallbacks), f("fallback_reason", m.fallback_reason),
      f("bytes", m.bytes);
}
template <class F>
void Fields(F& f, ClockReply& m) {
  f("at", m.at), f("mhz", m.mhz);
}
template <class F>
void Fields(F& f, LegReply& m) {
  f("index", m.index), f("counters", m.counters), f("times", m.times), f("output_ids", m.output_ids);
  f("repeats_equal", m.repeats_equal), f("finish", m.finish), f("margins", m.margins);
  f("graph", m.graph), f("graph_replay_mismatch", m.graph_replay_mismatch);
  f("graph_refusal", m.graph_refusal);
  f("first_use", m.first_use), f("spans", m.spans), f("clock", m.clock);
  f("providers", m.providers);
  f("mem_available_bytes", m.mem_available_bytes), f("mem_cached_bytes", m.mem_cached_bytes);
  f("peak_rss_bytes", m.peak_rss_bytes), f("read_bytes_per_round", m.read_bytes_per_round);
}
template <class F>
void Fields(F& f, SentinelReply& m) {
  f("seconds", m.seconds), f("steps", m.steps), f("bytes", m.bytes);
}
template <class F>
void Fields(F& f, DoneReply& m) {
  f("value", m.value), f("peak_rss_bytes", m.peak_rss_bytes);
}
template <class F>
void Fields(F& f, FailedReply& m) {
  f("kind", m.kind), f("text", m.text);
}

template <class T>
constexpr const char* kType = nullptr;
template <>
constexpr const char* kType<LoadRequest> = "load";
template <>
constexpr const char* kType<WarmRequest> = "warm";
template <>
constexpr const char* kType<LegRequest> = "leg";
template <>
constexpr const char* kType<SentinelRequest> = "sentinel";
template <>
constexpr const char* kType<RoofRequest> = "roof";
template <>
constexpr const char* kType<QuitRequest> = "quit";
template <>
constexpr const char* kType<ProgressReply> = "progress";
template <>
constexpr const char* kType<LoadedReply> = "loaded";
template <>
constexpr const char* kType<LegReply> = "leg";
template <>
constexpr const char* kType<SentinelReply> = "sentinel";
template <>
constexpr const char* kType<DoneReply> = "done";
template <>
constexpr const char* kType<FailedReply> = "failed";

template <class T>
struct IsSequence : std::false_type {};
template <class T>
struct IsSequence<std::vector<T>> : std::true_type {};
template <class T, size_t N>
struct IsSequence<std::array<T, N>> : std::true_type {};

class Writer {
 public:
  template <class T>
  void operator()(const char* name, T& value) {
    out_[name] = Value(value);
  }
  json Take() { return std::move(out_); }

  template <class T>
  static json Value(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      if constexpr (std::is_floating_point_v<T>) {
        if (!std::isfinite(value)) throw ProtocolError("a number of a message is not finite");
      }
      return value;
    } else if constexpr (std::is_same_v<T, vt::Device>) {
      return vt::ToString(value);
    } else if constexpr (IsSequence<T>::value) {
      json list = json::array();
      for (auto& item : value) list.push_back(Value(item));
      return list;
    } else {
      Writer inner;
      Fields(inner, value);
      return inner.out_.is_null() ? json::object() : inner.Take();
    }
  }

 private:
  json out_;
};

class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) throw ProtocolError(where_ + ": not an object");
  }
  template <class T>
  void operator()(const char* name, T& value) {
    const auto it = object_.find(name);
    if (it == object_.end()) throw ProtocolError(fmt::format("{}: no field '{}'", where_, name));
    ++seen_;
    Get(*it, fmt::format("{}.{}", where_, name), value);
  }
  void Finish() const {
    if (seen_ != object_.size()) throw ProtocolError(where_ + ": unknown field");
  }

 private:
  template <class T>
  static void Get(const json& j, const std::string& where, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!j.is_boolean()) throw ProtocolError(where + ": not true or false");
      value = j.template get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      GetInteger(j, where, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!j.is_number()) throw ProtocolError(where + ": not a number");
      value = j.template get<T>();
      if (!std::isfinite(value)) throw ProtocolError(where + ": not finite");
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!j.is_string()) throw ProtocolError(where + ": not a string");
      value = j.template get<std::string>();
    } else if constexpr (std::is_same_v<T, vt::Device>) {
      std::string text;
      Get(j, where, text);
      value = vt::ParseDevice(text);
    } else if constexpr (IsSequence<T>::value) {
      GetSequence(j, where, value);
    } else {
      Reader inner(j, where);
      Fields(inner, value);
      inner.Finish();
    }
  }

  template <class T>
  static void GetInteger(const json& j, const std::string& where, T& value) {
    if (j.is_number_unsigned()) {
      const auto wide = j.get<uint64_t>();
      if (!std::in_range<T>(wide)) throw ProtocolError(where + ": out of range");
      value = static_cast<T>(wide);
    } else if (j.is_number_integer()) {
      const auto wide = j.get<int64_t>();
      if (!std::in_range<T>(wide)) throw ProtocolError(where + ": out of range");
      value = static_cast<T>(wide);
    } else {
      throw ProtocolError(where + ": not an integer");
    }
  }

  template <class T>
  static void GetSequence(const json& j, const std::string& where, T& value) {
    if (!j.is_array()) throw ProtocolError(where + ": not a list");
    if constexpr (requires { value.resize(size_t{}); }) {
      value.resize(j.size());
    } else if (j.size() != value.size()) {
      throw ProtocolError(fmt::format("{}: {} entries, expected {}", where, j.size(), value.size()));
    }
    for (size_t i = 0; i < value.size(); ++i) Get(j[i], fmt::format("{}[{}]", where, i), value[i]);
  }

  const json& object_;
  std::string where_;
  size_t seen_ = 0;
};

template <class Variant>
std::string EncodeAny(const Variant& message) {
  const json frame = std::visit(
      []<class T>(const T& m) {
        T copy = m;
        return json{{"type", kType<T>}, {"body", Writer::Value(copy)}};
      },
      message);
  const std::string text = frame.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kMaxFrameBytes) throw ProtocolError(fmt::format("a message of {} bytes", text.size()));
  std::string out(4, '\0');
  for (size_t i = 0; i < 4; ++i) out[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return out + text;
}

template <class Variant, size_t I = 0>
Variant DecodeBody(const std::string& type, const json& body) {
  if constexpr (I == std::variant_size_v<Variant>) {
    throw ProtocolError(fmt::format("unknown message '{}'", type));
  } else {
    using T = std::variant_alternative_t<I, Variant>;
    if (type != kType<T>) return DecodeBody<Variant, I + 1>(type, body);
    T message;
    Reader reader(body, type);
    Fields(reader, message);
    reader.Finish();
    return message;
  }
}

template <class Variant>
Variant DecodeAny(std::string_view text) {
  json frame;
  try {
    frame = json::parse(text);
  } catch (const json::exception& e) {
    throw ProtocolError(fmt::format("not JSON: {}", e.what()));
  }
  const bool shape = frame.is_object() && frame.size() == 2 && frame.contains("type") &&
                     frame.contains("body") && frame["type"].is_string();
  if (!shape) throw ProtocolError("not a {type, body} message");
  return DecodeBody<Variant>(frame["type"].get<std::string>(), frame["body"]);
}

}  // namespace

std::string Encode(const Request& request) { return EncodeAny(request); }
std::string Encode(const Reply& reply) { return EncodeAny(reply); }
Request DecodeRequest(std::string_view text) { return DecodeAny<Request>(text); }
Reply DecodeReply(std::string_view text) { return DecodeAny<Reply>(text); }

std::optional<std::string> FrameReader::Next() {
  if (buffer_.size() < 4) return std::nullopt;
  size_t length = 0;
  for (size_t i = 0; i < 4; ++i) length |= size_t{static_cast<unsigned char>(buffer_[i])} << (8 * i);
  if (length == 0 || length > kMaxFrameBytes) {
    throw ProtocolError(fmt::format("a frame of {} bytes (allowed: 1 to {})", length, kMaxFrameBytes));
  }
  if (buffer_.size() < 4 + length) return std::nullopt;
  std::string frame = buffer_.substr(4, length);
  buffer_.erase(0, 4 + length);
  return frame;
}

}  // namespace warmleg::run
