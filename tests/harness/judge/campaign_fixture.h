// A campaign made of numbers: two arms with given times per round, every leg good until a test spoils it.
#pragma once

#include "harness/judge/campaign.h"

namespace warmleg::judge {

struct Shape {
  int64_t processes = 4;
  int64_t pairs = 4;  // warm ones; one warm-up pair before them
  double plain_round_s = 0.010;
  double drafting_round_s = 0.015;
  int64_t committed_per_round = 3;
};

// Clocks seen, sentinels at 0.7 s, prompts "p0".. of class "code" or "prose" in turn.
record::Result MakeCampaign(const Shape& shape = {});

// rocm:0, not demo: every rule binds.
Policy DevicePolicy();

record::Leg& LegOf(record::Result& result, int64_t process, int64_t pair, const std::string& arm);

// All times of the leg multiplied.
void Slow(record::Leg& leg, double factor);

}  // namespace warmleg::judge
