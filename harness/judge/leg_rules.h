// Rules over one leg's own counters, times and providers.
#pragma once

#include <optional>
#include <vector>

#include "harness/record/leg.h"

namespace warmleg::judge {

using record::Code;
using record::Leg;
using record::Reason;

// Null when the denominator is null or not above 0.
std::optional<double> Ratio(std::optional<double> numerator, std::optional<double> denominator);

// decode_tok_s = committed / decode_s, which is (N - 1) / decode_s for one repeat and null when nothing was
// committed; prefill_tok_s = prompt_tokens / prefill_s; e2e_tok_s = output_tokens / e2e_s.
// accepted_per_drafted, accepted_per_round and committed_per_round are of the counters as they are; null
// without rounds (or drafts).
record::Rates DeriveRates(const record::Counters& counters, const record::Times& times);

// The identities of record::Counters; one reason a violation. `plain`: the arm drafts nothing.
std::vector<Reason> CheckCounters(const record::Counters& counters, bool plain);

// Negative, missing or impossible times: prefill + decode longer than the whole, first token after the end,
// tokens in no time.
std::vector<Reason> CheckTimes(const record::Counters& counters, const record::Times& times);

// Calls that the CPU reference tier made on a device.
std::vector<Reason> CheckProviders(const Leg& leg);

// Bytes per second that the leg's steps must have read, over 1.2 x the probe's rate. Nothing without the two
// numbers.
std::vector<Reason> CheckPlausible(const Leg& leg, std::optional<double> probe_gb_s);

// GB/s that the leg's steps or rounds must have read.
std::optional<double> ReadRateGbS(const Leg& leg);

// The leg ended without a result: crashed, oom, timeout, gpu_hang, load_stalled.
bool Died(const Leg& leg);

}  // namespace warmleg::judge
