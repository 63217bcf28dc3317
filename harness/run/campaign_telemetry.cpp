// The board beside the campaign: when it is watched, the window of each leg, the file of all samples.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backend/vt/error.h"
#include "harness/run/campaign.h"
#include "harness/run/to_record.h"

namespace warmleg::run {

namespace {

int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

}  // namespace

void Campaign::StartWatching(const std::string& pci) {
  telemetry::WatchOptions options;
  options.pci = pci;
  options.interval_ms = static_cast<int>(plan_.interval_ms);
  if (const auto level = telemetry::PerfLevelFromName(plan_.perf_level)) options.perf_level = *level;
  watcher_.Start(options);
  if (!earlier_pci_.empty() && earlier_pci_ != watcher_.pci()) {
    throw vt::InputError(
        fmt::format("cannot resume: telemetry.device: {} in the file, {} now", earlier_pci_, watcher_.pci()));
  }
  board_ = watcher_.Fingerprint({});
  AddBoard();
}

// The board watched describes the GPU of the environment, unless another GPU computes.
void Campaign::AddBoard() {
  if (!board_) return;
  const auto& gpu = result_.environment.gpu;
  if (!gpu || !gpu->pci || gpu->pci == board_->gpu.pci) telemetry::AddBoard(*board_, result_.environment);
}

// Whether the board's sensors tell its SCLK: by the latest second of samples.
bool Campaign::SensorTellsClock() const {
  if (!watcher_.started() || watcher_.lost()) return false;
  const int64_t now = telemetry::MonotonicNs();
  const auto samples =
      watcher_.Samples(now - std::max<int64_t>(plan_.interval_ms * 3, 1000) * 1'000'000, now);
  return std::any_of(samples.begin(), samples.end(),
                     [](const record::ClockSample& s) { return s.sclk_mhz.value.has_value(); });
}

// What the worker asked the device, where no sensor told.
void Campaign::AddDeviceClock(const LegReply& reply, const std::vector<telemetry::PhaseSpan>& phases,
                              record::ClockWindow& window) {
  if (reply.clock.empty() || window.sclk_mhz.p50) return;
  std::vector<telemetry::TimedValue> mhz;
  for (const ClockReply& one : reply.clock) mhz.push_back({Nanoseconds(one.at), one.mhz});
  const double top = worker_->loaded().device.top_clock_mhz;
  telemetry::UseDeviceClock(mhz, top > 0 ? std::optional(top) : std::nullopt,
                            Nanoseconds(reply.spans.front().start), Nanoseconds(reply.spans.back().end),
                            phases, plan_.interval_ms * 1'000'000, window);
  device_clock_ = true;
}

void Campaign::AddWindow(const LegReply& reply, record::Leg& leg) {
  if (reply.spans.empty()) return;
  std::vector<telemetry::PhaseSpan> phases;
  for (const SpanReply& span : reply.spans) {
    phases.push_back({"prefill", Nanoseconds(span.start), Nanoseconds(span.prefill_end)});
    phases.push_back({"decode", Nanoseconds(span.prefill_end), Nanoseconds(span.end)});
  }
  const std::optional<int64_t> cached = leg.clocks.cached_bytes;
  const int64_t begin_ns = Nanoseconds(reply.spans.front().start);
  const int64_t end_ns = Nanoseconds(reply.spans.back().end);
  if (watcher_.started()) {
    leg.clocks = watcher_.WindowFor(begin_ns, end_ns, phases);
    leg.clocks.cached_bytes = cached;
    leg.clocks.other_clients = watcher_.OtherClients({worker_->pid()});
  }
  leg.clocks.begin_ns = begin_ns, leg.clocks.end_ns = end_ns;
  AddDeviceClock(reply, phases, leg.clocks);
}

// A resumed run writes its samples to a file of its own and names those of the runs before it.
void Campaign::KeepSamplesOf(const record::Result& earlier) {
  namespace fs = std::filesystem;
  if (earlier.telemetry.device) earlier_pci_ = earlier.telemetry.device->pci;
  std::vector<record::SamplesFile>& all = result_.telemetry.earlier_samples;
  all = earlier.telemetry.earlier_samples;
  if (earlier.telemetry.samples_file) {
    record::SamplesFile& last = all.emplace_back();
    last.file = *earlier.telemetry.samples_file;
    last.sha256 = earlier.telemetry.samples_sha256.value_or("");
  }
  const fs::path from = fs::absolute(options_.resumed_from).parent_path();
  const fs::path to = fs::absolute(options_.out).parent_path();
  for (record::SamplesFile& samples : all)
    samples.file = (from / samples.file).lexically_proximate(to).string();
}

// NAME.samples.jsonl beside NAME.json.
void Campaign::WriteSamples() {
  if (!watcher_.started()) return;
  std::filesystem::path file(options_.out);
  if (samples_file_.empty()) {
    const std::string part = resumed_ ? "." + UtcNowCompact() : "";
    samples_file_ = file.stem().string() + part + ".samples.jsonl";
  }
  result_.telemetry.samples_file = samples_file_;
  result_.telemetry.samples_sha256 = watcher_.WriteSidecar(file.replace_filename(samples_file_).string());
}

}  // namespace warmleg::run
