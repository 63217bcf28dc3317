#include "harness/run/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "backend/decode/chain.h"
#include "backend/decode/simulate.h"
#include "backend/model/random_weights.h"
#include "backend/vt/error.h"
#include "backend/vt/read_probe.h"
#include "harness/run/device_clock.h"
#include "harness/run/devices.h"
#include "harness/run/fault.h"
#include "harness/run/loaded_libraries.h"
#include "harness/run/proc_files.h"

namespace warmleg::run {

namespace {

constexpr uint64_t kMaxProbeBytes = uint64_t{4} << 30;
constexpr double kProbeSeconds = 0.3;
constexpr int64_t kSimulatedRounds = 10'000;  // then the counts begin again

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the telemetry samples

double Seconds(Clock::time_point t) { return std::chrono::duration<double>(t.time_since_epoch()).count(); }

vt::Precision ParsePrecision(const std::string& text) {
  return text == "bf16" ? vt::Precision::bf16 : vt::Precision::exact;
}

void Add(decode::Times& sum, const decode::Times& t) {
  sum.prefill_s += t.prefill_s, sum.ttft_s += t.ttft_s, sum.decode_s += t.decode_s, sum.e2e_s += t.e2e_s;
  sum.draft_s += t.draft_s, sum.select_s += t.select_s, sum.verify_s += t.verify_s;
  sum.commit_s += t.commit_s, sum.host_s += t.host_s, sum.unaccounted_s += t.unaccounted_s;
}

DeviceReply Describe(vt::Backend& backend) {
  const vt::DeviceInfo info = backend.Info();
  return {.device = vt::ToString(info.device),
          .name = info.name,
          .gfx = info.gfx,
          .pci = info.pci,
          .compute_units = info.compute_units,
          .integrated = info.integrated,
          .memory_bytes = info.memory_bytes,
          .peak_gb_s = info.peak_gb_s,
          .top_clock_mhz = info.top_clock_mhz,
          .built_with = info.built_with,
          .runtime = info.runtime,
          .driver = info.driver,
          .memory_kind = std::string(vt::Name(backend.memory_kind()))};
}

}  // namespace

uint64_t PeakRssBytes() { return ReadMemoryField("/proc/self/status", "VmHWM").value_or(0); }

LoadedReply Engine::Load(const LoadRequest& request, const OnProgress& progress) {
  const auto start = Clock::now();
  backend_ = &vt::GetBackend(vt::ParseDevice(request.device));
  const auto tell = [&](const char* what) {
    return [&progress, what](uint64_t done, uint64_t total) {
      progress({.what = what, .done_bytes = done, .total_bytes = total});
    };
  };
  LoadedReply reply;
  model::LoadReport report;
  const bool random = request.weights == "random";
  const auto seed = static_cast<uint64_t>(request.seed);
  target_ = random ? model::MakeRandomTarget(request.target, seed, *backend_, &report, tell("target"))
                   : model::LoadTarget(request.target, *backend_, &report, tell("target"));
  reply.target_hash = report.hash;
  reply.target_bytes = report.bytes;
  reply.vocab = target_->config.vocab;
  reply.dtype = target_->head.dtype == vt::DType::bf16 ? "BF16" : "F32";
  if (!request.draft.empty()) {
    draft_ = random ? model::MakeRandomDraft(request.draft, target_->config, seed, *backend_, &report,
                                             tell("draft"))
                    : model::LoadDraft(request.draft, target_->config, *backend_, &report, tell("draft"));
    reply.draft_hash = report.hash;
    reply.draft_bytes = report.bytes;
    reply.draft_block_size = draft_->config.block_size;
  }
  session_ = std::make_unique<decode::Session>(*target_, draft_ ? &*draft_ : nullptr, request.capacity);
  if (request.committed_per_round > 0)
    session_->chain().SimulateAccepted(
        decode::SimulatedAccepted(request.committed_per_round, seed, kSimulatedRounds));
  reply.can_capture = backend_->can_capture();
  reply.device = Describe(*backend_);
  reply.libraries = LoadedLibraries();
  reply.load_s = Seconds(Clock::now()) - Seconds(start);
  return reply;
}

decode::Generation Engine::Generate(const std::string& arm, const std::vector<int32_t>& prompt,
                                    const decode::Options& options) {
  if (session_ == nullptr) throw ProtocolError("a leg before the checkpoints are loaded");
  return arm == "plain" ? session_->Plain(prompt, options) : session_->DFlash2(prompt, options);
}

std::vector<std::string> Engine::NoteShapes(const std::string& arm, const decode::Generation& generation) {
  std::vector<std::string> fresh;
  const auto note = [&](std::string shape) {
    if (shapes_.insert(shape).second) fresh.push_back(std::move(shape));
  };
  note(fmt::format("{} prefill {}", arm, generation.prompt_ids.size()));
  if (generation.rounds.empty() && generation.counters.rounds > 0) note(fmt::format("{} width 1", arm));
  for (const decode::Round& round : generation.rounds) {
    note(fmt::format("{} width {}", arm, round.drafted.size() + 1));
  }
  return fresh;
}

DoneReply Engine::Warm(const WarmRequest& request) {
  const auto start = Clock::now();
  decode::Options options;
  options.ignore_eos = true;
  options.precision = ParsePrecision(request.precision);
  options.sampling = request.sampling;
  const auto run = [&](const std::string& arm, const std::vector<int32_t>& prompt, int64_t tokens) {
    options.max_new_tokens = std::min(tokens, request.max_new_tokens);
    options.block_size = arm == "plain" ? 1 : request.block_size;
    NoteShapes(arm, Generate(arm, prompt, options));
  };
  for (const std::vector<int32_t>& prompt : request.prompts) {
    run("plain", prompt, 2);
    if (!request.draft_arm.empty()) run(request.draft_arm, prompt, 1);
  }
  if (!request.draft_arm.empty() && !request.prompts.empty()) {
    // With w tokens to make, the first round is exactly w rows wide.
    for (int width = 2; width <= request.block_size; ++width) {
      run(request.draft_arm, request.prompts.front(), width);
    }
  }
  return {.value = Seconds(Clock::now()) - Seconds(start), .peak_rss_bytes = PeakRssBytes()};
}

LegReply Engine::Leg(const LegRequest& request) {
  InjectFault(FaultPoint::leg, request.process, request.index, [this] {
    if (session_ != nullptr) backend_->MeasureClockMhz(session_->chain().queue(), 1e9);  // 30 years
  });
  LegReply reply;
  reply.index = request.index;
  reply.mem_available_bytes = ReadMemoryField("/proc/meminfo", "MemAvailable").value_or(0);
  reply.mem_cached_bytes = ReadMemoryField("/proc/meminfo", "Cached").value_or(0);
  decode::Options options;
  options.max_new_tokens = request.max_new_tokens;
  options.block_size = request.block_size;
  options.ignore_eos = request.ignore_eos;
  options.precision = ParsePrecision(request.precision);
  options.sampling = request.sampling;
  options.record_margins = request.margins;
  std::optional<DeviceClock> clock;
  if (request.clock_interval_ms > 0 && backend_ != nullptr)
    clock.emplace(*backend_, request.clock_interval_ms);
  const std::vector<vt::OpTotals> before = vt::ProviderTotals();
  for (int64_t repeat = 0; repeat < request.repeats; ++repeat) {
    const double start = Seconds(Clock::now());
    decode::Generation g = Generate(request.arm, request.prompt_ids, options);
    reply.spans.push_back({start, start + g.times.prefill_s, start + g.times.e2e_s});
    reply.counters += g.counters;
    Add(reply.times, g.times);
    for (std::string& shape : NoteShapes(request.arm, g)) reply.first_use.push_back(std::move(shape));
    reply.graph = (repeat == 0 || reply.graph) && g.graph;
    reply.graph_replay_mismatch = reply.graph_replay_mismatch || g.graph_replay_mismatch;
    if (reply.graph_refusal.empty()) reply.graph_refusal = g.graph_refusal;
    if (repeat == 0) {
      reply.output_ids = std::move(g.output_ids);
      reply.margins = std::move(g.margins);
      reply.finish = g.finish == decode::Finish::stop ? "stop" : "length";
    } else {
      reply.repeats_equal = reply.repeats_equal && g.output_ids == reply.output_ids;
    }
  }
  if (clock) reply.clock = clock->Stop();
  reply.providers = vt::Difference(vt::ProviderTotals(), before);
  AlterLeg(request.process, reply);
  const int64_t context =
      static_cast<int64_t>(request.prompt_ids.size()) + static_cast<int64_t>(reply.output_ids.size()) / 2;
  reply.read_bytes_per_round = ReadBytesPerRound(request.arm != "plain" && request.block_size != 1, context);
  reply.peak_rss_bytes = PeakRssBytes();
  return reply;
}

double Engine::ReadBytesPerRound(bool drafting, int64_t context) const {
  const decode::Chain& chain = session_->chain();
  double bytes = static_cast<double>(chain.target().StepBytes(context));
  if (drafting) bytes += static_cast<double>(chain.draft()->RoundBytes(context));
  return bytes;
}

SentinelReply Engine::Sentinel(const SentinelRequest& request) {
  if (!target_) throw ProtocolError("a sentinel before the checkpoints are loaded");
  if (sentinel_ == nullptr) {
    const int64_t steps = request.steps > 0
                              ? request.steps
                              : decode::StepsForSeconds(*target_, request.prompt_ids, request.seconds);
    sentinel_ = std::make_unique<decode::Sentinel>(*target_, request.prompt_ids, steps);
    sentinel_->Run();  // first use of its buffers
  }
  const double seconds = sentinel_->Run();
  return {.seconds = seconds, .steps = sentinel_->steps(), .bytes = sentinel_->bytes()};
}

DoneReply Engine::Roof(const RoofRequest& request) {
  if (backend_ == nullptr) throw ProtocolError("a probe before the checkpoints are loaded");
  const auto queue = backend_->CreateQueue();
  vt::ReadProbe probe(*queue, std::min(request.bytes, kMaxProbeBytes));
  return {.value = probe.Best(kProbeSeconds), .peak_rss_bytes = PeakRssBytes()};
}

}  // namespace warmleg::run
