// What a parent sees of a worker that misbehaves. This program is its own worker: WorkerProcess starts
// /proc/self/exe.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <variant>
#include <vector>

#include "harness/run/worker_process.h"

namespace warmleg::run {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

// More than the pipe to the worker holds, which on Linux is 64 KiB unless somebody raised it, at most 1 MiB.
SentinelRequest LongRequest() { return {.prompt_ids = std::vector<int32_t>(1'000'000, 1234), .steps = 1}; }

TEST(WorkerProcess, OneThatDoesNotReadEndsWithTheTimeout) {
  WorkerProcess worker;
  ASSERT_TRUE(worker.alive());
  const auto begin = steady_clock::now();
  const Answer answer = worker.Ask(LongRequest(), duration<double>(0.3));
  const auto* timed_out = std::get_if<TimedOut>(&answer);
  ASSERT_NE(timed_out, nullptr);
  EXPECT_FALSE(timed_out->unkillable);
  EXPECT_FALSE(worker.alive());
  EXPECT_GE(steady_clock::now() - begin, duration<double>(0.3));
  EXPECT_LT(steady_clock::now() - begin, duration<double>(60));
}

TEST(WorkerProcess, OneThatIsSilentEndsWithTheTimeout) {
  WorkerProcess worker;
  const Answer answer = worker.Ask(RoofRequest{.bytes = 1}, duration<double>(0.3));
  EXPECT_TRUE(std::holds_alternative<TimedOut>(answer));
  EXPECT_FALSE(worker.alive());
}

}  // namespace
}  // namespace warmleg::run

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "worker") == 0) {
    pause();  // reads nothing, says nothing; SIGTERM ends it
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
