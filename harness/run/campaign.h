// All processes of one run: starts workers, measures pairs, keeps every leg with its reasons, and writes the
// file after each process.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/policy.h"
#include "harness/record/result.h"
#include "harness/run/plan.h"
#include "harness/run/progress.h"
#include "harness/run/reference.h"
#include "harness/run/worker_session.h"
#include "harness/telemetry/watcher.h"

namespace warmleg::run {

struct CampaignOptions {
  std::string out;                       // result file
  bool force = false;                    // an existing file may be replaced
  std::optional<double> budget_s;        // changes the number of pairs
  std::string telemetry_device;          // empty: the compute device's own board; "auto" or a PCI address
  std::string resumed_from;              // the file given to Resume
  std::optional<int64_t> processes_now;  // the campaign pauses after so many
};

enum class Ending : uint8_t { complete, paused, stopped, hung, interrupted };

class Campaign {
 public:
  Campaign(const Plan& plan, CampaignOptions options, Progress& progress);
  ~Campaign();

  // Takes up a result that was written with complete: false; its finished legs stand. Throws vt::InputError
  // with every field in which the two disagree (those that need weights are compared at the first load).
  void Resume(record::Result earlier);

  // Loads, warms and times a pair without writing anything: what the plan will cost and which rules it would
  // break.
  std::string DescribePlan();

  // Every process, judged and written. Whatever happens, the file is whole. Throws vt::InputError and
  // vt::EnvironmentError when nothing could be measured, or the file cannot be written.
  Ending Measure();

  const record::Result& result() const { return result_; }

 private:
  // What is left to do for one process, kept over a crash of its worker.
  struct Slot {
    int64_t process = 0;
    int64_t next_leg = 0, next_pair = 0;
    std::deque<size_t> prompts;  // of the pairs still to run
    std::vector<std::pair<int64_t, size_t>>
        planned;        // pair index and prompt of the pairs of the plan begun so far
    bool warm = false;  // the present worker has done its warm-up
  };
  struct Stopped {
    record::Reason reason;
  };

  bool OnGpu() const;
  void RefuseResume(const record::Result& earlier) const;
  void KeepSamplesOf(const record::Result& earlier);
  void StartWatching(const std::string& pci);
  void AddBoard();
  std::string BrokenRules();
  void AddWindow(const LegReply& reply, record::Leg& leg);
  bool SensorTellsClock() const;
  void AddDeviceClock(const LegReply& reply, const std::vector<telemetry::PhaseSpan>& phases,
                      record::ClockWindow& window);
  void WriteSamples();
  void EnsureReference();
  void MeasureReference(WorkerSession& worker);
  std::unique_ptr<WorkerSession> StartWorker(int64_t process);
  void Prepare(Slot& slot);
  void Calibrate();
  Slot SlotFor(int64_t process);
  void MeasureProcess(Slot slot);
  void AddReplacements(Slot& slot);
  void MeasurePair(Slot& slot, size_t prompt, bool warmup);
  void MeasureLeg(Slot& slot, size_t prompt, const std::string& arm, bool warmup);
  LegRequest RequestFor(const std::string& arm, const Prompt& prompt) const;
  void RecordFailure(record::Leg& leg, const WorkerFailure& failure);
  void CheckOutput(record::Leg& leg, size_t prompt, const LegReply& reply);
  void StopOnRepeatedReason();
  void TakeSentinel(Slot& slot);
  void SentinelAfterPair(Slot& slot);
  record::Process& ProcessRecord(int64_t index);
  void Judge();
  void JudgeAndWrite();
  void Finish(Ending ending);

  const Plan& plan_;
  judge::Policy policy_;
  CampaignOptions options_;
  Progress& progress_;
  record::Result result_;
  std::vector<record::Reason> campaign_reasons_, campaign_warnings_;  // known to the runner alone
  std::optional<Reference> reference_;
  std::unique_ptr<WorkerSession> worker_;  // the one that measures, or a fresh one that made no leg yet
  WorkerFailure last_failure_;
  telemetry::Watcher watcher_;
  std::optional<telemetry::BoardFingerprint> board_;  // of the board watched, at the start
  std::string samples_file_, earlier_pci_;            // earlier_pci_: the board of the run that is continued
  int64_t pairs_ = 0;                                 // a process, after the budget
  int64_t repeats_ = 0;                               // 0: not known yet
  int block_size_ = 0;                                // of the drafting arm
  int64_t sentinel_steps_ = 0;
  double sentinel_s_ = 0;
  double started_ = 0, start_s_ = 0;  // campaign start; seconds to a process's first pair
  bool written_ = false, resumed_ = false;
  bool device_clock_ = false;  // the SCLK of some leg is the device clock source's
};

}  // namespace warmleg::run
