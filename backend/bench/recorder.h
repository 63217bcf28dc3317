// The calls that the chain makes, written down without making them: the real Target, Draft and Chain run over
// a device that has addresses and no memory. So shapes and counts are those of the code that decodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/model/config.h"
#include "backend/vt/backend.h"

namespace vt::bench {

// One distinct call and how often the chain makes it.
struct RecordedCall {
  Op op;
  std::string part;   // "step"; of a round: "draft", "select", "verify", "commit"
  std::string shape;  // what tells it from others of the same op
  int64_t calls = 0;
  int64_t bytes = 0;  // of one call, by the op's own bytes()
  // Seconds of one such call on a device; positions are set as after `context` tokens.
  std::function<double(Backend& backend, int64_t context)> measure;
};

// A plain step of one row. `weights`: dtype of every weight.
std::vector<RecordedCall> RecordStep(const warmleg::model::TargetConfig& target, DType weights,
                                     int64_t context, Device measured_on);
// A round at the draft's block size.
std::vector<RecordedCall> RecordRound(const warmleg::model::TargetConfig& target,
                                      const warmleg::model::DraftConfig& draft, DType weights,
                                      int64_t context, Device measured_on);
// Bytes of all weights of the target.
uint64_t WeightBytes(const warmleg::model::TargetConfig& target, DType weights);

}  // namespace vt::bench
