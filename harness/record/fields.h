// The fields of every record, listed once for reading and for writing. io(name, field) is a field of the
// agreement: always written, refused when missing. io.May(name, field) may be absent in a file.
#pragma once

#include <concepts>
#include <type_traits>

#include "harness/record/result.h"
#include "harness/record/watch.h"

namespace warmleg::record {

template <class S, class T>
concept Is = std::same_as<std::remove_const_t<S>, T>;

template <class Io, Is<Reason> S>
void Fields(Io& io, S& s) {
  io("code", s.code), io("text", s.text), io("remedy", s.remedy);
  io("value", s.value), io("limit", s.limit), io("process", s.process), io("leg", s.leg);
}

template <class Io, Is<ClockStat> S>
void Fields(Io& io, S& s) {
  io("p5", s.p5), io("p50", s.p50), io("p95", s.p95), io("mean", s.mean);
  io("first_third", s.first_third), io("last_third", s.last_third);
}

template <class Io, Is<ClockPhase> S>
void Fields(Io& io, S& s) {
  io("samples", s.samples), io("sclk_mhz", s.sclk_mhz), io("mclk_mhz", s.mclk_mhz);
  io.May("fclk_mhz", s.fclk_mhz);
}

template <class Io, Is<ClockWindow> S>
void Fields(Io& io, S& s) {
  io("verified", s.verified), io("samples", s.samples);
  io("sclk_mhz", s.sclk_mhz), io("mclk_mhz", s.mclk_mhz), io("power_w", s.power_w);
  io("energy_j", s.energy_j), io("perf_level", s.perf_level);
  io.May("samples_all", s.samples_all), io.May("begin_ns", s.begin_ns), io.May("end_ns", s.end_ns);
  io.May("fclk_mhz", s.fclk_mhz), io.May("temp_c", s.temp_c);
  io.May("busy_percent", s.busy_percent), io.May("top_sclk_mhz", s.top_sclk_mhz);
  io.May("perf_levels", s.perf_levels), io.May("power_caps_w", s.power_caps_w);
  io.May("thermal_throttle", s.thermal_throttle), io.May("hw_slowdown", s.hw_slowdown);
  io.May("power_capped", s.power_capped), io.May("other_clients", s.other_clients);
  io.May("cached_bytes", s.cached_bytes), io.May("sampler_cpu_share", s.sampler_cpu_share);
  io.May("phases", s.phases);
}

template <class Io, Is<Counters> S>
void Fields(Io& io, S& s) {
  io("rounds", s.rounds), io("drafted", s.drafted), io("accepted", s.accepted), io("bonus", s.bonus);
  io("committed", s.committed), io("stop_trimmed", s.stop_trimmed), io("budget_trimmed", s.budget_trimmed);
  io("prefill_made", s.prefill_made), io("output_tokens", s.output_tokens);
  io.May("prompt_tokens", s.prompt_tokens);
  io("rounds_with_accepted", s.rounds_with_accepted), io("accepted_at", s.accepted_at);
}

template <class Io, Is<Times> S>
void Fields(Io& io, S& s) {
  io("prefill_s", s.prefill_s), io("ttft_s", s.ttft_s), io("decode_s", s.decode_s), io("e2e_s", s.e2e_s);
  io.May("draft_s", s.draft_s), io.May("select_s", s.select_s), io.May("verify_s", s.verify_s);
  io.May("commit_s", s.commit_s), io.May("host_s", s.host_s), io.May("unaccounted_s", s.unaccounted_s);
}

template <class Io, Is<Rates> S>
void Fields(Io& io, S& s) {
  io("decode_tok_s", s.decode_tok_s), io("prefill_tok_s", s.prefill_tok_s), io("e2e_tok_s", s.e2e_tok_s);
  io("accepted_per_drafted", s.accepted_per_drafted), io("accepted_per_round", s.accepted_per_round);
  io("committed_per_round", s.committed_per_round);
}

template <class Io, Is<Provider> S>
void Fields(Io& io, S& s) {
  io("op", s.op), io("device", s.device), io("asked", s.asked), io("provider", s.provider);
  io("calls", s.calls), io("fallbacks", s.fallbacks), io("fallback_reason", s.fallback_reason);
  io("bytes", s.bytes);
}

template <class Io, Is<Divergence> S>
void Fields(Io& io, S& s) {
  io("index", s.index), io("reference_token", s.reference_token), io("token", s.token), io("gap", s.gap);
}

template <class Io, Is<Leg> S>
void Fields(Io& io, S& s) {
  io("process", s.process), io("index", s.index), io.May("pair", s.pair);
  io("arm", s.arm), io("prompt", s.prompt), io("class", s.prompt_class);
  io("state", s.state), io("valid", s.valid), io.May("counted", s.counted), io("reasons", s.reasons);
  io("repeats", s.repeats), io.May("graph_mode", s.graph_mode);
  io("counters", s.counters), io("times", s.times), io("rates", s.rates);
  io.May("read_bytes_per_round", s.read_bytes_per_round);
  io("clocks", s.clocks), io("providers", s.providers);
  io("output_sha256", s.output_sha256), io.May("divergence", s.divergence);
}

template <class Io, Is<Workload> S>
void Fields(Io& io, S& s) {
  io("target_hash", s.target_hash), io("draft_hash", s.draft_hash), io("dtype", s.dtype);
  io("prompt_ids_hash", s.prompt_ids_hash), io("prompts", s.prompts);
  io("max_new_tokens", s.max_new_tokens), io("block_size", s.block_size), io("ignore_eos", s.ignore_eos);
  io("temperature", s.temperature), io("top_k", s.top_k), io("top_p", s.top_p), io("seed", s.seed);
  io("precision", s.precision), io("chat", s.chat), io("graph_mode", s.graph_mode), io("weights", s.weights);
}

template <class Io, Is<Gpu> S>
void Fields(Io& io, S& s) {
  io("name", s.name), io("gfx", s.gfx), io("pci", s.pci), io("cu", s.cu), io("integrated", s.integrated);
  io("vbios", s.vbios), io("firmware", s.firmware);
  io.May("vram_bytes", s.vram_bytes), io.May("gtt_bytes", s.gtt_bytes), io.May("peak_gb_s", s.peak_gb_s);
}

template <class Io, Is<Rocm> S>
void Fields(Io& io, S& s) {
  io("build", s.build), io("loaded", s.loaded), io("runtime", s.runtime), io("driver", s.driver);
}

template <class Io, Is<Cuda> S>
void Fields(Io& io, S& s) {
  io("build", s.build), io("runtime", s.runtime), io("driver", s.driver);
}

template <class Io, Is<Library> S>
void Fields(Io& io, S& s) {
  io("path", s.path), io("soname", s.soname), io("build_id", s.build_id);
}

template <class Io, Is<Environment> S>
void Fields(Io& io, S& s) {
  io("boot_id", s.boot_id), io("kernel", s.kernel), io("cpu", s.cpu), io("ram_bytes", s.ram_bytes);
  io("compiler", s.compiler), io("git", s.git), io("gpu", s.gpu), io("rocm", s.rocm);
  io("libraries", s.libraries), io("variables", s.variables);
  io.May("platform_profile", s.platform_profile), io.May("tuned_profile", s.tuned_profile);
  io.May("power_supply", s.power_supply), io.May("cpu_governor", s.cpu_governor);
  io.May("cached_bytes", s.cached_bytes), io.May("amdgpu_parameters", s.amdgpu_parameters);
  io.May("other_clients", s.other_clients), io.May("unreadable", s.unreadable), io.May("cuda", s.cuda);
}

template <class Io, Is<TelemetryDevice> S>
void Fields(Io& io, S& s) {
  io("pci", s.pci);
}

template <class Io, Is<SamplesFile> S>
void Fields(Io& io, S& s) {
  io("file", s.file), io("sha256", s.sha256);
}

template <class Io, Is<Telemetry> S>
void Fields(Io& io, S& s) {
  io("device", s.device), io("sources", s.sources), io("interval_ms", s.interval_ms);
  io("samples_file", s.samples_file), io("samples_sha256", s.samples_sha256), io("lost", s.lost);
  io.May("earlier_samples", s.earlier_samples);
}

template <class Io, Is<Roof> S>
void Fields(Io& io, S& s) {
  io("read_gb_s", s.read_gb_s);
}

template <class Io, Is<Reference> S>
void Fields(Io& io, S& s) {
  io("ids_hash", s.ids_hash), io("source", s.source);
  io.May("prompts", s.prompts), io.May("identical", s.identical);
}

template <class Io, Is<Sentinel> S>
void Fields(Io& io, S& s) {
  io("median", s.median), io("values", s.values), io.May("bytes", s.bytes);
}

template <class Io, Is<Process> S>
void Fields(Io& io, S& s) {
  io("index", s.index), io("pid_start", s.pid_start), io("load_s", s.load_s);
  io("peak_rss_bytes", s.peak_rss_bytes), io("sentinel_s", s.sentinel_s);
  io.May("read_gb_s", s.read_gb_s), io("ratio_to_best", s.ratio_to_best);
  io.May("decode_tok_s", s.decode_tok_s), io.May("prefill_tok_s", s.prefill_tok_s);
  io.May("e2e_tok_s", s.e2e_tok_s);
}

template <class Io, Is<Metric> S>
void Fields(Io& io, S& s) {
  io("value", s.value), io("ci95", s.ci95), io("n", s.n), io("unit", s.unit), io("better", s.better);
}

template <class Io, Is<Speedup> S>
void Fields(Io& io, S& s) {
  io("value", s.value), io("ci95", s.ci95), io("n", s.n), io("all_pairs_value", s.all_pairs_value);
  io.May("process_ratios", s.process_ratios), io.May("pairs", s.pairs), io.May("pairs_all", s.pairs_all);
  io.May("ratios_only", s.ratios_only), io.May("unit", s.unit), io.May("better", s.better);
}

template <class Io, Is<Speedups> S>
void Fields(Io& io, S& s) {
  io("decode", s.decode), io.May("prefill", s.prefill), io.May("e2e", s.e2e), io("by_class", s.by_class);
  io("break_even_committed_per_round", s.break_even_committed_per_round);
}

template <class Io, Is<Result> S>
void Fields(Io& io, S& s) {
  io("schema", s.schema), io("created", s.created), io("complete", s.complete), io("verdict", s.verdict);
  io("reasons", s.reasons), io("warnings", s.warnings), io("scenario", s.scenario);
  io("workload", s.workload), io("environment", s.environment), io("telemetry", s.telemetry);
  io("roof", s.roof), io("reference", s.reference), io("processes", s.processes), io("legs", s.legs);
  io("summary", s.summary), io("speedup", s.speedup);
}

template <class Io, Is<WatchSecond> S>
void Fields(Io& io, S& s) {
  io("second", s.second), io("samples", s.samples), io("sclk_mhz", s.sclk_mhz), io("mclk_mhz", s.mclk_mhz);
  io("power_w", s.power_w), io("temp_c", s.temp_c), io("busy_percent", s.busy_percent), io("rules", s.rules);
}

template <class Io, Is<WatchRate> S>
void Fields(Io& io, S& s) {
  io("name", s.name), io("value", s.value), io("verified", s.verified), io("text", s.text);
}

template <class Io, Is<Watch> S>
void Fields(Io& io, S& s) {
  io("schema", s.schema), io("created", s.created), io("command", s.command);
  io("exit_code", s.exit_code), io("signal", s.signal), io("duration_s", s.duration_s);
  io("verdict", s.verdict), io("reasons", s.reasons), io("rates", s.rates), io("telemetry", s.telemetry);
  io("environment", s.environment), io("clocks", s.clocks), io("seconds", s.seconds);
}

}  // namespace warmleg::record
