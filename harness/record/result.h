// The whole of a `warmleg.result/1` file. Plain data: the runner fills it, the judge marks it, the store
// writes it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/record/fingerprint.h"
#include "harness/record/leg.h"
#include "harness/record/reason.h"
#include "harness/record/workload.h"

namespace warmleg::record {

inline constexpr std::string_view kResultSchema = "warmleg.result/1";

enum class Verdict : uint8_t { verified, unverified, simulated, invalid };
std::string_view Name(Verdict verdict);

struct TelemetryDevice {
  std::string pci;  // "0000:c5:00.0"
  Json unknown = Json::object();
};

// The sidecar of an earlier part of a campaign that was resumed.
struct SamplesFile {
  std::string file, sha256;
  Json unknown = Json::object();
};

struct Telemetry {
  std::optional<TelemetryDevice> device;       // null: none matched or none asked for
  std::map<std::string, std::string> sources;  // "sclk_mhz": "rocm_smi"
  std::optional<int64_t> interval_ms;
  std::optional<std::string> samples_file;  // sidecar, relative to the result
  std::optional<std::string> samples_sha256;
  std::optional<std::string> lost;           // why samples ended early
  std::vector<SamplesFile> earlier_samples;  // of the runs that this one continues, oldest first
  Json unknown = Json::object();
};

struct Roof {
  std::optional<double> read_gb_s;  // GB = 1e9 bytes; median over processes
  Json unknown = Json::object();
};

struct Reference {
  std::optional<std::string> ids_hash;
  std::optional<std::string> source;  // "process" | "cache"
  // Of the prompts decoded: how many gave the reference's ids in every counted leg.
  std::optional<int64_t> prompts, identical;
  Json unknown = Json::object();
};

// Values are in the order run: [i] before pair i, the last one after the last pair. null: it failed.
struct Sentinel {
  std::optional<double> median;
  std::vector<std::optional<double>> values;  // seconds
  std::optional<double> bytes;                // read by one sentinel
  Json unknown = Json::object();
};

struct Process {
  int64_t index = 0;
  std::optional<std::string> pid_start;  // "PID@start time in clock ticks"
  std::optional<double> load_s;
  std::optional<int64_t> peak_rss_bytes;
  Sentinel sentinel_s;
  std::optional<double> read_gb_s;      // this process's probe
  std::optional<double> ratio_to_best;  // best sentinel median / this one: 1 is the best
  // Per arm, over its counted legs: "plain" -> tok/s. The unit of the headline.
  std::map<std::string, std::optional<double>> decode_tok_s, prefill_tok_s, e2e_tok_s;
  Json unknown = Json::object();
};

// A headline number. value and interval null: it may not be given.
struct Metric {
  std::optional<double> value;
  std::optional<std::array<double, 2>> ci95;  // null with fewer than two processes
  int64_t n = 0;                              // processes
  std::string unit;                           // "tok/s"
  std::string better;                         // "higher" | "lower"
  Json unknown = Json::object();
};

struct Speedup {
  std::optional<double> value;
  std::optional<std::array<double, 2>> ci95;
  int64_t n = 0;                          // processes
  std::optional<double> all_pairs_value;  // with the pairs left out by a rule put back
  std::vector<double> process_ratios;
  int64_t pairs = 0, pairs_all = 0;  // counted, of all warm ones
  bool ratios_only = false;  // a slow process left only its ratio: not the quotient of the rates beside it
  std::string unit = "ratio", better = "higher";
  Json unknown = Json::object();
};

// One object per phase; null when it may not be given.
struct Speedups {
  std::optional<Speedup> decode, prefill, e2e;
  std::map<std::string, Speedup> by_class;  // of decode
  // committed_per_round at which the arms tie on this board.
  std::optional<double> break_even_committed_per_round;
  Json unknown = Json::object();
};

struct Result {
  std::string schema = std::string(kResultSchema);
  std::string created;  // UTC, "2026-11-30T15:11:00Z"
  bool complete = false;
  Verdict verdict = Verdict::invalid;
  std::vector<Reason> reasons, warnings;
  Json scenario = Json::object();  // normalised, with "sha256"
  Workload workload;
  Environment environment;
  Telemetry telemetry;
  Roof roof;
  Reference reference;
  std::vector<Process> processes;
  std::vector<Leg> legs;
  std::map<std::string, std::map<std::string, Metric>> summary;  // arm -> "decode_tok_s" -> number
  std::optional<Speedups> speedup;
  Json unknown = Json::object();
};

// A text of the scenario, which no schema binds: `otherwise` where it is absent or no text.
inline std::string ScenarioText(const Result& result, const char* key, std::string otherwise) {
  const auto found = result.scenario.find(key);
  return found != result.scenario.end() && found->is_string() ? found->get<std::string>()
                                                              : std::move(otherwise);
}

}  // namespace warmleg::record
