#define PCRE2_CODE_UNIT_WIDTH 8

#include "harness/run/watch.h"

#include <fmt/core.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "backend/vt/error.h"
#include "harness/judge/clock_rules.h"
#include "harness/judge/policy.h"
#include "harness/run/fingerprint.h"
#include "harness/run/to_record.h"
#include "harness/run/watched_command.h"
#include "harness/telemetry/watcher.h"

namespace warmleg::run {

namespace {

using record::Code;
using record::Reason;

constexpr int64_t kSecondNs = 1'000'000'000;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
using Compiled = std::unique_ptr<pcre2_code, FreeCode>;

Compiled Compile(const RatePattern& rate) {
  int error = 0;
  PCRE2_SIZE at = 0;
  Compiled code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rate.pattern.data()), rate.pattern.size(),
                              PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &at, nullptr));
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    throw vt::InputError(
        fmt::format("--rate {}: {} at {}", rate.name, reinterpret_cast<const char*>(text.data()), at));
  }
  uint32_t groups = 0;
  pcre2_pattern_info(code.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
  if (groups == 0)
    throw vt::InputError(fmt::format("--rate {}: no group; put ( ) around the number", rate.name));
  return code;
}

// The first group of the first match as a number, in any locale.
std::optional<double> Find(const pcre2_code* code, const std::string& line) {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create_from_pattern(code, nullptr));
  if (pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(line.data()), line.size(), 0, 0, match.get(), nullptr) <
      2)
    return std::nullopt;
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.get());
  if (ends[2] == PCRE2_UNSET) return std::nullopt;
  double value = 0;
  const char* begin = line.data() + ends[2];
  const char* end = line.data() + ends[3];
  const auto [rest, error] = std::from_chars(begin, end, value);
  return error == std::errc() && rest == end && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Rates that the command printed.
class RateReader {
 public:
  explicit RateReader(const std::vector<RatePattern>& patterns) {
    for (const RatePattern& p : patterns) compiled_.emplace_back(p.name, Compile(p));
  }
  bool empty() const { return compiled_.empty(); }
  void Take(const std::string& line) {
    constexpr size_t kLine = 400;  // kept of a line
    for (const auto& [name, code] : compiled_)
      if (const auto value = Find(code.get(), line))
        found_[name] = {name, *value, false, line.substr(0, kLine), record::Json::object()};
  }
  std::vector<record::WatchRate> Rates() const {
    std::vector<record::WatchRate> rates;
    for (const auto& [name, rate] : found_) rates.push_back(rate);
    return rates;
  }

 private:
  std::vector<std::pair<std::string, Compiled>> compiled_;
  std::map<std::string, record::WatchRate> found_;
};

// Rules that a second decides; thirds and sample counts need the whole run.
const std::set<Code> kOfASecond = {Code::clock_low_under_load, Code::perf_level_changed,
                                   Code::power_cap_changed, Code::thermal_throttle, Code::hw_slowdown};

class Seconds {
 public:
  Seconds(telemetry::Watcher& watcher, const WatchRunOptions& options)
      : watcher_(watcher), options_(options) {}
  void Begin() { begin_ns_ = telemetry::MonotonicNs(); }
  int64_t begin_ns() const { return begin_ns_; }

  void UpTo(int64_t now_ns) {
    while (begin_ns_ + (std::ssize(all_) + 1) * kSecondNs <= now_ns) Add();
  }
  std::vector<record::WatchSecond> Take() { return std::move(all_); }

  // Codes by the seconds in which they were broken.
  std::map<Code, int64_t> Broken() const { return broken_; }
  const judge::ClockContext& context() const { return context_; }

 private:
  void Add() {
    const int64_t from = begin_ns_ + std::ssize(all_) * kSecondNs;
    const record::ClockWindow w = watcher_.WindowFor(from, from + kSecondNs, {});
    if (!context_.first_perf_level && !w.perf_levels.empty())
      context_.first_perf_level = w.perf_levels.front();
    if (!context_.first_power_cap_w && !w.power_caps_w.empty())
      context_.first_power_cap_w = w.power_caps_w.front();
    record::WatchSecond second;
    second.second = std::ssize(all_), second.samples = w.samples_all;
    second.sclk_mhz = w.sclk_mhz.p50, second.mclk_mhz = w.mclk_mhz.p50, second.power_w = w.power_w.p50;
    second.temp_c = w.temp_c.p50, second.busy_percent = w.busy_percent.p50;
    for (const Reason& r : judge::ClockReasons(w, context_)) {
      // A board whose load nobody can read is idle between somebody else's legs as often as not.
      if (!kOfASecond.contains(r.code) || (r.code == Code::clock_low_under_load && !w.busy_percent.p50))
        continue;
      ++broken_[r.code];
      second.rules.emplace_back(record::Name(r.code));
    }
    if (options_.on_second) options_.on_second(second);
    all_.push_back(std::move(second));
  }

  telemetry::Watcher& watcher_;
  const WatchRunOptions& options_;
  int64_t begin_ns_ = 0;
  std::vector<record::WatchSecond> all_;
  std::map<Code, int64_t> broken_;
  judge::ClockContext context_;
};

// Rules of the whole run, and those that single seconds broke.
std::vector<Reason> Opinion(const record::ClockWindow& window, const Seconds& seconds, int64_t all,
                            std::vector<Reason> warnings) {
  std::vector<Reason> reasons = judge::ClockReasons(window, seconds.context());
  for (const auto& [code, n] : seconds.Broken()) {
    const auto same = [c = code](const Reason& r) { return r.code == c; };
    std::erase_if(reasons, same);
    reasons.push_back(record::MakeReason(code, n, nullptr, fmt::format("in {} of {} seconds", n, all)));
  }
  // Load and pauses of a whole program climb and fall; only legs of one kind of work can be told to ramp or
  // drift.
  std::erase_if(reasons,
                [](const Reason& r) { return r.code == Code::ramping || r.code == Code::thermal_drift; });
  for (Reason& warning : warnings) reasons.push_back(std::move(warning));
  return reasons;
}

}  // namespace

RatePattern ParseRate(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw vt::InputError(
        fmt::format("--rate {}: wants NAME=PATTERN, such as decode_tok_s='([0-9.]+) tok/s'", text));
  RatePattern rate{text.substr(0, equals), text.substr(equals + 1)};
  Compile(rate);
  return rate;
}

WatchRun WatchCommand(const WatchRunOptions& options) {
  RateReader rates(options.rates);
  telemetry::Watcher watcher;
  telemetry::WatchOptions watch;
  watch.pci = options.device, watch.interval_ms = options.interval_ms;
  watcher.Start(watch);
  WatchRun run;
  record::Watch& out = run.record;
  out.created = UtcNow(), out.command = options.command;
  out.environment = HostFingerprint();
  telemetry::AddBoard(watcher.Fingerprint({}), out.environment);
  Seconds seconds(watcher, options);
  CommandOptions command;
  command.words = options.command, command.stdout_to_stderr = options.stdout_to_stderr;
  if (!rates.empty()) command.on_line = [&](const std::string& line) { rates.Take(line); };
  command.on_tick = [&](double) { seconds.UpTo(telemetry::MonotonicNs()); };
  seconds.Begin();
  const CommandEnd end = RunCommand(command);
  const int64_t end_ns = telemetry::MonotonicNs();
  seconds.UpTo(end_ns);
  out.clocks = watcher.WindowFor(seconds.begin_ns(), end_ns, {});
  out.clocks.begin_ns = seconds.begin_ns(), out.clocks.end_ns = end_ns;
  out.clocks.verified = judge::ClocksSeen(out.clocks);
  watcher.Describe(out.telemetry);
  std::vector<Reason> warnings = watcher.Warnings();
  watcher.Stop();
  out.seconds = seconds.Take();
  out.reasons = Opinion(out.clocks, seconds, std::ssize(out.seconds), std::move(warnings));
  out.rates = rates.Rates();
  out.duration_s = static_cast<double>(end_ns - seconds.begin_ns()) / 1e9;
  if (end.signal)
    out.signal = *end.signal;
  else
    out.exit_code = end.exit_code;
  run.exit_code = end.exit_code;
  return run;
}

}  // namespace warmleg::run
