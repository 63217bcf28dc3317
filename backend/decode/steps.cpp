#include "backend/decode/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "backend/vt/error.h"

namespace warmleg::decode {

namespace {

// By bytes: what a step does not write may hold anything, a NaN too.
bool SameStates(const StateDump& a, const StateDump& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.size() == y.second.size() &&
           std::memcmp(x.second.data(), y.second.data(), x.second.size() * sizeof(float)) == 0;
  };
  return a.covered == b.covered &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same);
}

}  // namespace

void Steps::Enqueue(int width, bool drafting, const Redraft& redraft) {
  vt::Backend& backend = chain_.backend();
  vt::Queue& queue = chain_.queue();
  if (!drafting) {
    chain_.EnqueuePlainStep();
    return;
  }
  backend.Stamp(queue, kRoundStart);
  chain_.EnqueueDraft(width);
  backend.Stamp(queue, kDrafted);
  chain_.EnqueueSelect(width);
  backend.Stamp(queue, kSelected);
  if (redraft) {
    std::vector<int32_t> drafted = chain_.ReadDrafted(width);
    redraft(drafted);
    chain_.WriteDrafted(drafted);
  }
  chain_.EnqueueVerify(width);
  backend.Stamp(queue, kVerified);
  chain_.EnqueueCommit(width);
  backend.Stamp(queue, kCommitted);
}

StepResult Steps::CaptureAndCompare(int width, bool drafting) {
  vt::Backend& backend = chain_.backend();
  chain_.Save();
  Enqueue(width, drafting);
  const StepResult eager = chain_.ReadResult(width);
  const StateDump eager_states = chain_.DumpStates();

  std::unique_ptr<vt::Graph> graph;
  try {
    backend.BeginCapture(chain_.queue());
    Enqueue(width, drafting);
    graph = backend.EndCapture(chain_.queue());
  } catch (const vt::RefusedError& e) {
    backend.AbandonCapture(chain_.queue());
    refusal_ = e.what();
    return eager;
  } catch (...) {  // a failed launch leaves the queue capturing
    backend.AbandonCapture(chain_.queue());
    throw;
  }
  chain_.Restore();
  graph->Launch(chain_.queue());
  const StepResult replayed = chain_.ReadResult(width);
  if (replayed.accepted != eager.accepted || replayed.tokens != eager.tokens ||
      replayed.drafted != eager.drafted || !SameStates(chain_.DumpStates(), eager_states)) {
    mismatch_ = true;
    refusal_ = fmt::format("the graph of width {} replays differently from the eager run", width);
    graphs_.clear();
  } else {
    graphs_[{width, drafting}] = std::move(graph);
  }
  return replayed;
}

StepResult Steps::RoundRedrafted(int width, const Redraft& redraft) {
  Enqueue(width, true, redraft);
  return chain_.ReadResult(width);
}

StepResult Steps::Step(int width, bool drafting) {
  if (!sampling_.SameStep(chain_.sampling()))
    graphs_.clear();  // they hold the temperature they were made with
  sampling_ = chain_.sampling();
  if (graphs()) {
    const auto found = graphs_.find({width, drafting});
    if (found == graphs_.end()) return CaptureAndCompare(width, drafting);
    found->second->Launch(chain_.queue());
  } else {
    Enqueue(width, drafting);
  }
  return chain_.ReadResult(width);
}

}  // namespace warmleg::decode
