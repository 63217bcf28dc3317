// The board beside the campaign: when it is watched, the window of each leg, the file of all samples.
#include <cmath>
#include <filesystem>

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
}

void Campaign::AddWindow(const LegReply& reply, record::Leg& leg) {
  if (!watcher_.started() || reply.spans.empty()) return;
  std::vector<telemetry::PhaseSpan> phases;
  for (const SpanReply& span : reply.spans) {
    phases.push_back({"prefill", Nanoseconds(span.start), Nanoseconds(span.prefill_end)});
    phases.push_back({"decode", Nanoseconds(span.prefill_end), Nanoseconds(span.end)});
  }
  const std::optional<int64_t> cached = leg.clocks.cached_bytes;
  leg.clocks =
      watcher_.WindowFor(Nanoseconds(reply.spans.front().start), Nanoseconds(reply.spans.back().end), phases);
  leg.clocks.cached_bytes = cached;
}

// NAME.samples.jsonl beside NAME.json; a resumed run keeps the samples of the one before it.
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
