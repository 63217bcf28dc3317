// Accepted counts for runs whose drafts nobody would agree with: made-up weights, real shapes.
#pragma once

#include <cstdint>
#include <vector>

namespace warmleg::decode {

// Accepted drafts of `rounds` rounds: floor(c) - 1 or ceil(c) - 1 of c = committed_per_round, in a seeded
// order, with the mean of accepted + 1 within 1 / kSimulatedStretch of c over every whole stretch of rounds.
// c is at least 1.
inline constexpr int kSimulatedStretch = 50;
std::vector<int32_t> SimulatedAccepted(double committed_per_round, uint64_t seed, int64_t rounds);

}  // namespace warmleg::decode
