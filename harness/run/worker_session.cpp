#include "harness/run/worker_session.h"

#include <fmt/core.h>

#include <algorithm>

#include "backend/vt/error.h"
#include "harness/run/interrupt.h"

namespace warmleg::run {

namespace {

constexpr double kLeastTimeout_s = 30;  // of requests that are no leg

}  // namespace

WorkerSession::WorkerSession(const Plan& plan, bool with_draft, const WorkerProcess::OnProgress& progress)
    : plan_(plan) {
  LoadRequest request;
  request.target = plan.target;
  if (with_draft) request.draft = plan.draft;
  request.device = vt::ToString(plan.device);
  request.capacity = Capacity(plan);
  request.weights = plan.random_weights ? "random" : "checkpoint";
  request.seed = static_cast<int64_t>(plan.sampling.seed);
  request.committed_per_round = plan.committed_per_round.value_or(0);
  try {
    loaded_ = Ask<LoadedReply>(request, std::max(plan.leg_timeout_s, kLeastTimeout_s), progress);
  } catch (WorkerFailure& failure) {
    if (failure.code == record::Code::timeout) failure.code = record::Code::load_stalled;
    throw;
  }
}

std::string WorkerSession::PidStart() const {
  return fmt::format("{}@{}", process_.pid(), process_.start_ticks());
}

bool WorkerSession::OnGpu() const {
  return plan_.device.type == vt::DeviceType::rocm || plan_.device.type == vt::DeviceType::cuda;
}

void WorkerSession::Fail(const FailedReply& failed) {
  if (failed.kind == "input") throw vt::InputError(failed.text);
  // After an error the state of the runtime is not to be trusted: the next leg gets a fresh process.
  process_.Stop();
  if (failed.kind == "oom") throw WorkerFailure{.code = record::Code::oom, .text = failed.text};
  throw WorkerFailure{.code = record::Code::crashed, .text = failed.text};
}

template <class R>
R WorkerSession::Ask(const Request& request, double timeout_s, const WorkerProcess::OnProgress& progress) {
  const auto start = WorkerProcess::Clock::now();
  const Answer answer = process_.Ask(request, std::chrono::duration<double>(timeout_s), progress);
  if (std::holds_alternative<Interrupted>(answer)) throw InterruptedError{};
  if (std::holds_alternative<TimedOut>(answer)) {
    const std::chrono::duration<double> waited = WorkerProcess::Clock::now() - start;
    WorkerFailure failure;
    failure.code = OnGpu() ? record::Code::gpu_hang : record::Code::timeout;
    failure.text = fmt::format("no answer within {:.3g} s", timeout_s);
    if (std::get<TimedOut>(answer).unkillable) failure.text += "; the worker does not end on SIGKILL";
    failure.value_s = waited.count();
    failure.limit_s = timeout_s;
    throw failure;
  }
  if (const auto* died = std::get_if<WorkerDied>(&answer)) {
    throw WorkerFailure{.code = died->oom ? record::Code::oom : record::Code::crashed, .text = died->Text()};
  }
  const Reply& reply = std::get<Reply>(answer);
  if (const auto* failed = std::get_if<FailedReply>(&reply)) Fail(*failed);
  if (const auto* wanted = std::get_if<R>(&reply)) return *wanted;
  process_.Stop();
  throw WorkerFailure{.code = record::Code::crashed, .text = "the worker answered another question"};
}

void WorkerSession::Warm() {
  WarmRequest request;
  request.prompts = OneOfEachLength(plan_.prompts);
  request.draft_arm = plan_.draft_arm;
  request.block_size = plan_.block_size > 0 ? plan_.block_size : static_cast<int>(loaded_.draft_block_size);
  request.precision = plan_.precision;
  request.sampling = plan_.sampling;
  request.max_new_tokens = plan_.max_new_tokens;
  const auto shapes = static_cast<double>(request.prompts.size() + 1);
  Ask<DoneReply>(request, std::max(plan_.leg_timeout_s, kLeastTimeout_s) * shapes);
}

LegReply WorkerSession::Leg(const LegRequest& request) {
  LegReply reply = Ask<LegReply>(request, plan_.leg_timeout_s);
  if (reply.index != request.index) {
    process_.Stop();
    throw WorkerFailure{.code = record::Code::crashed, .text = "the worker answered for another leg"};
  }
  return reply;
}

SentinelReply WorkerSession::Sentinel(const SentinelRequest& request) {
  return Ask<SentinelReply>(request, std::max(plan_.leg_timeout_s, kLeastTimeout_s));
}

std::optional<double> WorkerSession::Roof() {
  const Answer answer =
      process_.Ask(RoofRequest{.bytes = loaded_.target_bytes},
                   std::chrono::duration<double>(std::max(plan_.leg_timeout_s, kLeastTimeout_s)));
  if (std::holds_alternative<Interrupted>(answer)) throw InterruptedError{};
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr)
    throw WorkerFailure{.code = record::Code::crashed, .text = "the read probe ended the worker"};
  const auto* done = std::get_if<DoneReply>(reply);
  if (done == nullptr) return std::nullopt;
  return done->value;
}

}  // namespace warmleg::run
