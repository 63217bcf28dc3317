// A fixed number of plain steps from one saved state: what the board can do right now, seen by no sensor. The
// steps and the state never change within a process, so that their time is comparable across legs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/decode/steps.h"

namespace warmleg::decode {

class Sentinel {
 public:
  // Prefills `prompt` once and saves the state. `steps` plain steps follow in each Run.
  Sentinel(const model::TargetWeights& target, std::span<const int32_t> prompt, int64_t steps);

  // Seconds of the steps, between two device synchronises.
  double Run();
  const std::vector<int32_t>& last_tokens() const { return tokens_; }  // of the last Run: always the same
  int64_t steps() const { return steps_; }
  // Least bytes the steps of one Run move (for the bandwidth the board reached).
  uint64_t bytes() const;

 private:
  int64_t steps_;
  int64_t prompt_tokens_;
  Chain chain_;
  Steps step_;
  std::vector<int32_t> tokens_;
};

// How many plain steps take about `seconds` on this device, measured with a short run; at least 1.
int64_t StepsForSeconds(const model::TargetWeights& target, std::span<const int32_t> prompt, double seconds);

}  // namespace warmleg::decode
