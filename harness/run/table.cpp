#include "harness/run/table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "harness/judge/campaign.h"
#include "harness/judge/stats.h"
#include "harness/record/computed_on.h"
#include "harness/record/find_metric.h"

namespace warmleg::run {

namespace {

using record::Code;
using record::Leg;
using record::Result;
using Segments = std::vector<std::string>;

// Segments joined by three blanks; one that does not fit begins a new line, indented.
std::string Wrap(const Segments& segments, size_t width) {
  constexpr const char* kIndent = "    ";
  std::string out, line;
  for (const std::string& segment : segments) {
    if (segment.empty()) continue;
    if (!line.empty() && line.size() + 3 + segment.size() > width) {
      out += line + "\n";
      line = kIndent + segment;
    } else {
      line += (line.empty() ? "" : "   ") + segment;
    }
  }
  return line.empty() ? out : out + line + "\n";
}

// Running text, broken at blanks.
std::string Fill(const std::string& text, size_t width) {
  std::string out, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = "    " + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

// Three significant digits, no exponent: 3.74, 212, 10400.
std::string Number(double value) {
  if (value == 0) return "0";
  const int digits = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 4));
}

std::string Cell(std::optional<double> value) { return value ? Number(*value) : "-"; }

std::string DraftingArm(const Result& result) {
  for (const auto& [arm, metrics] : result.summary) {
    if (arm != "plain") return arm;
  }
  for (const Leg& leg : result.legs) {
    if (leg.arm != "plain") return leg.arm;
  }
  return "dflash2";
}

std::string Headline(const Result& result, size_t width) {
  std::string verdict(record::Name(result.verdict));
  for (char& c : verdict) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::set<std::string> levels;
  bool seen = false;
  for (const Leg& leg : result.legs) {
    if (leg.clocks.perf_level) levels.insert(*leg.clocks.perf_level);
    seen = seen || leg.clocks.samples > 0;
  }
  std::string clock = seen ? "clock" : "no clock seen";
  if (seen && levels.size() == 1) {
    clock = fmt::format("clock {} ({})", *levels.begin() == "auto" ? "unpinned" : "level", *levels.begin());
  }
  if (!result.complete) clock += ", INCOMPLETE";
  Segments segments = {fmt::format("{}, {}", verdict, clock), record::ScenarioText(result, "name", "")};
  const auto& gpu = result.environment.gpu;
  const std::string board =
      gpu ? fmt::format("{} {} {}", gpu->name.value_or("GPU"), gpu->gfx.value_or(""), gpu->pci.value_or(""))
          : "";
  if (gpu && !record::ComputedOnCpu(result)) {
    segments.push_back(board);
  } else {
    segments.push_back(fmt::format("cpu {}", result.environment.cpu.value_or("")));
    if (gpu) segments.push_back("clocks of " + board);
  }
  if (result.environment.rocm && result.environment.rocm->loaded) {
    segments.push_back("ROCm " + *result.environment.rocm->loaded);
  }
  return Wrap(segments, width);
}

std::string RateLine(const char* phase, const Result& result, const std::string& arm,
                     const std::string& metric, const std::optional<record::Speedup>& speedup, size_t width) {
  std::string line =
      fmt::format("{:<9}tok/s {:>10} {:>10}", phase, Cell(record::MetricValue(result, "plain", metric)),
                  Cell(record::MetricValue(result, arm, metric)));
  if (!speedup || !speedup->value) return line + "       -\n";
  line += fmt::format(" {:>6.2f}x", *speedup->value);
  line += speedup->ci95 ? fmt::format("  {:.2f} .. {:.2f}", (*speedup->ci95)[0], (*speedup->ci95)[1])
                        : "  one process: no interval";
  Segments remarks = {line};
  if (speedup->all_pairs_value && std::string_view(phase) == "decode") {
    remarks.push_back(fmt::format("all pairs put back: {:.2f}x", *speedup->all_pairs_value));
  }
  if (speedup->ratios_only) remarks.emplace_back("a slow process left only its ratio");
  return Wrap(remarks, width);
}

std::string Rates(const Result& result, const std::string& arm, size_t width) {
  const auto& speedup = result.speedup;
  const auto decode = speedup ? speedup->decode : std::nullopt;
  const std::string count =
      decode ? fmt::format("n = {} processes, {} of {} pairs", decode->n, decode->pairs, decode->pairs_all)
             : fmt::format("n = {} processes", result.processes.size());
  std::string out = fmt::format("{:<15}{:>10} {:>10} {:>7}  95 % interval", "", "plain", arm, "ratio");
  out += out.size() + 3 + count.size() <= width ? "   " + count + "\n" : "\n    " + count + "\n";
  out += RateLine("decode", result, arm, "decode_tok_s", decode, width);
  out += RateLine("prefill", result, arm, "prefill_tok_s", speedup ? speedup->prefill : std::nullopt, width);
  if (!speedup || speedup->by_class.empty()) return out;
  std::vector<std::pair<double, std::string>> classes;
  for (const auto& [name, of] : speedup->by_class) {
    if (of.value) classes.emplace_back(-*of.value, fmt::format("{} {:.2f}x", name, *of.value));
  }
  std::sort(classes.begin(), classes.end());
  Segments segments = {"by class"};
  for (const auto& [order, text] : classes) segments.push_back(text);
  return out + Wrap(segments, width);
}

std::string Acceptance(const Result& result, const std::string& arm, size_t width) {
  Segments segments;
  if (const auto committed = record::MetricValue(result, arm, "committed_per_round")) {
    segments.push_back(fmt::format("committed/round {:.2f}", *committed));
  }
  if (result.speedup && result.speedup->break_even_committed_per_round) {
    segments.push_back(fmt::format("break-even {:.2f}", *result.speedup->break_even_committed_per_round));
  }
  const auto share = record::MetricValue(result, "plain", "read_roof_share");
  if (share && result.roof.read_gb_s) {
    segments.push_back(
        fmt::format("plain at {:.2f} of the read roof ({} GB/s)", *share, Number(*result.roof.read_gb_s)));
  } else if (!result.roof.read_gb_s) {
    segments.emplace_back("read roof not measured: no probe on this device");
  }
  return Wrap(segments, width);
}

std::string RoundParts(const Result& result, const std::string& arm, size_t width) {
  const auto round = record::MetricValue(result, arm, "round_s");
  const auto step = record::MetricValue(result, "plain", "round_s");
  if (!round) return "";
  const auto ms = [](double seconds) { return Number(seconds * 1e3); };
  std::string text = fmt::format("round {} ms =", ms(*round));
  std::string sum = text;
  Segments parts;
  for (const char* name : {"draft", "select", "verify", "commit", "host", "unaccounted"}) {
    const auto part = record::MetricValue(result, arm, fmt::format("{}_s_per_round", name));
    if (!part) continue;
    std::string entry = fmt::format("{} {}", name, ms(*part));
    if (std::string_view(name) == "verify" && step)
      entry += fmt::format(" ({:.2f} plain steps)", *part / *step);
    parts.push_back(entry);
  }
  if (parts.empty()) return text.substr(0, text.size() - 2) + "\n";
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string entry = (i == 0 ? " " : " + ") + parts[i];
    if (text.size() + entry.size() > width) {
      text += "\n";
      sum += text;
      text = "   ";
    }
    text += entry;
    if (sum == fmt::format("round {} ms =", ms(*round))) sum.clear();
  }
  return sum + text + "\n";
}

std::string Checks(const Result& result, size_t width) {
  Segments segments;
  const auto& reference = result.reference;
  if (reference.prompts && reference.identical) {
    segments.push_back(fmt::format("ids equal on {} of {}", *reference.identical, *reference.prompts));
  } else if (judge::MadeUp(result)) {
    segments.emplace_back("ids not compared: they are made up");
  } else if (result.workload.temperature > 0) {
    segments.push_back(fmt::format("ids not compared: sampled at temperature {}, seed {}",
                                   result.workload.temperature, result.workload.seed));
  } else {
    segments.emplace_back("ids not compared: no plain reference");
  }
  int64_t hits = 0;
  for (const Leg& leg : result.legs) {
    for (const record::Provider& p : leg.providers) hits += p.provider == "vt-cpu-ref" ? p.calls : 0;
  }
  segments.push_back(fmt::format("reference tier {} hits", hits));
  return Wrap(segments, width);
}

// Medians over the legs' windows of one arm.
std::string ClockText(const Result& result, const std::string& arm) {
  std::vector<double> p5, p50, p95;
  for (const Leg& leg : result.legs) {
    if (!leg.counted || leg.arm != arm || !leg.clocks.sclk_mhz.p50) continue;
    p5.push_back(leg.clocks.sclk_mhz.p5.value_or(0));
    p50.push_back(*leg.clocks.sclk_mhz.p50);
    p95.push_back(leg.clocks.sclk_mhz.p95.value_or(0));
  }
  if (p50.empty()) return "";
  return fmt::format("{} {:.0f}/{:.0f}/{:.0f}", arm, judge::Median(p5).value_or(0),
                     judge::Median(p50).value_or(0), judge::Median(p95).value_or(0));
}

std::string Clocks(const Result& result, const std::string& arm, size_t width) {
  const std::string plain = ClockText(result, "plain");
  const std::string drafting = ClockText(result, arm);
  if (plain.empty() && drafting.empty()) {
    if (!result.telemetry.device) return "SCLK not seen: no board was watched\n";
    const bool counted = std::ranges::any_of(result.legs, [](const Leg& leg) { return leg.counted; });
    return counted ? "SCLK not seen: no sample in a counted leg\n" : "SCLK not shown: no leg counts\n";
  }
  Segments segments = {"SCLK p5/50/95", plain, drafting};
  std::optional<double> low_w, high_w, low_c, high_c;
  for (const Leg& leg : result.legs) {
    const auto widen = [](std::optional<double> value, std::optional<double>& low,
                          std::optional<double>& high) {
      if (!value) return;
      low = std::min(low.value_or(*value), *value);
      high = std::max(high.value_or(*value), *value);
    };
    widen(leg.clocks.power_w.p50, low_w, high_w);
    widen(leg.clocks.temp_c.p50, low_c, high_c);
  }
  if (low_w) segments.push_back(fmt::format("{:.0f}/{:.0f} W", *low_w, *high_w));
  if (low_c) segments.push_back(fmt::format("{:.0f}->{:.0f} C", *low_c, *high_c));
  return Wrap(segments, width);
}

std::string LeftOut(const Result& result, size_t width) {
  std::map<std::string, std::set<std::string>> pairs;  // cause -> "process.pair"
  std::set<std::pair<int64_t, int64_t>> warmups;
  for (const Leg& leg : result.legs) {
    if (record::Has(leg.reasons, Code::warmup)) warmups.emplace(leg.process, leg.pair);
    for (const record::Reason& reason : leg.reasons) {
      const record::Severity severity = record::Info(reason.code).severity;
      const bool out = severity == record::Severity::invalid || severity == record::Severity::cold ||
                       reason.code == Code::output_counts_differ;
      if (out && reason.code != Code::warmup) {
        pairs[std::string(record::Name(reason.code))].insert(fmt::format("{}.{}", leg.process + 1, leg.pair));
      }
    }
  }
  Segments segments;
  if (!warmups.empty()) segments.push_back(fmt::format("warm-up x{}", warmups.size()));
  for (const auto& [cause, where] : pairs) {
    constexpr size_t kShown = 4;
    const std::vector<std::string> some(where.begin(),
                                        std::next(where.begin(), std::min(where.size(), kShown)));
    segments.push_back(
        fmt::format("{} {}{} ({})", where.size() == 1 ? "pair" : "pairs", fmt::join(some, ", "),
                    where.size() > kShown ? fmt::format(" and {} more", where.size() - kShown) : "", cause));
  }
  if (segments.empty()) segments.emplace_back("nothing");
  segments.front() = "left out  " + segments.front();
  std::string ratios;
  for (const record::Process& p : result.processes) {
    if (p.ratio_to_best) ratios += fmt::format(" {:.2f}", *p.ratio_to_best);
  }
  if (!ratios.empty()) segments.push_back("processes" + ratios);
  return Wrap(segments, width);
}

std::string Remarks(const Result& result, size_t width) {
  std::map<Code, int64_t> counts;
  std::string out;
  for (const record::Reason& reason : result.reasons) {
    out += Fill(fmt::format("! {}: {}", record::Name(reason.code), reason.text), width);
  }
  for (const record::Reason& warning : result.warnings) ++counts[warning.code];
  Segments segments;
  for (const auto& [code, count] : counts) {
    segments.push_back(count == 1 ? std::string(record::Name(code))
                                  : fmt::format("{} x{}", record::Name(code), count));
  }
  if (!segments.empty()) segments.front() = "warnings  " + segments.front();
  return out + Wrap(segments, width);
}

}  // namespace

size_t ScreenWidth() {
  constexpr size_t kWidth = 100;
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kWidth;
  return std::clamp<size_t>(size.ws_col, 60, kWidth);
}

std::string RenderTable(const Result& result, const std::string& file, size_t width) {
  const std::string arm = DraftingArm(result);
  std::string out = Headline(result, width);
  out += Rates(result, arm, width);
  out += Acceptance(result, arm, width);
  out += RoundParts(result, arm, width);
  out += Checks(result, width);
  out += Clocks(result, arm, width);
  out += LeftOut(result, width);
  out += Remarks(result, width);
  return out + Wrap({file, fmt::format("post it: warmleg card {}", file),
                     fmt::format("compare: warmleg compare {} --with ...", file)},
                    width);
}

}  // namespace warmleg::run
