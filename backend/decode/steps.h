// How a step is issued: eagerly, or as a captured graph of its width. On devices that capture, the first use
// of a width runs eagerly (which prewarms every scratch buffer), is then captured, replayed from the same
// state and compared with what the eager run left, all before it is ever timed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "backend/decode/chain.h"

namespace warmleg::decode {

// Stamps of a round, in the queue's order.
enum StampSlot : int { kRoundStart, kDrafted, kSelected, kVerified, kCommitted };

class Steps {
 public:
  explicit Steps(Chain& chain) : chain_(chain) {}

  StepResult Plain() { return Step(1, false); }
  // `width` > 1 rows: draft, select, verify, commit, with a stamp between the parts.
  StepResult Round(int width) { return Step(width, true); }
  // The same with the drafts replaced on the host before they are verified; always eager.
  using Redraft = std::function<void(std::span<int32_t> drafted)>;
  StepResult RoundRedrafted(int width, const Redraft& redraft);

  // "graph" when every step so far ran as one, else "eager"; `refusal` says why, once capture was refused or
  // compared unequal.
  bool graphs() const { return chain_.backend().can_capture() && refusal_.empty(); }
  const std::string& refusal() const { return refusal_; }
  bool replay_mismatch() const { return mismatch_; }

 private:
  StepResult Step(int width, bool drafting);
  void Enqueue(int width, bool drafting, const Redraft& redraft = {});
  StepResult CaptureAndCompare(int width, bool drafting);

  Chain& chain_;
  std::map<std::pair<int, bool>, std::unique_ptr<vt::Graph>> graphs_;  // by width and whether it drafts
  Sampling sampling_;                                                  // of the graphs
  std::string refusal_;
  bool mismatch_ = false;
};

}  // namespace warmleg::decode
