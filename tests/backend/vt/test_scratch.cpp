// The scratch table between host threads, on a backend whose allocations take as long as the test wants.
#include "backend/vt/scratch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <thread>

#include "tests/support/plain_backend.h"

namespace {

// Each allocation waits until another one is under way, or long enough that none will be.
class SlowBackend : public warmleg::testing::PlainBackend {
 public:
  int allocations() const { return made_; }

 protected:
  void* AllocBytes(size_t bytes) override {
    std::unique_lock lock(mutex_);
    ++made_;
    ++under_way_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return under_way_ > 1; });
    --under_way_;
    return PlainBackend::AllocBytes(bytes);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  int made_ = 0;
};

void TwoThreads(const std::function<void(int)>& work) {
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
}

TEST(Scratch, ThreadsThatNeedTheSameBufferGetOne) {
  SlowBackend backend;
  const auto queue = backend.CreateQueue();
  void* seen[2] = {};
  TwoThreads([&](int i) { seen[i] = backend.scratch().Get(*queue, "raced", 100); });
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(backend.allocations(), 1) << "the second one must see what the first one made";
  EXPECT_EQ(backend.scratch().usage().buffers, 1U);
}

TEST(Scratch, ThreadsThatGrowABufferEndWithTheLargest) {
  SlowBackend backend;
  const auto queue = backend.CreateQueue();
  backend.scratch().Get(*queue, "raced", 10);
  TwoThreads([&](int) { backend.scratch().Get(*queue, "raced", 1000); });
  EXPECT_EQ(backend.allocations(), 2);
  EXPECT_EQ(backend.scratch().usage().bytes, 1000U);
}

}  // namespace
