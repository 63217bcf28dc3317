// From what a worker says to what the result file holds.
#pragma once

#include "harness/record/result.h"
#include "harness/run/plan.h"
#include "harness/run/protocol.h"

namespace warmleg::run {

// Counters, times, providers, hash, read bytes and cold causes of shapes; state, validity and rates are the
// caller's and the judge's.
void FillLeg(const LegRequest& request, const LegReply& reply, record::Leg& leg);

record::Workload MakeWorkload(const Plan& plan);
// The hashes, dtype and block size that only a loaded worker knows.
void AddLoaded(const LoadedReply& loaded, const Plan& plan, record::Workload& workload);

// "2026-11-30T15:11:00Z", and "20261130T151100Z" for file names.
std::string UtcNow();
std::string UtcNowCompact();

}  // namespace warmleg::run
