// What a campaign's device and scenario decide about the rules, and the limits of every rule. Source of the
// numbers: the tables of the measuring agreement.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warmleg::judge {

struct Policy {
  std::string drafting_arm = "dflash2";
  bool on_device = false;       // rocm or cuda: sentinels are judged, divergence has the wide gap
  bool simulated = false;       // device sim
  bool enforce_clocks = false;  // else clock rules are printed only
  bool allow_degenerate = false;
  int64_t warmup_pairs = 1;
};

// `device`: "cpu", "rocm:0", "sim:0", "cuda:0". A scenario with demo, and cpu and sim without
// --telemetry-device, do not enforce clock rules.
inline Policy MakePolicy(std::string_view device, bool demo, bool telemetry_device, bool allow_degenerate,
                         int64_t warmup_pairs) {
  Policy p;
  p.simulated = device.substr(0, 3) == "sim";
  p.on_device = !p.simulated && device != "cpu";
  p.enforce_clocks = !demo && (p.on_device || telemetry_device);
  p.allow_degenerate = allow_degenerate;
  p.warmup_pairs = warmup_pairs;
  return p;
}

namespace limit {
inline constexpr double kRamping = 0.03;         // last third of SCLK above the first
inline constexpr double kBusyPercent = 90;       // at or above: under load
inline constexpr double kLowClock = 0.5;         // of the current top level, or less
inline constexpr double kBandwidthOk = 0.6;      // sentinel over peak: a low clock reading is not believed
inline constexpr double kThermalDrift = 0.03;    // last third of SCLK below the first
inline constexpr double kClockApart = 0.01;      // medians of the two arms
inline constexpr double kPageCache = 0.10;       // of RAM
inline constexpr double kNoise = 0.05;           // sd over median
inline constexpr int64_t kClockSamples = 20;     // SCLK samples of a verified leg
inline constexpr double kBoardMoved = 0.02;      // sentinel against its process's median
inline constexpr double kSlowProcess = 0.05;     // sentinel median below the best
inline constexpr double kAllPairs = 0.02;        // speed-up with the left-out pairs put back
inline constexpr double kImplausible = 1.2;      // times the probe's read rate
inline constexpr double kGapHost = 0.05;         // top-1 minus top-2 logit, cpu and sim
inline constexpr double kGapDevice = 0.5;        // on a device
inline constexpr double kUnaccounted = 0.05;     // of decode_s, how far below 0 unaccounted_s may lie
inline constexpr int64_t kCyclePeriod = 16;      // longest period of degenerate output
inline constexpr int64_t kCycleTokens = 64;      // shortest stretch
inline constexpr int64_t kReplacementPairs = 2;  // a process
}  // namespace limit

}  // namespace warmleg::judge
