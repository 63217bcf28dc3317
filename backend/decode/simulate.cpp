#include "backend/decode/simulate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/vt/random_bits.h"

namespace warmleg::decode {

std::vector<int32_t> SimulatedAccepted(double committed_per_round, uint64_t seed, int64_t rounds) {
  const double accepted = std::max(committed_per_round, 1.0) - 1;
  const auto low = static_cast<int32_t>(std::floor(accepted));
  std::vector<int32_t> counts;
  double owed = 0;  // ceilings due so far, less those given
  for (uint64_t stretch = 0; std::cmp_less(counts.size(), rounds); ++stretch) {
    owed += (accepted - low) * kSimulatedStretch;
    const auto ceilings = std::clamp(static_cast<int>(std::lround(owed)), 0, kSimulatedStretch);
    owed -= ceilings;
    std::vector<int32_t> part(kSimulatedStretch, low);
    std::fill_n(part.begin(), ceilings, low + 1);
    for (size_t i = part.size() - 1; i > 0; --i) {  // Fisher and Yates
      const uint64_t word = vt::RandomWord(seed, stretch * kSimulatedStretch + i);
      std::swap(part[i], part[word % (i + 1)]);
    }
    counts.insert(counts.end(), part.begin(), part.end());
  }
  counts.resize(static_cast<size_t>(rounds));
  return counts;
}

}  // namespace warmleg::decode
