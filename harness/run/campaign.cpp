#include "harness/run/campaign.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include "backend/vt/error.h"
#include "harness/judge/campaign.h"
#include "harness/judge/output_rules.h"
#include "harness/run/fingerprint.h"
#include "harness/run/hash.h"
#include "harness/run/interrupt.h"
#include "harness/run/resume.h"
#include "harness/run/to_record.h"
#include "harness/store/store.h"

namespace warmleg::run {

namespace {

using record::Code;
using record::MakeReason;

constexpr int kMaxFailuresInARow = 2;   // of starting a worker, before the campaign is given up
constexpr size_t kSentinelPrompt = 16;  // ids of the first prompt that the sentinel starts from

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Campaign::Campaign(const Plan& plan, CampaignOptions options, Progress& progress)
    : plan_(plan), options_(std::move(options)), progress_(progress), pairs_(plan.pairs), started_(Now()) {
  policy_ = judge::MakePolicy(vt::ToString(plan.device), plan.demo, !options_.telemetry_device.empty(),
                              plan.allow_degenerate, plan.warmup_pairs);
  policy_.drafting_arm = plan.draft_arm;
  result_.created = UtcNow();
  result_.scenario = plan.scenario;
  result_.workload = MakeWorkload(plan);
  result_.environment = HostFingerprint();
  if (plan.committed_per_round)
    campaign_reasons_.push_back(MakeReason(Code::made_up_accepted, *plan.committed_per_round, nullptr,
                                           fmt::format("{} committed a round", *plan.committed_per_round)));
}

Campaign::~Campaign() = default;

bool Campaign::OnGpu() const {
  return plan_.device.type == vt::DeviceType::rocm || plan_.device.type == vt::DeviceType::cuda;
}

void Campaign::Resume(record::Result earlier) {
  RefuseResume(earlier);
  result_.created = earlier.created;
  result_.legs = std::move(earlier.legs);
  result_.processes = std::move(earlier.processes);
  result_.workload = earlier.workload;  // the loaded one must equal it
  resumed_ = true;
  KeepSamplesOf(earlier);
  // What was seen while legs ran; the judge finds the rest again.
  for (record::Reason& warning : earlier.warnings) {
    const std::set<Code> kept = {Code::degenerate_output, Code::near_tie_divergence, Code::rocm_smi_aborted,
                                 Code::perf_level_not_set};
    if (kept.contains(warning.code)) campaign_warnings_.push_back(std::move(warning));
  }
  for (const record::Leg& leg : result_.legs) repeats_ = std::max(repeats_, leg.repeats);
}

void Campaign::RefuseResume(const record::Result& earlier) const {
  std::vector<std::string> why = WhyNotResume(earlier, result_);
  const bool on_gpu = OnGpu();
  if (!on_gpu && earlier.telemetry.device.has_value() != !options_.telemetry_device.empty()) {
    why.push_back(fmt::format("telemetry.device: {} in the file, {} now",
                              earlier.telemetry.device ? earlier.telemetry.device->pci : "none",
                              options_.telemetry_device.empty() ? "none" : options_.telemetry_device));
  }
  if (!why.empty()) throw vt::InputError(fmt::format("cannot resume: {}", fmt::join(why, "; ")));
}

// ---- the stages of a run

Ending Campaign::Measure() {
  Ending ending = Ending::complete;
  try {
    if (!options_.telemetry_device.empty()) StartWatching(options_.telemetry_device);
    EnsureReference();
    int64_t measured = 0;
    for (int64_t process = 0; process < plan_.processes; ++process) {
      Slot slot = SlotFor(process);
      if (slot.prompts.empty()) continue;  // an earlier run of this campaign has done it
      if (measured++ == options_.processes_now) {
        ending = Ending::paused;
        break;
      }
      MeasureProcess(std::move(slot));
      if (worker_ != nullptr) worker_->Stop();
      worker_.reset();
      JudgeAndWrite();
    }
  } catch (const InterruptedError&) {
    ending = Ending::interrupted;
  } catch (const WorkerFailure& failure) {
    if (result_.legs.empty())
      throw vt::EnvironmentError(fmt::format("{}: {}", Name(failure.code), failure.text));
    ending = failure.code == Code::gpu_hang ? Ending::hung : Ending::stopped;
    campaign_reasons_.push_back(MakeReason(failure.code, nullptr, nullptr, failure.text));
  } catch (const Stopped& stopped) {
    ending = Ending::stopped;
    campaign_reasons_.push_back(stopped.reason);
  }
  worker_.reset();
  watcher_.Stop();  // restores the board before minutes go into anything else
  Finish(ending);
  return ending;
}

void Campaign::Finish(Ending ending) {
  result_.complete = ending == Ending::complete;
  if (ending == Ending::interrupted) campaign_reasons_.push_back(MakeReason(Code::interrupted));
  if (pairs_ < plan_.pairs) {
    campaign_warnings_.push_back(MakeReason(Code::budget_exhausted, pairs_, plan_.pairs, "pairs a process"));
  }
  JudgeAndWrite();
}

void Campaign::Judge() {
  const auto graph = [](const record::Leg& leg) { return leg.graph_mode == "graph"; };
  const bool all = !result_.legs.empty() && std::all_of(result_.legs.begin(), result_.legs.end(), graph);
  result_.workload.graph_mode = all ? "graph" : "eager";
  result_.reasons = campaign_reasons_;
  result_.warnings = campaign_warnings_;
  if (watcher_.started()) {
    watcher_.Describe(result_.telemetry);
    for (record::Reason& reason : watcher_.Warnings()) {
      auto& list = reason.code == Code::telemetry_lost ? result_.reasons : result_.warnings;
      list.push_back(std::move(reason));
    }
  }
  if (device_clock_) result_.telemetry.sources["sclk_mhz"] = record::Name(record::Source::device);
  judge::Judge(result_, policy_);
  // A rule that stopped the campaign is a reason of the campaign too; the judge keeps those of the legs
  // alone.
  for (const record::Reason& reason : campaign_reasons_) {
    if (!record::Has(result_.reasons, reason.code)) result_.reasons.push_back(reason);
  }
}

void Campaign::JudgeAndWrite() {
  WriteSamples();
  Judge();
  store::WriteResult(options_.out, result_, options_.force || written_);
  written_ = true;
}

// ---- workers

std::unique_ptr<WorkerSession> Campaign::StartWorker(int64_t process) {
  auto worker =
      std::make_unique<WorkerSession>(plan_, true, [this](const ProgressReply& p) { progress_.Load(p); });
  const LoadedReply& loaded = worker->loaded();
  const record::Workload before = result_.workload;
  AddLoaded(loaded, plan_, result_.workload);
  if (resumed_ && (before.target_hash != result_.workload.target_hash ||
                   before.draft_hash != result_.workload.draft_hash)) {
    throw vt::InputError("cannot resume: the checkpoints' hashes differ from those in the file");
  }
  AddWorkerFingerprint(loaded, result_.environment);
  block_size_ = static_cast<int>(result_.workload.block_size);
  const bool watch = OnGpu() && options_.telemetry_device.empty();
  if (watch && !watcher_.started()) {
    try {
      StartWatching(loaded.device.pci);
    } catch (const vt::EnvironmentError& e) {  // clocks nobody can read fail no leg
      progress_.Line(fmt::format("telemetry: {}", e.what()));
    }
  }
  AddBoard();
  progress_.Line(
      fmt::format("process {}/{}  loaded in {:.2f} s", process + 1, plan_.processes, loaded.load_s));
  return worker;
}

void Campaign::EnsureReference() {
  // Sampled arms agree in distribution, not token by token: there is nothing to compare ids with.
  if (plan_.made_up() || plan_.sampling.on()) {
    result_.reference.source = "not_applicable";
    return;
  }
  ReferenceKey key;
  for (const Prompt& prompt : plan_.prompts) key.prompts.push_back(prompt.ids);
  key.max_new_tokens = plan_.max_new_tokens;
  key.ignore_eos = plan_.ignore_eos;
  key.precision = plan_.precision;
  key.build = BuildFingerprint();
  for (int failures = 0;;) {
    try {
      std::unique_ptr<WorkerSession> worker = StartWorker(0);
      key.weights = worker->loaded().target_hash;
      key.device = worker->loaded().device.device;
      key.device_name = worker->loaded().device.name;
      reference_ = ReadCached(CacheFolder(), key);
      if (reference_) {
        worker_ = std::move(worker);  // it made no leg yet, so it can measure
      } else {
        MeasureReference(*worker);
        worker->Stop();
        if (const auto problem = WriteCached(CacheFolder(), key, *reference_)) {
          progress_.Line(fmt::format("the reference is not kept: {}", *problem));
        }
      }
      break;
    } catch (const WorkerFailure& failure) {
      reference_.reset();
      if (failure.code == Code::gpu_hang) throw;
      progress_.Line(fmt::format("reference: {}: {}", Name(failure.code), failure.text));
      if (++failures < kMaxFailuresInARow) continue;
      campaign_warnings_.push_back(MakeReason(Code::reference_unavailable, nullptr, nullptr, failure.text));
      return;
    }
  }
  std::vector<std::vector<int32_t>> outputs;
  for (const ReferenceOutput& output : reference_->outputs) outputs.push_back(output.ids);
  result_.reference.ids_hash = IdListsSha256(outputs);
  result_.reference.source = reference_->source;
}

void Campaign::MeasureReference(WorkerSession& worker) {
  reference_.emplace();
  reference_->source = "process";
  for (const Prompt& prompt : plan_.prompts) {
    LegRequest request = RequestFor("plain", prompt);
    request.process = -1;
    request.margins = true;
    LegReply reply = worker.Leg(request);
    progress_.Passing(fmt::format("reference  {}", prompt.id));
    reference_->outputs.push_back({std::move(reply.output_ids), std::move(reply.margins)});
  }
}

LegRequest Campaign::RequestFor(const std::string& arm, const Prompt& prompt) const {
  LegRequest request;
  request.arm = arm;
  request.prompt_ids = prompt.ids;
  request.max_new_tokens = plan_.max_new_tokens;
  request.block_size = arm == "plain" ? 1 : block_size_;
  request.ignore_eos = plan_.ignore_eos;
  request.precision = plan_.precision;
  request.sampling = plan_.sampling;
  request.sampling.request = static_cast<int32_t>(&prompt - plan_.prompts.data());
  return request;
}

record::Process& Campaign::ProcessRecord(int64_t index) {
  const auto same = [&](const record::Process& p) { return p.index == index; };
  const auto it = std::find_if(result_.processes.begin(), result_.processes.end(), same);
  if (it != result_.processes.end()) return *it;
  result_.processes.emplace_back().index = index;
  return result_.processes.back();
}

// A worker with weights, its probe and its warm-up, ready for the next pair of the slot.
void Campaign::Prepare(Slot& slot) {
  if (worker_ != nullptr && slot.warm) return;
  double start = Now();
  if (worker_ == nullptr) {
    worker_ = StartWorker(slot.process);
  } else {
    start -= worker_->loaded().load_s;  // the one that looked for the reference
  }
  record::Process& process = ProcessRecord(slot.process);
  process.pid_start = worker_->PidStart();
  process.load_s = worker_->loaded().load_s;
  process.read_gb_s = worker_->Roof();
  if (plan_.warmup_pairs > 0) worker_->Warm();
  TakeSentinel(slot);
  for (int64_t i = 0; i < plan_.warmup_pairs; ++i) {
    MeasurePair(slot, static_cast<size_t>(i) % plan_.prompts.size(), true);
    if (worker_ == nullptr) throw last_failure_;
    TakeSentinel(slot);
  }
  slot.warm = true;
  start_s_ = Now() - start;
  if (repeats_ == 0) Calibrate();
}

// Repeats and, with a budget, the number of pairs, from the first warm-up pair; fixed for the whole campaign.
void Campaign::Calibrate() {
  std::map<std::string, double> leg_s;
  if (plan_.warmup_pairs > 0) {
    for (const record::Leg& leg : result_.legs) leg_s[leg.arm] = leg.times.e2e_s.value_or(0);
  } else {
    for (const std::string& arm : {std::string("plain"), plan_.draft_arm}) {
      leg_s[arm] = worker_->Leg(RequestFor(arm, plan_.prompts.front())).times.e2e_s;
    }
  }
  double shortest = 1e9;
  double pair_s = sentinel_s_;
  for (const auto& [arm, seconds] : leg_s) shortest = std::min(shortest, seconds);
  repeats_ = RepeatsFor(plan_.min_leg_s, shortest);
  for (const auto& [arm, seconds] : leg_s) pair_s += seconds * static_cast<double>(repeats_);
  if (options_.budget_s) {
    const double left = *options_.budget_s - (Now() - started_) + start_s_;
    pairs_ = PairsWithin(left, plan_.processes, start_s_, pair_s, plan_.pairs);
    if (pairs_ < plan_.pairs) {
      progress_.Line(fmt::format("budget: {} of {} pairs a process", pairs_, plan_.pairs));
    }
  }
}

// ---- pairs and legs

// What is left of a process: all of it, or what an earlier run of this campaign did not reach.
Campaign::Slot Campaign::SlotFor(int64_t process) {
  Slot slot;
  slot.process = process;
  const auto cold_by_plan = [&](const record::Leg* leg) {
    return leg == nullptr || record::Has(leg->reasons, Code::warmup);
  };
  for (const judge::Pair& pair : judge::Pairs(result_, policy_)) {
    if (pair.process != process) continue;
    slot.next_pair = std::max(slot.next_pair, pair.index + 1);
    for (const record::Leg* leg : {pair.plain, pair.drafting}) {
      if (leg != nullptr) slot.next_leg = std::max(slot.next_leg, leg->index + 1);
    }
    if (cold_by_plan(pair.plain) && cold_by_plan(pair.drafting)) continue;
    slot.planned.emplace_back(pair.index, slot.planned.size() % plan_.prompts.size());
  }
  for (auto i = std::ssize(slot.planned); i < pairs_; ++i) {
    slot.prompts.push_back(static_cast<size_t>(i) % plan_.prompts.size());
  }
  return slot;
}

void Campaign::MeasureProcess(Slot slot) {
  int failures = 0;
  bool replaced = false;
  for (;;) {
    if (slot.prompts.empty() && !replaced) {
      replaced = true;
      AddReplacements(slot);
    }
    if (slot.prompts.empty()) return;
    try {
      Prepare(slot);
      failures = 0;
    } catch (const WorkerFailure& failure) {
      worker_.reset();
      slot.warm = false;
      if (failure.code == Code::gpu_hang || ++failures >= kMaxFailuresInARow) throw;
      progress_.Line(fmt::format("process {}: {}: {}", slot.process + 1, Name(failure.code), failure.text));
      continue;
    }
    if (options_.budget_s && !slot.planned.empty() && Now() - started_ > *options_.budget_s) return;
    if (static_cast<int64_t>(slot.prompts.size() + slot.planned.size()) > pairs_ && !replaced) {
      slot.prompts.resize(static_cast<size_t>(std::max<int64_t>(pairs_ - std::ssize(slot.planned), 1)));
    }
    const size_t prompt = slot.prompts.front();
    slot.prompts.pop_front();
    if (!replaced) slot.planned.emplace_back(slot.next_pair, prompt);
    MeasurePair(slot, prompt, false);
    SentinelAfterPair(slot);
    StopOnRepeatedReason();
  }
}

// Pairs of this process that do not count run once more, at most two; by validity alone, never by rate.
void Campaign::AddReplacements(Slot& slot) {
  Judge();
  int64_t left = judge::limit::kReplacementPairs;
  for (const judge::Pair& pair : judge::Pairs(result_, policy_)) {
    if (pair.process != slot.process) continue;
    const auto planned = [&](const auto& entry) { return entry.first == pair.index; };
    const auto it = std::find_if(slot.planned.begin(), slot.planned.end(), planned);
    const bool invalid =
        (pair.plain == nullptr || !pair.plain->valid) || (pair.drafting == nullptr || !pair.drafting->valid);
    if (it == slot.planned.end() || !invalid || left == 0) continue;
    --left;
    slot.prompts.push_back(it->second);
  }
}

void Campaign::StopOnRepeatedReason() {
  Judge();
  const std::optional<Code> code = judge::StopReason(result_, policy_);
  if (!code) return;
  record::Reason reason = MakeReason(*code, nullptr, nullptr, "two pairs in a row");
  reason.process = result_.legs.back().process;
  reason.leg = result_.legs.back().index;
  throw Stopped{std::move(reason)};
}

void Campaign::MeasurePair(Slot& slot, size_t prompt, bool warmup) {
  const bool plain_first = PlainFirst(slot.process, slot.next_pair);
  const std::string first = plain_first ? "plain" : plan_.draft_arm;
  const std::string second = plain_first ? plan_.draft_arm : "plain";
  MeasureLeg(slot, prompt, first, warmup);
  if (worker_ != nullptr) MeasureLeg(slot, prompt, second, warmup);
  ++slot.next_pair;
}

// Records the leg whatever comes of it; worker_ is null when the process is gone.
void Campaign::MeasureLeg(Slot& slot, size_t prompt_index, const std::string& arm, bool warmup) {
  const Prompt& prompt = plan_.prompts[prompt_index];
  LegRequest request = RequestFor(arm, prompt);
  request.process = slot.process;
  request.index = slot.next_leg;
  request.repeats = std::max<int64_t>(repeats_, 1);
  if (OnGpu() && !SensorTellsClock()) request.clock_interval_ms = plan_.interval_ms;
  record::Leg leg;
  leg.process = slot.process, leg.index = slot.next_leg++, leg.pair = slot.next_pair;
  leg.arm = arm, leg.prompt = prompt.id, leg.prompt_class = prompt.prompt_class;
  leg.repeats = request.repeats;
  leg.state = warmup || plan_.warmup_pairs == 0 ? record::State::cold : record::State::warm;
  if (warmup) leg.reasons.push_back(MakeReason(Code::warmup));
  if (plan_.warmup_pairs == 0) leg.reasons.push_back(MakeReason(Code::no_warmup));
  if (plan_.device.type != vt::DeviceType::cpu) leg.graph_mode = "eager";  // until the worker says otherwise
  bool hung = false;
  try {
    const LegReply reply = worker_->Leg(request);
    FillLeg(request, reply, leg);
    AddWindow(reply, leg);
    CheckOutput(leg, prompt_index, reply);
    record::Process& process = ProcessRecord(slot.process);
    const auto rss = static_cast<int64_t>(reply.peak_rss_bytes);
    if (rss > 0) process.peak_rss_bytes = std::max(process.peak_rss_bytes.value_or(0), rss);
  } catch (const WorkerFailure& failure) {
    RecordFailure(leg, failure);
    hung = failure.code == Code::gpu_hang;
    slot.warm = false;
  }
  const std::string place =
      fmt::format("process {}/{} pair {}/{}", slot.process + 1, plan_.processes, slot.planned.size(), pairs_);
  progress_.Leg(leg, place);
  result_.legs.push_back(leg);
  if (hung) throw last_failure_;
}

void Campaign::CheckOutput(record::Leg& leg, size_t prompt, const LegReply& reply) {
  if (plan_.made_up()) return;
  judge::ReferenceIds ids;
  if (reference_) ids = {reference_->outputs[prompt].ids, reference_->outputs[prompt].gaps};
  judge::OutputCheck check = judge::CheckOutput(reply.output_ids, reference_ ? &ids : nullptr,
                                                plan_.tokenizer_size, plan_.layout_token, policy_);
  leg.divergence = check.divergence;
  std::move(check.reasons.begin(), check.reasons.end(), std::back_inserter(leg.reasons));
  for (record::Reason& warning : check.warnings) {
    warning.process = leg.process, warning.leg = leg.index;
    campaign_warnings_.push_back(std::move(warning));
  }
  if (!reply.repeats_equal) {
    leg.reasons.push_back(MakeReason(Code::state_leak, nullptr, nullptr, "repeats of one leg differ"));
  }
}

void Campaign::RecordFailure(record::Leg& leg, const WorkerFailure& failure) {
  const bool timed = failure.limit_s > 0;
  leg.reasons.push_back(
      MakeReason(failure.code, timed ? record::Json(failure.value_s) : record::Json(nullptr),
                 timed ? record::Json(failure.limit_s) : record::Json(nullptr), failure.text));
  last_failure_ = failure;
  worker_.reset();
}

void Campaign::SentinelAfterPair(Slot& slot) {
  if (worker_ == nullptr) return;
  try {
    TakeSentinel(slot);
  } catch (const WorkerFailure& failure) {
    if (failure.code == Code::gpu_hang) throw;
    progress_.Line(fmt::format("sentinel: {}: {}", Name(failure.code), failure.text));
    worker_.reset();
    slot.warm = false;
  }
}

void Campaign::TakeSentinel(Slot& slot) {
  const std::vector<int32_t>& ids = plan_.prompts.front().ids;
  SentinelRequest request;
  request.prompt_ids.assign(ids.begin(),
                            ids.begin() + static_cast<int64_t>(std::min(ids.size(), kSentinelPrompt)));
  request.steps = sentinel_steps_;
  request.seconds =
      plan_.device.type == vt::DeviceType::cpu || plan_.device.type == vt::DeviceType::sim ? 0.1 : 0.7;
  const SentinelReply reply = worker_->Sentinel(request);
  sentinel_steps_ = reply.steps;
  sentinel_s_ = reply.seconds;
  record::Sentinel& sentinel = ProcessRecord(slot.process).sentinel_s;
  // [i] stands before pair i: a pair whose worker died has none after it. A fresh worker's first one is left
  // out where the worker before it had still taken its own.
  while (static_cast<int64_t>(sentinel.values.size()) < slot.next_pair) sentinel.values.emplace_back();
  if (static_cast<int64_t>(sentinel.values.size()) == slot.next_pair)
    sentinel.values.emplace_back(reply.seconds);
  sentinel.bytes = static_cast<double>(reply.bytes);
}

}  // namespace warmleg::run
