// What only the simulated device can show of sampling's scratch: each allocation that fails, memory counted
// by the runtime itself, and work that runs as late as it may.
#include <gmock/gmock.h>

#include "backend/cpu/register.h"
#include "backend/sim/control.h"
#include "backend/vt/error.h"
#include "backend/vt/scratch.h"
#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

namespace sim = vt::sim;

struct Live {
  size_t allocations, bytes, host_allocations, streams;
  bool operator==(const Live&) const = default;
};
Live Now() {
  const sim::Usage u = sim::LiveUsage(TestDevice().index);
  return {u.allocations, u.bytes, u.host_allocations, u.streams};
}

// Logits of one row that rise to their end: the token is the last one of any part of it, at any seed.
constexpr int64_t kTokens = 30000;

class Row {
 public:
  Row() : backend_(vt::GetBackend(TestDevice())), queue_(backend_.CreateQueue()), pool_(backend_) {
    std::vector<float> row(kTokens);
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i);
    x_ = pool_.New(kF32, {1, kTokens});
    p_ = pool_.New(kF32, {1, kTokens});
    out_ = pool_.New(kI32, {1});
    draws_ = {.seed = pool_.New(kI32, {3}), .position = pool_.New(kI32, {1})};
    backend_.CopyIn(*queue_, x_.data, row.data(), row.size() * sizeof(float));
    backend_.Fill(*queue_, draws_.seed.data, 0, 12);
    backend_.Fill(*queue_, draws_.position.data, 0, 4);
  }
  // The sizes rise, so that scratch is made and grows.
  void Sample(int64_t tokens) {
    vt::Run(*queue_,
            vt::RandomSampleArgs{.x = x_.Cols(kTokens - tokens, tokens), .out = out_, .draws = draws_});
  }
  void Soften(int64_t tokens) { vt::Run(*queue_, vt::SoftmaxArgs{x_.Cols(0, tokens), p_.Cols(0, tokens)}); }
  int32_t Token() {
    int32_t token = 0;
    backend_.CopyOut(*queue_, &token, out_.data, sizeof token);
    return token;
  }
  vt::ScratchTable::Usage scratch() { return backend_.scratch().usage(*queue_); }
  vt::Queue& queue() { return *queue_; }
  vt::Backend& backend() { return backend_; }

 private:
  vt::Backend& backend_;
  std::unique_ptr<vt::Queue> queue_;
  vt::TensorPool pool_;
  vt::Tensor x_, p_, out_;
  vt::Draws draws_;
};

void Everything(Row& row) {
  row.Sample(5000);
  row.Soften(5000);
  row.Sample(kTokens);
  row.Soften(kTokens);
}

TEST(SampleFailures, EachAllocationFailsOnceInTurn) {
  { Row warm; }  // what the device keeps from its first use on
  const Live idle = Now();
  const uint64_t before = sim::Calls(sim::Point::allocation);
  {
    Row row;
    Everything(row);
    EXPECT_EQ(row.Token(), kTokens - 1);
  }
  const uint64_t calls = sim::Calls(sim::Point::allocation) - before;
  ASSERT_GE(calls, 9U) << "tensors, two buffers, each grown once";
  for (uint64_t nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE(testing::Message() << "allocation " << nth << " of " << calls);
    sim::FailAt(sim::Point::allocation, nth, sim::hipErrorOutOfMemory);
    try {
      Row row;
      Everything(row);
      ADD_FAILURE() << "no error";
    } catch (const vt::EnvironmentError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("hipErrorOutOfMemory"));
    }
    sim::ClearFailures();
    EXPECT_EQ(Now(), idle) << "something leaked";
  }
}

TEST(SampleFailures, AFailedAllocationLeavesTheScratchAsItWas) {
  Row row;
  const auto expect_failure = [&](int64_t tokens) {
    const vt::ScratchTable::Usage before = row.scratch();
    sim::FailAt(sim::Point::allocation, 1, sim::hipErrorOutOfMemory);
    EXPECT_THROW(row.Sample(tokens), vt::OutOfMemoryError);
    sim::ClearFailures();
    EXPECT_EQ(row.scratch().buffers, before.buffers) << "published before it existed, or dropped too early";
    EXPECT_EQ(row.scratch().bytes, before.bytes);
  };
  expect_failure(5000);
  row.Sample(5000);
  expect_failure(kTokens);
  row.Sample(5000);
  EXPECT_EQ(row.Token(), 4999);
  row.Sample(kTokens);
  EXPECT_EQ(row.Token(), kTokens - 1);
}

TEST(SampleFailures, TheRuntimeCountsWhatTheTableCounts) {
  const Live idle = Now();
  {
    Row row;
    const Live ready = Now();
    Everything(row);
    EXPECT_EQ(Now().allocations, ready.allocations + 2) << "one buffer a purpose";
    EXPECT_EQ(Now().bytes, ready.bytes + row.scratch().bytes);
    Everything(row);
    EXPECT_EQ(Now().allocations, ready.allocations + 2);
  }
  EXPECT_EQ(Now(), idle);
}

TEST(SampleFailures, QueuesWaitedForInTheOtherOrder) {
  Row a;
  Row b;
  a.Sample(9000);
  b.Sample(kTokens);
  a.backend().Synchronize(a.queue());
  a.Sample(9000);
  b.Sample(kTokens);
  EXPECT_GT(sim::PendingWork(TestDevice().index), 0U);
  EXPECT_EQ(b.Token(), kTokens - 1);
  EXPECT_EQ(a.Token(), 8999);
}

}  // namespace
}  // namespace testing_support
