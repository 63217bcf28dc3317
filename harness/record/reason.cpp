#include "harness/record/reason.h"

#include <algorithm>
#include <array>
#include <utility>

namespace warmleg::record {
namespace {

using enum Severity;

constexpr std::array kCodes = {
    CodeInfo{Code::warmup, "warmup", cold, "warm-up pair of its process",
             "nothing to do; plan.warmup_pairs says how many"},
    CodeInfo{Code::no_warmup, "no_warmup", cold, "plan.warmup_pairs is 0, so no leg is known to be warm",
             "set plan.warmup_pairs to 1 or more"},
    CodeInfo{Code::first_use_in_leg, "first_use_in_leg", cold,
             "the leg used a shape, kernel, graph or buffer for the first time",
             "warm this shape: raise plan.warmup_pairs or give warm-up prompts of the same lengths"},
    CodeInfo{Code::ramping, "ramping", cold,
             "the clock was still climbing: median SCLK of the last third above the first",
             "raise plan.warmup_pairs, or set clocks.perf_level to high"},
    CodeInfo{Code::clock_low_under_load, "clock_low_under_load", invalid,
             "the GPU was busy at half of its top clock or less",
             "set clocks.perf_level to high; check power profile, display state and cooling"},
    CodeInfo{Code::perf_level_changed, "perf_level_changed", invalid,
             "the performance level is not the one the campaign began with",
             "let nothing else write power_dpm_force_performance_level and run again"},
    CodeInfo{Code::power_cap_changed, "power_cap_changed", invalid,
             "the power cap is not the one the campaign began with",
             "let nothing else change the power cap and run again"},
    CodeInfo{Code::thermal_throttle, "thermal_throttle", invalid, "the board throttled for heat in this leg",
             "cool the board or leave it idle for some minutes, then run again"},
    CodeInfo{Code::hw_slowdown, "hw_slowdown", invalid,
             "the hardware slowed itself down in this leg (not by its power cap)",
             "check power supply and cooling; the throttle field names the bit"},
    CodeInfo{Code::board_moved, "board_moved", invalid,
             "a sentinel beside the pair is too far from its process's median",
             "keep the machine otherwise idle; more pairs make up for those left out"},
    CodeInfo{Code::slow_process, "slow_process", warning,
             "the process's sentinel is slower than the best process's; its absolute rates are left out",
             "compare ratios only, or run again; memory placement can differ between processes"},
    CodeInfo{Code::telemetry_suspect, "telemetry_suspect", warning,
             "the clock reads low but the sentinel's bandwidth says that the board runs fast",
             "trust the rate; report the sensor (warmleg clocks)"},
    CodeInfo{Code::thermal_drift, "thermal_drift", warning,
             "median SCLK of the last third is below the first",
             "let the board cool or reach its steady heat first; arms are interleaved, so the ratio stands"},
    CodeInfo{Code::arms_ran_at_different_clocks, "arms_ran_at_different_clocks", warning,
             "the median SCLK of the two arms differs", "set clocks.perf_level to high"},
    CodeInfo{Code::page_cache_differs, "page_cache_differs", warning,
             "cached memory at the legs' starts differs by more than a tenth of RAM",
             "stop what fills the page cache, or drop it before the run"},
    CodeInfo{Code::not_alone, "not_alone", warning, "another process uses the device",
             "stop the other client (warmleg devices shows it)"},
    CodeInfo{Code::noisy, "noisy", warning, "time per round spreads widely inside a process",
             "leave the machine idle; use more pairs"},
    CodeInfo{Code::clock_unverified, "clock_unverified", campaign,
             "no SCLK, or too few samples, so clocks cannot vouch for this leg",
             "see warmleg clocks for the reason of each missing field; use longer legs (plan.min_leg_s)"},
    CodeInfo{Code::clocks_not_enforced, "clocks_not_enforced", campaign,
             "clock rules are shown but do not bind here (demo scenario, or device cpu or sim)",
             "use a scenario without demo on a GPU, or name --telemetry-device"},
    CodeInfo{Code::perf_level_not_set, "perf_level_not_set", warning,
             "clocks.perf_level asks for high but the level could not be written",
             "give write access to power_dpm_force_performance_level, or use keep"},
    CodeInfo{Code::rocm_smi_aborted, "rocm_smi_aborted", warning,
             "the rocm-smi library aborted; samples go on from sysfs",
             "report the board's sysfs files upstream"},
    CodeInfo{Code::telemetry_lost, "telemetry_lost", campaign,
             "the sampler died twice; no clocks from then on", "see the log for the sampler's last words"},
    CodeInfo{Code::reference_tier_hits, "reference_tier_hits", invalid,
             "an op ran on the CPU reference tier instead of the device",
             "see the leg's providers for the op and the reason of its fall-back"},
    CodeInfo{Code::counter_identity, "counter_identity", invalid, "the leg's counters contradict each other",
             "report this: it is a defect of the engine"},
    CodeInfo{Code::times_inconsistent, "times_inconsistent", invalid,
             "a time is negative, missing or longer than the whole",
             "report this: it is a defect of the engine"},
    CodeInfo{Code::structural_divergence, "structural_divergence", invalid,
             "token ids differ from the plain reference where the reference was not near a tie",
             "suspect rollback or the verify kernels; warmleg generate --trace shows the round"},
    CodeInfo{Code::near_tie_divergence, "near_tie_divergence", warning,
             "token ids differ from the plain reference at a near tie",
             "expected now and then from different summation orders; --precision exact lowers it"},
    CodeInfo{Code::reference_unavailable, "reference_unavailable", warning,
             "no plain reference ids, so outputs were not checked", "see the log of the reference process"},
    CodeInfo{Code::state_leak, "state_leak", invalid,
             "the same prompt gave different ids or accept counts in one process",
             "report this: state of an earlier prompt reaches a later one"},
    CodeInfo{Code::degenerate_output, "degenerate_output", invalid,
             "half of the output or more is one short cycle; such text is drafted unusually well",
             "change the prompt or the chat template; allow_degenerate keeps such legs with a warning"},
    CodeInfo{Code::token_outside_vocabulary, "token_outside_vocabulary", invalid,
             "an output id is outside the tokenizer's vocabulary",
             "check that the tokenizer belongs to the checkpoint"},
    CodeInfo{Code::implausible_rate, "implausible_rate", invalid,
             "the rate needs more bandwidth than the probe measured",
             "check the counters and clocks; a cached prefix or skipped work looks like this"},
    CodeInfo{Code::graph_replay_mismatch, "graph_replay_mismatch", invalid,
             "a captured graph replayed with another result than eager execution",
             "run eager, and report the ROCm release"},
    CodeInfo{Code::crashed, "crashed", invalid, "the worker process ended before the leg was done",
             "see the log of the worker"},
    CodeInfo{Code::oom, "oom", invalid, "memory ran out", "use a shorter context or a smaller checkpoint"},
    CodeInfo{Code::timeout, "timeout", invalid, "the leg took longer than plan.leg_timeout_s",
             "raise plan.leg_timeout_s or lower generation.max_new_tokens"},
    CodeInfo{Code::gpu_hang, "gpu_hang", invalid, "the GPU stopped answering",
             "see the kernel log; firmware and kernel versions are in the environment block"},
    CodeInfo{Code::load_stalled, "load_stalled", invalid, "loading the checkpoints made no progress",
             "see load_s of the other processes; check disk and memory"},
    CodeInfo{Code::partner_left_out, "partner_left_out", warning,
             "the other leg of the pair is invalid or cold, so the pair enters no statistic",
             "see the reasons of the other leg"},
    CodeInfo{Code::graph_eager, "graph_eager", warning, "graph capture failed; the leg ran eager",
             "see the text for the runtime's error"},
    CodeInfo{Code::graph_mode_differs, "graph_mode_differs", campaign,
             "the arms ran in different graph modes; no speed-up is given", "run both arms eager"},
    CodeInfo{Code::output_counts_differ, "output_counts_differ", warning,
             "the two arms of a pair gave different token counts; the pair enters no speed-up",
             "set generation.ignore_eos, or see the divergence of the legs"},
    CodeInfo{Code::all_pairs_differ, "all_pairs_differ", warning,
             "the speed-up changes when the pairs left out are put back",
             "see the reasons of the pairs left out; run again on a quiet machine"},
    CodeInfo{Code::no_valid_pair, "no_valid_pair", campaign, "no pair is valid, so there is no number",
             "see the reasons of the legs"},
    CodeInfo{Code::simulated_device, "simulated_device", campaign,
             "the device is simulated; its rates mean nothing", "run on a real device"},
    CodeInfo{Code::made_up_weights, "made_up_weights", campaign, "the weights are made up",
             "run with a trained checkpoint"},
    CodeInfo{Code::made_up_accepted, "made_up_accepted", campaign, "the accepted counts are made up",
             "run without simulated acceptance"},
    CodeInfo{Code::mixed_rocm, "mixed_rocm", warning, "built with one ROCm release and loaded with another",
             "see environment.libraries; set the library path to one tree"},
    CodeInfo{Code::budget_exhausted, "budget_exhausted", campaign, "the budget ended before the plan",
             "raise --budget or plan fewer pairs"},
    CodeInfo{Code::interrupted, "interrupted", campaign, "interrupted by a signal",
             "continue it with --resume FILE"},
    CodeInfo{Code::not_finite, "not_finite", warning, "a number was not finite and is written as null",
             "report this: a rule should have caught it"},
    CodeInfo{Code::workload_differs, "workload_differs", campaign, "the workloads differ",
             "compare runs of one scenario; --across FIELD allows a named difference"},
    CodeInfo{Code::clock_shifted, "clock_shifted", campaign,
             "the same arm ran at different clocks on the two sides",
             "pin the clocks, or allow it with --allow-clock-shift"},
    CodeInfo{Code::insufficient_samples, "insufficient_samples", campaign,
             "too few processes on a side for a verdict", "add result files or raise plan.processes"},
    CodeInfo{Code::nothing_compared, "nothing_compared", campaign, "the two sides have no workload in common",
             "name files of the same scenario"},
    CodeInfo{Code::no_valid_legs, "no_valid_legs", campaign, "a side has no valid leg",
             "see the reasons of its legs"},
    CodeInfo{Code::incomplete, "incomplete", campaign, "a file is marked complete: false",
             "finish it with run --resume, or allow it with --allow-incomplete"},
    CodeInfo{Code::missing_workload, "missing_workload", campaign,
             "a workload of the base is missing in the candidate",
             "run it, or allow it with --allow-missing NAME"},
    CodeInfo{Code::new_workload, "new_workload", warning,
             "a workload of the candidate has no base; no verdict for it", "add a base run"},
    CodeInfo{Code::fingerprint_differs, "fingerprint_differs", warning, "the environments differ",
             "change one component at a time to name a cause"},
    CodeInfo{Code::provider_mix_differs, "provider_mix_differs", warning,
             "the two sides ran their ops on different providers", "see the providers of the legs"},
};

constexpr bool InEnumOrder() {
  for (size_t i = 0; i < kCodes.size(); ++i)
    if (static_cast<size_t>(kCodes[i].code) != i) return false;
  return true;
}
static_assert(InEnumOrder() && kCodes.back().code == Code::provider_mix_differs);

}  // namespace

std::span<const CodeInfo> AllCodes() { return kCodes; }

const CodeInfo& Info(Code code) { return kCodes[static_cast<size_t>(code)]; }

std::string_view Name(Code code) { return Info(code).name; }

std::string_view Name(Severity severity) {
  constexpr std::array<std::string_view, 4> names = {"cold", "invalid", "warning", "campaign"};
  return names[static_cast<size_t>(severity)];
}

std::optional<Code> CodeFromName(std::string_view name) {
  const auto* it =
      std::find_if(kCodes.begin(), kCodes.end(), [&](const CodeInfo& c) { return c.name == name; });
  if (it == kCodes.end()) return std::nullopt;
  return it->code;
}

Reason MakeReason(Code code, Json value, Json limit, std::string_view detail) {
  const CodeInfo& info = Info(code);
  Reason reason;
  reason.code = code;
  reason.text = std::string(info.text);
  if (!detail.empty()) reason.text.append(": ").append(detail);
  reason.remedy = std::string(info.remedy);
  reason.value = std::move(value);
  reason.limit = std::move(limit);
  return reason;
}

bool Has(const std::vector<Reason>& reasons, Code code) {
  return std::any_of(reasons.begin(), reasons.end(), [&](const Reason& r) { return r.code == code; });
}

bool HasSeverity(const std::vector<Reason>& reasons, Severity severity) {
  return std::any_of(reasons.begin(), reasons.end(),
                     [&](const Reason& r) { return Info(r.code).severity == severity; });
}

}  // namespace warmleg::record
