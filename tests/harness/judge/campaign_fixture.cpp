#include "tests/harness/judge/campaign_fixture.h"

#include <stdexcept>

namespace warmleg::judge {
namespace {

record::ClockWindow Seen() {
  record::ClockWindow w;
  w.samples = w.samples_all = 40;
  w.sclk_mhz.p50 = w.sclk_mhz.first_third = w.sclk_mhz.last_third = 2890;
  w.top_sclk_mhz = 2900, w.perf_levels = {"auto"}, w.power_caps_w = {120};
  return w;
}

record::Leg MakeLeg(const Shape& shape, int64_t process, int64_t pair, bool plain) {
  record::Leg leg;
  leg.process = process, leg.pair = pair, leg.arm = plain ? "plain" : "dflash2";
  leg.prompt = "p" + std::to_string(pair), leg.prompt_class = pair % 2 ? "code" : "prose";
  leg.state = pair == 0 ? record::State::cold : record::State::warm;
  if (pair == 0) leg.reasons.push_back(record::MakeReason(record::Code::warmup));
  record::Counters& c = leg.counters;
  c.committed = 60, c.prefill_made = 1, c.output_tokens = 61, c.prompt_tokens = 50;
  c.rounds = plain ? 60 : 60 / shape.committed_per_round, c.bonus = c.rounds;
  c.accepted = c.committed - c.rounds, c.drafted = plain ? 0 : 7 * c.rounds;
  c.accepted_at = {c.accepted};
  leg.times.prefill_s = 0.05, leg.times.ttft_s = 0.06;
  leg.times.decode_s = static_cast<double>(c.rounds) * (plain ? shape.plain_round_s : shape.drafting_round_s);
  leg.times.e2e_s = *leg.times.decode_s + 0.06;
  leg.clocks = Seen();
  leg.output_sha256 = leg.prompt;
  return leg;
}

}  // namespace

record::Result MakeCampaign(const Shape& shape) {
  record::Result r;
  r.complete = true;
  r.workload.weights = "checkpoint";
  for (int64_t process = 0; process < shape.processes; ++process) {
    record::Process p;
    p.index = process;
    p.sentinel_s.values.assign(static_cast<size_t>(shape.pairs) + 2, 0.7);
    r.processes.push_back(p);
    int64_t index = 0;
    for (int64_t pair = 0; pair <= shape.pairs; ++pair)
      for (const bool plain : {pair % 2 == 0, pair % 2 != 0}) {
        r.legs.push_back(MakeLeg(shape, process, pair, plain));
        r.legs.back().index = index++;
      }
  }
  return r;
}

Policy DevicePolicy() { return MakePolicy("rocm:0", false, false, false, 1); }

record::Leg& LegOf(record::Result& result, int64_t process, int64_t pair, const std::string& arm) {
  for (record::Leg& leg : result.legs)
    if (leg.process == process && leg.pair == pair && leg.arm == arm) return leg;
  throw std::out_of_range("no such leg");
}

void Slow(record::Leg& leg, double factor) {
  for (auto* t : {&leg.times.prefill_s, &leg.times.ttft_s, &leg.times.decode_s, &leg.times.e2e_s})
    **t *= factor;
}

}  // namespace warmleg::judge
