#include "harness/run/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

namespace warmleg::run {

namespace {

constexpr size_t kWidth = 79;  // a line that is rewritten must not wrap

std::string RateText(const record::Leg& leg) {
  const auto& t = leg.times;
  if (!t.decode_s || *t.decode_s <= 0 || leg.counters.committed == 0) return "";
  return fmt::format("{:.4g} tok/s", static_cast<double>(leg.counters.committed) / *t.decode_s);
}

}  // namespace

Progress::Progress(std::FILE* out) : out_(out), terminal_(isatty(fileno(out)) == 1) {}

Progress::~Progress() { ClearPassing(); }

void Progress::ClearPassing() {
  if (passing_) fmt::print(out_, "\r\x1b[K");
  passing_ = false;
  std::fflush(out_);
}

void Progress::Passing(const std::string& text) {
  if (!terminal_) {
    fmt::print(out_, "{}\n", text);
    return;
  }
  fmt::print(out_, "\r\x1b[K{}", text.substr(0, kWidth));
  std::fflush(out_);
  passing_ = true;
}

void Progress::Line(const std::string& text) {
  ClearPassing();
  fmt::print(out_, "{}\n", text);
}

void Progress::Load(const ProgressReply& progress) {
  if (!terminal_ || progress.total_bytes == 0) return;  // a log needs no percentages
  const auto percent = static_cast<int>(100 * progress.done_bytes / progress.total_bytes);
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  Passing(fmt::format("loading {} {} %", progress.what, percent));
}

void Progress::Leg(const record::Leg& leg, const std::string& place) {
  std::string text = fmt::format("{}  {:<8} {:<20}", place, leg.arm, leg.prompt);
  text += fmt::format("  {:<4}", leg.state == record::State::warm ? "warm" : "cold");
  if (const std::string rate = RateText(leg); !rate.empty()) text += fmt::format("  {:>12}", rate);
  for (const record::Reason& reason : leg.reasons) text += fmt::format("  {}", record::Name(reason.code));
  const bool failed = record::HasSeverity(leg.reasons, record::Severity::invalid);
  if (failed) {
    Line(text);
  } else {
    Passing(text);
  }
}

}  // namespace warmleg::run
