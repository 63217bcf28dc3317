#include "harness/report/watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "harness/record/json.h"
#include "harness/report/numbers.h"

namespace warmleg::report {
namespace {

using record::Watch;

std::string Whole(const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : "-"; }

std::string Window(const record::ClockStat& s) {
  return s.p50 ? fmt::format("{}/{}/{}", Whole(s.p5), Whole(s.p50), Whole(s.p95)) : "not seen";
}

std::string Clocks(const Watch& w) {
  return fmt::format("SCLK p5/50/95 {} MHz  MCLK {} MHz  {} W  {} C  in {} samples",
                     Window(w.clocks.sclk_mhz), Whole(w.clocks.mclk_mhz.p50), Whole(w.clocks.power_w.p50),
                     Whole(w.clocks.temp_c.p50), w.clocks.samples_all);
}

std::string End(const Watch& w) {
  return w.signal ? fmt::format("signal {}", *w.signal) : fmt::format("exit {}", w.exit_code.value_or(0));
}

std::string Rules(const Watch& w) {
  std::set<std::string> codes;
  for (const record::Reason& r : w.reasons) codes.emplace(record::Name(r.code));
  return codes.empty() ? "none broken" : fmt::format("{}", fmt::join(codes, ", "));
}

// A word of the program, quoted where a shell would need it.
std::string Command(const Watch& w) {
  std::string text;
  for (const std::string& word : w.command) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$`|&;<>()*?") == std::string::npos;
    if (!text.empty()) text += ' ';
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
    text += '\'';
  }
  constexpr size_t kShown = 120;
  return text.size() > kShown ? text.substr(0, kShown) + "..." : text;
}

}  // namespace

std::string WatchLine(const record::WatchSecond& s) {
  std::string text =
      fmt::format("{:>5} s  SCLK {} MHz  MCLK {} MHz  {} W  {} C  busy {} %", s.second + 1, Whole(s.sclk_mhz),
                  Whole(s.mclk_mhz), Whole(s.power_w), Whole(s.temp_c), Whole(s.busy_percent));
  if (!s.rules.empty()) text += fmt::format("  ! {}", fmt::join(s.rules, ", "));
  return text + "\n";
}

std::string WatchText(const Watch& w) {
  std::string text =
      fmt::format("watched {:.1f} s, {}: {}\n{}\n", w.duration_s, End(w), Command(w), Clocks(w));
  for (const record::WatchRate& rate : w.rates)
    text += fmt::format("{} {} (unverified: the program's own word)\n", rate.name, Number(rate.value));
  for (const record::Reason& r : w.reasons)
    text += fmt::format("! {}: {}; {}\n", record::Name(r.code), r.text, r.remedy);
  if (w.reasons.empty()) text += "no clock rule was broken\n";
  return text;
}

std::string BesideText(const std::vector<Beside>& beside) {
  if (beside.empty()) return {};
  std::string text = "\nbeside, unverified: watched programs, in no verdict\n";
  for (const Beside& b : beside) {
    text += fmt::format("  {:<10} {}: {} ({}, {:.1f} s)\n", b.side, b.file, Command(b.watch), End(b.watch),
                        b.watch.duration_s);
    for (const record::WatchRate& rate : b.watch.rates)
      text += fmt::format("             {} {}  unverified\n", rate.name, Number(rate.value));
    text += fmt::format("             {}\n             rules: {}\n", Clocks(b.watch), Rules(b.watch));
  }
  return text;
}

std::string BesideMarkdown(const std::vector<Beside>& beside) {
  if (beside.empty()) return {};
  std::string text =
      "\nBeside, unverified: watched programs, in no verdict\n\n| side | program | rates (unverified) | SCLK "
      "p5/50/95 MHz | rules |\n"
      "|---|---|---|---|---|\n";
  for (const Beside& b : beside) {
    std::vector<std::string> rates;
    for (const record::WatchRate& rate : b.watch.rates)
      rates.push_back(fmt::format("{} {}", rate.name, Number(rate.value)));
    std::string command;
    for (const char c : Command(b.watch)) {
      if (c == '|') command += '\\';   // would end the cell
      command += c == '`' ? '\'' : c;  // would end the code
    }
    text += fmt::format("| {} | `{}` ({}) | {} | {} | {} |\n", b.side, command, End(b.watch),
                        fmt::join(rates, ", "), Window(b.watch.clocks.sclk_mhz), Rules(b.watch));
  }
  return text;
}

record::Json BesideJson(const std::vector<Beside>& beside) {
  record::Json list = record::Json::array();
  for (const Beside& b : beside) {
    record::Json json = {{"side", b.side}, {"file", b.file}, {"verdict", "unverified"}};
    const record::Json watch = record::ToJson(b.watch);
    for (const char* field : {"command", "exit_code", "signal", "duration_s", "rates", "reasons", "clocks"})
      json[field] = watch.at(field);
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace warmleg::report
