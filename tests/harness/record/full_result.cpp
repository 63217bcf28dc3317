#include "tests/harness/record/full_result.h"

namespace warmleg::record {
namespace {

ClockStat Stat(double centre) {
  ClockStat s;
  s.p5 = centre - 5, s.p50 = centre, s.p95 = centre + 5, s.mean = centre + 0.25;
  s.first_third = centre + 1, s.last_third = centre - 1;
  return s;
}

ClockWindow Window() {
  ClockWindow w;
  w.verified = true, w.samples = 40, w.samples_all = 41;
  w.sclk_mhz = Stat(2880), w.mclk_mhz = Stat(1000), w.fclk_mhz = Stat(2000);
  w.power_w = Stat(104), w.temp_c = Stat(70), w.busy_percent = Stat(95);
  w.top_sclk_mhz = 2900, w.energy_j = 371.5, w.perf_level = "auto", w.perf_levels = {"auto"};
  w.power_caps_w = {120}, w.thermal_throttle = false, w.hw_slowdown = false, w.power_capped = true;
  w.begin_ns = 5'000'000'000, w.end_ns = 6'500'000'000;
  w.other_clients = 0, w.cached_bytes = 1 << 30, w.sampler_cpu_share = 0.002;
  w.phases["prefill"].samples = 3;
  w.phases["decode"].sclk_mhz = Stat(2890);
  return w;
}

Leg OneLeg(int64_t index, const char* arm, State state) {
  Leg leg;
  leg.process = 0, leg.index = index, leg.pair = index / 2;
  leg.arm = arm, leg.prompt = "code-01", leg.prompt_class = "code";
  leg.state = state, leg.valid = true, leg.counted = state == State::warm;
  if (state == State::cold) leg.reasons.push_back(MakeReason(Code::warmup));
  leg.repeats = 2, leg.graph_mode = "eager";
  const bool plain = leg.arm == "plain";
  Counters& c = leg.counters;
  c.rounds = plain ? 62 : 20, c.drafted = plain ? 0 : 140, c.accepted = plain ? 0 : 42, c.bonus = c.rounds;
  c.committed = 62, c.prefill_made = 2, c.output_tokens = 64, c.prompt_tokens = 40;
  c.rounds_with_accepted = {8, 2, 0, 10}, c.accepted_at = {20, 12, 10};
  leg.times.prefill_s = 0.1, leg.times.ttft_s = 0.11, leg.times.decode_s = 1.5, leg.times.e2e_s = 1.625;
  leg.times.draft_s = 0.2, leg.times.select_s = 0.1, leg.times.verify_s = 1.0, leg.times.commit_s = 0.1;
  leg.times.host_s = 0.05, leg.times.unaccounted_s = 0.05;
  leg.rates.decode_tok_s = 62 / 1.5, leg.rates.prefill_tok_s = 400, leg.rates.e2e_tok_s = 64 / 1.625;
  leg.rates.committed_per_round = 3.1;
  leg.read_bytes_per_round = 1.5e9;
  leg.clocks = Window();
  leg.providers.push_back({"MatMul", "rocm:0", "vt-native", "vt-native", 124, 0, std::nullopt, 1 << 20, {}});
  leg.providers.back().unknown = Json::object();
  leg.output_sha256 = std::string(64, 'a');
  leg.divergence = Divergence{.index = 30, .reference_token = 5, .token = 6, .gap = 0.01};
  return leg;
}

Environment Machine() {
  Environment e;
  e.boot_id = "b", e.kernel = "6.14.0", e.cpu = "a cpu", e.ram_bytes = int64_t{1} << 37;
  e.compiler = "g++ 12", e.git = "0123abc";
  e.gpu.emplace();
  e.gpu->name = "8060S", e.gpu->gfx = "gfx1151", e.gpu->pci = "0000:c5:00.0", e.gpu->cu = 40;
  e.gpu->integrated = true, e.gpu->vbios = "113", e.gpu->firmware["mes"] = "0x83";
  e.gpu->vram_bytes = 1 << 29, e.gpu->gtt_bytes = int64_t{1} << 36, e.gpu->peak_gb_s = 256;
  e.cuda.emplace();
  e.cuda->build = "13.0", e.cuda->runtime = "13.0", e.cuda->driver = "580.1";
  e.rocm.emplace();
  e.rocm->build = "7.2", e.rocm->loaded = "7.2", e.rocm->runtime = "70253211", e.rocm->driver = "6.14";
  e.libraries.push_back({"lib/libamdhip64.so.7", "libamdhip64.so.7", "ff00", Json::object()});
  e.variables["HIP_VISIBLE_DEVICES"] = "";
  e.platform_profile = "performance", e.tuned_profile = "throughput", e.power_supply = "AC";
  e.cpu_governor = "performance", e.cached_bytes = 1 << 30, e.amdgpu_parameters["gttsize"] = "-1";
  e.other_clients = 0, e.unreadable["tuned_profile"] = "unsupported";
  return e;
}

}  // namespace

Result FullResult() {
  Result r;
  r.created = "2026-11-30T15:11:00Z", r.complete = true, r.verdict = Verdict::verified;
  r.reasons.push_back(MakeReason(Code::clocks_not_enforced));
  r.warnings.push_back(MakeReason(Code::thermal_drift, 2700.0, 2813.0));
  r.warnings.back().process = 0, r.warnings.back().leg = 2;
  r.scenario = {{"schema", "warmleg.scenario/1"}, {"name", "tiny-code"}, {"sha256", std::string(64, 'b')}};
  r.workload = {.target_hash = "t",
                .draft_hash = "d",
                .dtype = "BF16",
                .prompt_ids_hash = "p",
                .prompts = 8,
                .max_new_tokens = 32,
                .block_size = 8,
                .ignore_eos = true,
                .temperature = 0,
                .top_k = 0,
                .top_p = 1,
                .seed = 1,
                .precision = "exact",
                .chat = "raw",
                .graph_mode = "eager",
                .weights = "checkpoint"};
  r.environment = Machine();
  r.telemetry.device.emplace().pci = "0000:c5:00.0";
  r.telemetry.sources["sclk_mhz"] = "rocm_smi";
  r.telemetry.interval_ms = 100, r.telemetry.samples_file = "x.samples.jsonl";
  r.telemetry.samples_sha256 = std::string(64, 'c'), r.telemetry.lost = "sampler killed";
  SamplesFile& earlier = r.telemetry.earlier_samples.emplace_back();
  earlier.file = "x.20261130T151100Z.samples.jsonl", earlier.sha256 = std::string(64, 'd');
  r.roof.read_gb_s = 221, r.reference = {.ids_hash = "r", .source = "process", .prompts = 8, .identical = 8};
  Process p;
  p.pid_start = "12@34", p.load_s = 1.5, p.peak_rss_bytes = 1 << 28;
  p.sentinel_s.median = 0.7, p.sentinel_s.values = {0.7, std::nullopt, 0.71}, p.sentinel_s.bytes = 1e9;
  p.read_gb_s = 221, p.ratio_to_best = 1, p.decode_tok_s["plain"] = 40;
  r.processes.push_back(p);
  r.legs = {OneLeg(0, "plain", State::cold), OneLeg(1, "dflash2", State::cold),
            OneLeg(2, "dflash2", State::warm), OneLeg(3, "plain", State::warm)};
  Metric m;
  m.value = 41.3, m.ci95 = {40.0, 42.0}, m.n = 4, m.unit = "tok/s", m.better = "higher";
  r.summary["plain"]["decode_tok_s"] = m;
  r.summary["dflash2"]["decode_tok_s"] = m;
  r.speedup.emplace();
  Speedup s;
  s.value = 2.12, s.ci95 = {2.09, 2.15}, s.n = 4, s.all_pairs_value = 2.11, s.process_ratios = {2.1, 2.14};
  s.pairs = 30, s.pairs_all = 32;
  r.speedup->decode = s, r.speedup->prefill = s, r.speedup->e2e = s, r.speedup->by_class["code"] = s;
  r.speedup->break_even_committed_per_round = 1.61;
  return r;
}

}  // namespace warmleg::record
