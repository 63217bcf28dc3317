// Judges a whole campaign: marks its legs, computes every number of the summary, gives the verdict. All of it
// follows from the record, so a file can be judged again, after each process and on resume.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/judge/policy.h"
#include "harness/record/result.h"

namespace warmleg::judge {

// Before: the runner has filled legs (state cold with its cause for warm-up and first use; reasons of crashes
// and of the output rules), processes (sentinel values, probe), environment, telemetry, workload. Sets: leg
// state (ramping), valid, counted, rates, clocks.verified and the reasons that follow from the record;
// process sentinel median, ratio_to_best, rates; roof, reference counts, summary, speedup, warnings, reasons,
// verdict.
void Judge(record::Result& result, const Policy& policy);

// The weights or the accepted counts are made up (the runner gives the reason made_up_accepted): rules over
// tokens do not apply.
bool MadeUp(const record::Result& result);

// 0 verified, unverified, simulated; 1 invalid; 3 a GPU hung; 130 interrupted.
int ExitCode(const record::Result& result);

// The legs of one pair; either may be missing while the campaign runs.
struct Pair {
  int64_t process = 0, index = 0;
  record::Leg* plain = nullptr;
  record::Leg* drafting = nullptr;
};
// In the order run.
std::vector<Pair> Pairs(record::Result& result, const Policy& policy);

// Why the campaign stops: the last two pairs that were not cold are invalid for the same reason. board_moved,
// known only when the process has its median, and a crash on cpu or sim do not count. Call it on a judged
// result.
std::optional<record::Code> StopReason(record::Result& result, const Policy& policy);

// The pairs of a finished process whose prompts should run again, at most 2 a process less those run already:
// warm-up aside, the first planned ones that do not count. By validity alone, never by rate. Call it on a
// judged result.
std::vector<int64_t> PairsToReplace(record::Result& result, int64_t process, int64_t planned_pairs,
                                    const Policy& policy);

}  // namespace warmleg::judge
