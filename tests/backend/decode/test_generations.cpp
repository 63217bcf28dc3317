// Many generations in one process, both arms in turn over one session: no hang, the same ids each time, and
// nothing ever served by the reference tier.
#include <gtest/gtest.h>

#include "backend/vt/stats.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

constexpr int64_t kGenerations = 50;
constexpr int64_t kTokens = 24;  // a shorter limit does not change greedy output

TEST(Generations, FiftyOfEachArmInOneProcessGiveTheGoldenIdsNatively) {
  const test::Pair pair("tiny-code");
  const std::vector<test::GoldenCase> cases = test::LoadGoldens("tiny-code");
  decode::Session session(pair.target, &pair.draft, 512);
  decode::Options options;
  options.max_new_tokens = test::Bound("WARMLEG_TEST_TOKENS", kTokens);
  options.ignore_eos = true;
  const int64_t generations = test::Bound("WARMLEG_TEST_GENERATIONS", kGenerations);
  const std::vector<vt::OpTotals> before = vt::ProviderTotals();
  for (int64_t i = 0; i < generations; ++i) {
    SCOPED_TRACE("generation " + std::to_string(i));
    const test::GoldenCase& c = cases[static_cast<size_t>(i) % cases.size()];
    const auto cut = [&](const std::vector<int32_t>& ids) {
      return std::vector<int32_t>(ids.begin(), ids.begin() + static_cast<long>(options.max_new_tokens));
    };
    EXPECT_EQ(session.Plain(c.prompt_ids, options).output_ids, cut(c.greedy));
    EXPECT_EQ(session.DFlash2(c.prompt_ids, options).output_ids, cut(c.dflash2));
  }
  uint64_t calls = 0;
  for (const vt::OpTotals& t : vt::Difference(vt::ProviderTotals(), before)) {
    EXPECT_EQ(t.provider, "vt-native") << t.op;
    EXPECT_EQ(t.device, test::TestDevice()) << t.op;
    EXPECT_EQ(t.fallbacks, 0U) << t.op;
    calls += t.calls;
  }
  EXPECT_GT(calls, static_cast<uint64_t>(generations * options.max_new_tokens));
}

}  // namespace
}  // namespace warmleg
