// One loaded worker of a campaign: typed requests, and every way a worker can fail as one exception with the
// reason code that the result will carry.
#pragma once

#include <memory>
#include <string>

#include "harness/record/reason.h"
#include "harness/run/plan.h"
#include "harness/run/worker_process.h"

namespace warmleg::run {

// crashed, oom, timeout, gpu_hang or load_stalled. The worker is gone or must be replaced.
struct WorkerFailure {
  record::Code code = record::Code::crashed;
  std::string text;
  double value_s = 0, limit_s = 0;  // of a timeout
};

class WorkerSession {
 public:
  // Starts a worker and loads the checkpoints. `with_draft` false: the plain reference process. Throws
  // WorkerFailure, InterruptedError, vt::InputError (the checkpoint is refused), vt::EnvironmentError.
  WorkerSession(const Plan& plan, bool with_draft, const WorkerProcess::OnProgress& progress);

  const LoadedReply& loaded() const { return loaded_; }
  std::string PidStart() const;  // "PID@start ticks"
  int pid() const { return process_.pid(); }

  // Each throws WorkerFailure or InterruptedError.
  void Warm();
  LegReply Leg(const LegRequest& request);
  SentinelReply Sentinel(const SentinelRequest& request);
  // GB/s, or nothing on a device without a probe.
  std::optional<double> Roof();
  void Stop() { process_.Stop(); }

 private:
  template <class R>
  R Ask(const Request& request, double timeout_s, const WorkerProcess::OnProgress& progress = {});
  [[noreturn]] void Fail(const FailedReply& failed);
  bool OnGpu() const;

  const Plan& plan_;
  WorkerProcess process_;
  LoadedReply loaded_;
};

}  // namespace warmleg::run
