// Result files made from a description: what a campaign would have written if the board had behaved so. Used
// by tests and by the examples in docs/. Judged by the real judge, so verdicts, rates and summary are its
// own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/record/result.h"

namespace warmleg::testing {

// One file. The factors multiply times: 1.05 is 5 % slower.
struct Situation {
  std::string file = "result.json";
  std::string name = "tiny-code";  // scenario
  std::string created = "2026-11-30T15:11:00Z";
  std::string device = "rocm:0";
  int64_t processes = 4;
  int64_t pairs = 4;  // warm ones; one warm-up pair before them
  uint64_t seed = 1;
  double process_spread = 0.002;  // sd of a process's speed, relative
  double leg_spread = 0.001;      // sd of a leg's speed in its process
  double plain_round_s = 0.0345;
  double drafting_round_s = 0.0521;
  double prefill_s = 0.120;
  double slow_plain = 1, slow_drafting = 1, slow_prefill = 1;
  std::optional<int64_t> slow_process;  // this one is in a slow mode: everything, its sentinels too
  double slow_process_factor = 1.09;
  std::optional<int64_t> shift_after_pair;  // every process moves to another level after this warm pair
  double shift_factor = 1.04;
  double sclk_mhz = 2880, mclk_mhz = 1000;
  bool clocks = true;           // false: nobody could read SCLK
  bool complete = true;         // false: interrupted
  bool all_legs_crash = false;  // no valid leg
  std::string rocm = "7.2", kernel = "6.14.0", compiler = "clang++ 19.1.7", git = "0123456789ab";
  std::string rocm_built;                          // empty: the same as rocm
  std::string provider = "vt-native";              // of every op
  record::Json workload = record::Json::object();  // fields that differ from the default workload
};

record::Result MakeResult(const Situation& situation);

// {"files": [{"file": "base.json", "rocm": "7.2", "slow_prefill": 1.12, "count": 2, ...}]}: the fields of
// Situation; `count` N writes file-1 .. file-N with seeds from `seed` upwards. Unknown fields are refused
// (vt::InputError).
std::vector<Situation> ParseSituations(const std::string& text, const std::string& what);

// Writes every file of the description into `folder`; gives their paths.
std::vector<std::string> WriteSituations(const std::vector<Situation>& situations, const std::string& folder);

// Standard normal numbers, the same from every standard library.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed) {}
  double Next();

 private:
  double Uniform();
  uint64_t state_;
};

}  // namespace warmleg::testing
