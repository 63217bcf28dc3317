// How tokens are chosen from logits.
#pragma once

#include <cstdint>

namespace warmleg::decode {

inline constexpr double kMinTemperature = 0.001, kMaxTemperature = 100;

// The arithmetic is backend/vt/sampler.h's: a token depends on its logits, these numbers and its position
// alone.
struct Sampling {
  double temperature = 0;  // 0: greedy, and nothing below matters
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  uint64_t seed = 1;
  int32_t request = 0;  // index of the prompt; another one draws other numbers

  bool on() const { return temperature > 0; }
  bool filters() const { return top_k > 0 || top_p < 1; }
  // Whether a captured step of the one runs the other: seed and request are read from the device.
  bool SameStep(const Sampling& o) const {
    return on() == o.on() &&
           (!on() || (temperature == o.temperature && top_k == o.top_k && top_p == o.top_p));
  }
};

}  // namespace warmleg::decode
