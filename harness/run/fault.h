// Faults on purpose, for the tests of the parent. Off unless WARMLEG_TEST_FAULT is set; the variable stands
// in the result's environment, and the worker says so on stderr.
//
//   WARMLEG_TEST_FAULT=KIND:LEG, KIND:PROCESS.LEG, KIND:load or KIND:reference, several joined by commas
//   KIND: abort, exit, kill, hang (ignores SIGTERM), oom (host), full and illegal (device), garbage; for legs
//   also spin (a kernel that never ends; where the device has none, a hang), diverge, leak, slow, deaf (gone
//   after its answer)
#pragma once

#include <cstdint>
#include <functional>

#include "harness/run/protocol.h"

namespace warmleg::run {

enum class FaultPoint : uint8_t { load, leg };

// Dies, hangs or throws when the variable asks for it here. process, leg: ignored at `load`; process -1: a
// leg of the reference. `spin`: starts a kernel that never ends and waits for it.
void InjectFault(FaultPoint point, int64_t process, int64_t leg, const std::function<void()>& spin = {});
// Changes what a leg reports: another token (diverge), repeats that differ (leak), a longer time (slow); or
// leaves the worker unable to hear the next request (deaf).
void AlterLeg(int64_t process, LegReply& reply);

}  // namespace warmleg::run
