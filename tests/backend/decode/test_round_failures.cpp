// Every allocation, launch and copy of a generation with a DFlash2 round fails once in turn on the simulated
// device: one clear error, nothing leaked, and the next run gives the right tokens.
//
// WARMLEG_TEST_ALL_FAILURES=1 takes every call; by default every kStride-th, with another start for each
// point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/sim/control.h"
#include "backend/vt/error.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

using test::Pair;
using testing::HasSubstr;
using vt::sim::Point;

constexpr uint64_t kStride = 41;
const std::vector<int32_t> kPrompt = {5, 9, 200};

// One prefill and one round of three rows, with its graph.
std::vector<int32_t> Drive(const Pair& pair) {
  decode::Session session(pair.target, &pair.draft, 16);
  decode::Options options;
  options.max_new_tokens = 3;
  options.ignore_eos = true;
  return session.DFlash2(kPrompt, options).output_ids;
}

struct Usage {
  size_t allocations, bytes, host_allocations, streams;
  bool operator==(const Usage&) const = default;
};

Usage Live() {
  const vt::sim::Usage u = vt::sim::LiveUsage(0);
  return {u.allocations, u.bytes, u.host_allocations, u.streams};
}

class RoundFailures : public testing::TestWithParam<std::tuple<Point, vt::sim::hipError_t, const char*>> {};

TEST_P(RoundFailures, EachCallFailsOnceInTurn) {
  const auto [point, error, name] = GetParam();
  const Pair pair("interval-bias", {vt::DeviceType::sim, 0});
  const std::vector<int32_t> right = Drive(pair);
  ASSERT_EQ(right.size(), 3U);
  const Usage idle = Live();
  const uint64_t before = vt::sim::Calls(point);
  EXPECT_EQ(Drive(pair), right);
  const uint64_t calls = vt::sim::Calls(point) - before;
  ASSERT_GT(calls, 0U);
  const bool all = std::getenv("WARMLEG_TEST_ALL_FAILURES") != nullptr;
  int seen = 0;
  for (uint64_t nth = 1; nth <= calls; nth += all ? 1 : kStride) {
    SCOPED_TRACE(testing::Message() << name << " at call " << nth << " of " << calls);
    vt::sim::FailAt(point, nth, error);
    try {
      Drive(pair);
      ADD_FAILURE() << "no error";
    } catch (const vt::EnvironmentError& e) {
      EXPECT_THAT(e.what(), HasSubstr(name));
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << "more than one line";
    }
    vt::sim::ClearFailures();
    EXPECT_EQ(Live(), idle) << "something leaked";
    ++seen;
  }
  EXPECT_EQ(Drive(pair), right);
  RecordProperty("failures", seen);
  RecordProperty("calls", static_cast<int>(calls));
}

INSTANTIATE_TEST_SUITE_P(
    Points, RoundFailures,
    testing::Values(std::make_tuple(Point::allocation, vt::sim::hipErrorOutOfMemory, "hipErrorOutOfMemory"),
                    std::make_tuple(Point::launch, vt::sim::hipErrorLaunchOutOfResources,
                                    "hipErrorLaunchOutOfResources"),
                    std::make_tuple(Point::copy, vt::sim::hipErrorUnknown, "hipErrorUnknown")),
    [](const auto& param) {
      const Point point = std::get<0>(param.param);
      return point == Point::allocation ? "allocation" : point == Point::launch ? "launch" : "copy";
    });

}  // namespace
}  // namespace warmleg
