#include "harness/run/to_record.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <ctime>

#include "harness/record/sha256.h"
#include "harness/run/hash.h"

namespace warmleg::run {

namespace {

std::string Utc(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::string text(32, '\0');
  text.resize(std::strftime(text.data(), text.size(), format, &utc));
  return text;
}

record::Counters ToRecord(const decode::Counters& c, int64_t prompt_tokens, int block_size) {
  record::Counters out;
  out.rounds = c.rounds, out.drafted = c.drafted, out.accepted = c.accepted, out.bonus = c.bonus;
  out.committed = c.committed, out.stop_trimmed = c.stop_trimmed, out.budget_trimmed = c.budget_trimmed;
  out.prefill_made = c.prefill_made, out.output_tokens = c.output_tokens;
  out.prompt_tokens = prompt_tokens;
  if (block_size > 1) {  // a plain step accepts nothing, so it has no table
    const auto rows = static_cast<size_t>(std::min(block_size, vt::kMaxRows));
    out.rounds_with_accepted.assign(c.rounds_with_accepted.begin(), c.rounds_with_accepted.begin() + rows);
    out.accepted_at.assign(c.accepted_at.begin(), c.accepted_at.begin() + (rows - 1));
  }
  return out;
}

record::Times ToRecord(const decode::Times& t, bool drafting) {
  record::Times out;
  out.prefill_s = t.prefill_s, out.ttft_s = t.ttft_s, out.decode_s = t.decode_s, out.e2e_s = t.e2e_s;
  if (drafting) {
    out.draft_s = t.draft_s, out.select_s = t.select_s, out.verify_s = t.verify_s, out.commit_s = t.commit_s;
    out.host_s = t.host_s, out.unaccounted_s = t.unaccounted_s;
  }
  return out;
}

record::Provider ToRecord(const vt::OpTotals& totals) {
  record::Provider out;
  out.op = totals.op, out.device = vt::ToString(totals.device);
  out.asked = totals.asked, out.provider = totals.provider;
  out.calls = static_cast<int64_t>(totals.calls), out.fallbacks = static_cast<int64_t>(totals.fallbacks);
  if (!totals.fallback_reason.empty()) out.fallback_reason = totals.fallback_reason;
  out.bytes = static_cast<int64_t>(totals.bytes);
  return out;
}

}  // namespace

std::string UtcNow() { return Utc("%Y-%m-%dT%H:%M:%SZ"); }
std::string UtcNowCompact() { return Utc("%Y%m%dT%H%M%SZ"); }

void FillLeg(const LegRequest& request, const LegReply& reply, record::Leg& leg) {
  const bool drafting = request.block_size != 1;
  leg.repeats = request.repeats;
  const auto prompt_tokens = static_cast<int64_t>(request.prompt_ids.size()) * request.repeats;
  leg.counters = ToRecord(reply.counters, prompt_tokens, drafting ? request.block_size : 1);
  leg.times = ToRecord(reply.times, drafting);
  leg.read_bytes_per_round = reply.read_bytes_per_round;
  for (const vt::OpTotals& totals : reply.providers) leg.providers.push_back(ToRecord(totals));
  leg.output_sha256 = record::Sha256OfIds(reply.output_ids);
  if (reply.mem_cached_bytes > 0) leg.clocks.cached_bytes = static_cast<int64_t>(reply.mem_cached_bytes);
  if (leg.graph_mode) {
    leg.graph_mode = reply.graph ? "graph" : "eager";
    if (!reply.graph_refusal.empty()) {
      leg.reasons.push_back(
          record::MakeReason(record::Code::graph_eager, nullptr, nullptr, reply.graph_refusal));
    }
  }
  if (reply.graph_replay_mismatch) {
    leg.reasons.push_back(record::MakeReason(record::Code::graph_replay_mismatch));
  }
  if (!reply.first_use.empty()) {
    leg.state = record::State::cold;
    leg.reasons.push_back(record::MakeReason(record::Code::first_use_in_leg, nullptr, nullptr,
                                             fmt::format("{}", fmt::join(reply.first_use, ", "))));
  }
}

record::Workload MakeWorkload(const Plan& plan) {
  record::Workload out;
  std::vector<std::vector<int32_t>> ids;
  for (const Prompt& prompt : plan.prompts) ids.push_back(prompt.ids);
  out.prompt_ids_hash = IdListsSha256(ids);
  out.prompts = static_cast<int64_t>(plan.prompts.size());
  out.max_new_tokens = plan.max_new_tokens;
  out.block_size = plan.block_size;
  out.ignore_eos = plan.ignore_eos;
  out.temperature = plan.sampling.temperature;
  out.top_k = plan.sampling.top_k, out.top_p = plan.sampling.top_p;
  out.seed = static_cast<int64_t>(plan.sampling.seed);
  out.precision = plan.precision;
  out.chat = plan.chat;
  out.graph_mode = "eager";
  out.weights = plan.random_weights ? "random" : "checkpoint";
  return out;
}

void AddLoaded(const LoadedReply& loaded, const Plan& plan, record::Workload& out) {
  out.target_hash = loaded.target_hash;
  if (!loaded.draft_hash.empty()) out.draft_hash = loaded.draft_hash;
  // Drawn counts stand for what the draft would have been worth.
  if (out.draft_hash && plan.committed_per_round)
    *out.draft_hash =
        record::Sha256(fmt::format("{}, {} committed a round", *out.draft_hash, *plan.committed_per_round))
            .substr(0, 32);
  out.dtype = loaded.dtype;
  out.block_size = plan.block_size > 0 ? plan.block_size : loaded.draft_block_size;
}

}  // namespace warmleg::run
