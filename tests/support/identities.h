// What the counters of any generation obey.
#pragma once

#include <gtest/gtest.h>

#include "backend/decode/generate.h"

namespace warmleg::test {

inline void ExpectIdentities(const decode::Generation& g) {
  const decode::Counters& n = g.counters;
  EXPECT_EQ(n.output_tokens, static_cast<int64_t>(g.output_ids.size()));
  EXPECT_EQ(n.output_tokens, n.prefill_made + n.committed);
  EXPECT_EQ(n.bonus, n.rounds);
  EXPECT_EQ(n.accepted + n.bonus, n.committed + n.stop_trimmed + n.budget_trimmed);
  EXPECT_LE(n.accepted, n.drafted);
  int64_t at = 0;
  for (const int64_t a : n.accepted_at) at += a;
  EXPECT_EQ(at, n.accepted);
}

}  // namespace warmleg::test
