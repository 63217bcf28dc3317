// Split sampling on a device: the same bits as one block and as the cpu, and scratch that belongs to its
// queue.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <thread>

#include "backend/cpu/register.h"
#include "backend/vt/error.h"
#include "backend/vt/scratch.h"
#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

using testing::HasSubstr;
using vt::SamplePhase;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int32_t kPosition = 41;

using Logits = std::vector<float>;

Logits Normal(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  Logits row(n);
  for (float& z : row) z = normal(random);
  return row;
}

// The cpu's tokens for rows of n logits.
std::vector<int32_t> OnHost(const Logits& rows, size_t n, uint64_t seed) {
  vt::cpu::Register();
  const auto queue = vt::GetBackend({}).CreateQueue();
  HostTensors host(1);
  const auto count = static_cast<int64_t>(rows.size() / n);
  const vt::Tensor x = host.Empty(kF32, {count, static_cast<int64_t>(n)});
  std::copy(rows.begin(), rows.end(), x.as<float>());
  const vt::Tensor out = host.Empty(kI32, {count});
  const vt::Draws draws = {.seed = host.Ints({static_cast<int32_t>(seed), 0, 0}),
                           .position = host.Ints({kPosition})};
  vt::Run(*queue, vt::RandomSampleArgs{.x = x, .out = out, .draws = draws});
  return {out.as<int32_t>(), out.as<int32_t>() + count};
}

// One queue with logits of its own on a device.
class Sampler {
 public:
  Sampler(vt::Device device, size_t n, const Logits& rows, uint64_t seed = 1, int blocks = 0)
      : backend_(vt::GetBackend(device)), queue_(backend_.CreateQueue()), pool_(backend_) {
    Load(n, rows, seed, blocks);
  }

  // Other logits for the same queue; those before stay where they are.
  void Load(size_t n, const Logits& rows, uint64_t seed, int blocks = 0) {
    const auto count = static_cast<int64_t>(rows.size() / n);
    args_.x = pool_.New(kF32, {count, static_cast<int64_t>(n)});
    args_.out = pool_.New(kI32, {count});
    args_.draws = {.seed = pool_.New(kI32, {3}), .position = pool_.New(kI32, {1})};
    args_.blocks = blocks;
    backend_.CopyIn(*queue_, args_.x.data, rows.data(), rows.size() * sizeof(float));
    backend_.CopyIn(*queue_, args_.draws.position.data, &kPosition, sizeof kPosition);
    SetSeed(seed);
    Forget();
    want_ = OnHost(rows, n, seed);
  }
  void SetSeed(uint64_t seed) {
    const int32_t words[] = {static_cast<int32_t>(seed), 0, 0};
    backend_.CopyIn(*queue_, args_.draws.seed.data, words, sizeof words);
  }
  void Forget() { backend_.Fill(*queue_, args_.out.data, 0x77, static_cast<size_t>(args_.out.bytes())); }

  void Run(SamplePhase phase = SamplePhase::both) {
    vt::RandomSampleArgs args = args_;
    args.phase = phase;
    vt::Run(*queue_, args);
  }
  void Half(SamplePhase phase) {
    Run(phase);
    Wait();
  }
  void Wait() { backend_.Synchronize(*queue_); }
  std::vector<int32_t> Tokens() {
    std::vector<int32_t> tokens(static_cast<size_t>(args_.out.count()));
    backend_.CopyOut(*queue_, tokens.data(), args_.out.data, tokens.size() * sizeof(int32_t));
    return tokens;
  }
  std::unique_ptr<vt::Graph> Capture() {
    backend_.BeginCapture(*queue_);
    Run();
    return backend_.EndCapture(*queue_);
  }

  const std::vector<int32_t>& want() const { return want_; }
  vt::Queue& queue() { return *queue_; }
  vt::Backend& backend() { return backend_; }
  vt::TensorPool& pool() { return pool_; }
  const vt::RandomSampleArgs& args() const { return args_; }
  size_t scratch_bytes() { return backend_.scratch().usage(*queue_).bytes; }
  size_t scratch_buffers() { return backend_.scratch().usage(*queue_).buffers; }

 private:
  vt::Backend& backend_;
  std::unique_ptr<vt::Queue> queue_;
  vt::TensorPool pool_;
  vt::RandomSampleArgs args_;
  std::vector<int32_t> want_;
};

class SplitSample : public testing::TestWithParam<size_t> {};

TEST_P(SplitSample, EqualsOneBlockAndTheCpuBitForBit) {
  const size_t n = GetParam();
  const bool large = n > 100000;  // minutes on sim
  const size_t count = large ? 1 : 16;
  std::vector<Logits> patterns(4, Normal(n * count, 3));
  for (float& z : patterns[1]) z = std::round(z / 4) * 4;  // ties of many
  for (size_t i = 0; i < patterns[2].size(); ++i) {        // few left, the last one too
    if (i % n % 97 != 3 && i % n != n - 1) patterns[2][i] = -kInf;
  }
  std::fill(patterns[3].begin(), patterns[3].begin() + static_cast<long>(n), -kInf);  // nothing left in row 0
  for (const Logits& rows : patterns) {
    Sampler sampler(TestDevice(), n, rows);
    sampler.Run();
    EXPECT_EQ(sampler.Tokens(), sampler.want());
    for (const int blocks : large ? std::vector<int>{1, 7} : std::vector<int>{1, 2, 7, 300}) {
      Sampler split(TestDevice(), n, rows, 1, blocks);
      split.Run();
      EXPECT_EQ(split.Tokens(), split.want()) << blocks << " blocks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, SplitSample,
                         testing::Values(1, 2, 255, 256, 257, 2048, 151936, 248320));

TEST(SplitSampleTies, GoToTheLowestIndex) {
  Logits row(248320, 1.0F);
  for (const size_t at : {size_t{248319}, size_t{200000}, size_t{5000}}) {
    row[at] = kInf;
    Sampler sampler(TestDevice(), row.size(), row);
    sampler.Run();
    EXPECT_EQ(sampler.Tokens(), std::vector<int32_t>{static_cast<int32_t>(at)});
  }
}

TEST(SplitSampleNan, IsNoToken) {
  for (const size_t at : {size_t{0}, size_t{40}, size_t{4095}, size_t{9999}}) {
    Logits row = Normal(10000, 5);
    Sampler sampler(TestDevice(), row.size(), row);
    row[at] = std::numeric_limits<float>::quiet_NaN();
    sampler.backend().CopyIn(sampler.queue(), sampler.args().x.data, row.data(), row.size() * sizeof(float));
    sampler.Run();
    EXPECT_EQ(sampler.Tokens(), std::vector<int32_t>{-1});
    try {
      OnHost(row, row.size(), 1);
      ADD_FAILURE() << "the cpu takes it";
    } catch (const vt::EnvironmentError& e) {
      EXPECT_THAT(e.what(), HasSubstr("op RandomSample: row 0 holds a NaN"));
    }
  }
}

// A's partials, then B's, then A's combine: with one buffer for both A would answer with B's token.
void Overlap(Sampler& a, Sampler& b) {
  ASSERT_NE(a.want(), b.want()) << "the test cannot tell them apart";
  for (Sampler* each : {&a, &b}) each->Half(SamplePhase::both);  // both warm
  for (Sampler* each : {&a, &b}) each->Forget();
  a.Half(SamplePhase::partials);
  b.Half(SamplePhase::partials);
  a.Half(SamplePhase::combine);
  b.Half(SamplePhase::combine);
  EXPECT_EQ(a.Tokens(), a.want());
  EXPECT_EQ(b.Tokens(), b.want());
  for (Sampler* each : {&a, &b}) each->Forget();
  b.Half(SamplePhase::partials);
  a.Half(SamplePhase::partials);
  b.Half(SamplePhase::combine);
  a.Half(SamplePhase::combine);
  EXPECT_EQ(a.Tokens(), a.want());
  EXPECT_EQ(b.Tokens(), b.want());
}

TEST(SampleScratch, OverlappingQueuesKeepTheirPartials) {
  Sampler a(TestDevice(), 20000, Normal(40000, 11));
  Sampler b(TestDevice(), 20000, Normal(40000, 12));
  Overlap(a, b);
  for (int i = 0; i < 50; ++i) {  // and at full speed
    for (Sampler* each : {&a, &b}) each->Forget();
    a.Run();
    b.Run();
    EXPECT_EQ(b.Tokens(), b.want());
    EXPECT_EQ(a.Tokens(), a.want());
  }
}

// The board's second device; on a board of one, the host's.
vt::Device SecondDevice() {
  for (const vt::DeviceInfo& info : vt::ListDevices()) {
    if (info.device.type == TestDevice().type && info.device.index != TestDevice().index) return info.device;
  }
  vt::cpu::Register();
  return {};
}

TEST(SampleScratch, TwoDevicesKeepTheirPartials) {
  Sampler a(TestDevice(), 20000, Normal(40000, 13));
  Sampler b(SecondDevice(), 20000, Normal(40000, 14));
  RecordProperty("second", vt::ToString(SecondDevice()));
  EXPECT_NE(&a.backend().scratch(), &b.backend().scratch());
  Overlap(a, b);
  EXPECT_EQ(a.backend().scratch().usage(b.queue()).buffers, 0U);
  EXPECT_EQ(b.backend().scratch().usage(a.queue()).buffers, 0U);
}

TEST(SampleScratch, OtherOpsOfTheQueueDoNotTouchThePartials) {
  Sampler a(TestDevice(), 20000, Normal(20000, 15));
  const vt::Tensor p = a.pool().New(kF32, {1, 20000});
  const vt::Tensor best = a.pool().New(kI32, {1});
  const auto others = [&] {
    vt::Run(a.queue(), vt::SoftmaxArgs{.x = a.args().x, .out = p});
    vt::Run(a.queue(), vt::ArgMaxArgs{.x = a.args().x, .out = best});
  };
  a.Run();
  others();
  a.Forget();
  a.Run(SamplePhase::partials);
  others();
  a.Run(SamplePhase::combine);
  EXPECT_EQ(a.Tokens(), a.want());
}

TEST(SampleScratch, EachQueueOwnsWhatItAllocated) {
  vt::ScratchTable& table = vt::GetBackend(TestDevice()).scratch();
  const vt::ScratchTable::Usage before = table.usage();
  {
    Sampler a(TestDevice(), 20000, Normal(20000, 16));
    Sampler b(TestDevice(), 50000, Normal(50000, 17));
    EXPECT_EQ(a.scratch_buffers(), 0U) << "nothing is allocated before it is needed";
    a.Run();
    EXPECT_EQ(a.scratch_buffers(), 1U);
    EXPECT_EQ(a.scratch_bytes(), 10 * sizeof(uint64_t)) << "one partial a block of 2048";
    EXPECT_EQ(b.scratch_buffers(), 0U);
    b.Run();
    EXPECT_EQ(b.scratch_bytes(), 25 * sizeof(uint64_t));
    for (int i = 0; i < 3; ++i) a.Run();
    EXPECT_EQ(table.usage().buffers, before.buffers + 2) << "a call that fits allocates nothing";
    EXPECT_EQ(table.usage().bytes, before.bytes + 35 * sizeof(uint64_t));
    EXPECT_EQ(a.Tokens(), a.want());
    EXPECT_EQ(b.Tokens(), b.want());
  }
  EXPECT_EQ(table.usage().buffers, before.buffers) << "freed with their queues";
  EXPECT_EQ(table.usage().bytes, before.bytes);
}

TEST(SampleScratch, AShortRowNeedsNone) {
  Sampler a(TestDevice(), 2048, Normal(2048, 18));
  a.Run();
  EXPECT_EQ(a.scratch_buffers(), 0U);
  EXPECT_EQ(a.Tokens(), a.want());
}

TEST(SampleScratch, GrowthWaitsForQueuedWork) {
  Sampler a(TestDevice(), 20000, Normal(20000, 19));
  Sampler grown(TestDevice(), 20000, Normal(20000, 19));
  a.Run();
  const vt::RandomSampleArgs first = a.args();
  const std::vector<int32_t> want = a.want();
  a.Load(100000, Normal(300000, 20), 2);
  a.Forget();
  vt::Run(a.queue(), first);  // queued, and not waited for
  a.Run();                    // needs fifteen times as much
  EXPECT_EQ(a.Tokens(), a.want());
  int32_t token = 0;
  a.backend().CopyOut(a.queue(), &token, first.out.data, sizeof token);
  EXPECT_EQ(std::vector<int32_t>{token}, want);
  EXPECT_EQ(a.scratch_buffers(), 1U);
  EXPECT_EQ(a.scratch_bytes(), 3 * 49 * sizeof(uint64_t));
}

void ExpectColdCaptureRefused(Sampler& a) {
  const vt::ScratchTable::Usage before = a.backend().scratch().usage();
  a.backend().BeginCapture(a.queue());
  try {
    a.Run();
    ADD_FAILURE() << "not refused";
    a.backend().AbandonCapture(a.queue());
  } catch (const vt::RefusedError& e) {
    EXPECT_THAT(e.what(), HasSubstr("scratch 'RandomSample.partials'"));
    EXPECT_THAT(e.what(), HasSubstr("run the call once outside capture first"));
  }
  EXPECT_FALSE(a.queue().capturing());
  EXPECT_EQ(a.backend().scratch().usage().buffers, before.buffers);
  EXPECT_EQ(a.backend().scratch().usage().bytes, before.bytes);
  EXPECT_THROW(a.backend().EndCapture(a.queue()), vt::RefusedError) << "the capture was ended";
}

TEST(SampleScratch, AColdCaptureIsRefusedAndRecovers) {
  const Logits rows = Normal(40000, 21);
  Sampler a(TestDevice(), 20000, rows);
  ExpectColdCaptureRefused(a);
  a.Run();
  EXPECT_EQ(a.Tokens(), a.want());
  const auto graph = a.Capture();
  for (const uint64_t seed : {5, 6}) {  // a replay reads the seed of its time
    a.Forget();
    a.SetSeed(seed);
    graph->Launch(a.queue());
    EXPECT_EQ(a.Tokens(), OnHost(rows, 20000, seed));
  }
}

TEST(SampleScratch, WarmForLessIsCold) {
  Sampler a(TestDevice(), 20000, Normal(20000, 22));
  a.Run();
  a.Load(100000, Normal(200000, 23), 1);
  ExpectColdCaptureRefused(a);
  a.Run();
  EXPECT_EQ(a.Tokens(), a.want());
}

// First use inside a graph, then an uncaptured call before the graph ran: a capture that allocates makes the
// second one work on memory that does not exist yet.
TEST(SampleScratch, FirstUseInsideAGraphThenAnUncapturedCall) {
  Sampler a(TestDevice(), 20000, Normal(20000, 24));
  ExpectColdCaptureRefused(a);
  a.Run();
  const auto graph = a.Capture();  // has not run
  a.Forget();
  a.Run();
  EXPECT_EQ(a.Tokens(), a.want());
  a.Forget();
  graph->Launch(a.queue());
  EXPECT_EQ(a.Tokens(), a.want());
}

TEST(SampleScratch, GrowthLeavesWhatAGraphUses) {
  Sampler a(TestDevice(), 20000, Normal(20000, 25));
  a.Run();
  const auto graph = a.Capture();
  const vt::RandomSampleArgs captured = a.args();
  const std::vector<int32_t> want = a.want();
  a.Load(100000, Normal(300000, 26), 1);
  a.Run();
  EXPECT_EQ(a.Tokens(), a.want());
  const vt::Buffer taker = a.backend().Alloc(80);  // would take the hole
  a.backend().Fill(a.queue(), taker.data(), 0, taker.bytes());
  a.backend().Fill(a.queue(), captured.out.data, 0x77, 4);
  graph->Launch(a.queue());
  int32_t token = 0;
  a.backend().CopyOut(a.queue(), &token, captured.out.data, sizeof token);
  EXPECT_EQ(std::vector<int32_t>{token}, want);
  std::vector<uint8_t> taken(80, 1);
  a.backend().CopyOut(a.queue(), taken.data(), taker.data(), taken.size());
  EXPECT_EQ(taken, std::vector<uint8_t>(80, 0));
}

TEST(SampleScratch, HostThreadsWithTheirOwnQueues) {
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (uint32_t round = 1; round < 5; ++round) {
        const size_t n = 5000 * round;
        Sampler mine(TestDevice(), n, Normal(n, 100 * t + round), t);
        mine.Run();
        EXPECT_EQ(mine.Tokens(), mine.want());
        const auto graph = mine.Capture();
        mine.Forget();
        graph->Launch(mine.queue());
        EXPECT_EQ(mine.Tokens(), mine.want());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SampleScratch, HostThreadsOnOneQueue) {
  Sampler shared(TestDevice(), 5000, Normal(5000, 31));
  std::vector<vt::RandomSampleArgs> calls;
  std::vector<std::vector<int32_t>> want;
  for (uint32_t t = 0; t < 4; ++t) {  // sizes that grow the scratch while others use it
    const size_t n = 5000 + 9000 * t;
    shared.Load(n, Normal(n, 40 + t), t);
    calls.push_back(shared.args());
    want.push_back(shared.want());
  }
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    for (const vt::RandomSampleArgs& call : calls) {
      threads.emplace_back([&] { vt::Run(shared.queue(), call); });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t t = 0; t < calls.size(); ++t) {
      int32_t token = 0;
      shared.backend().CopyOut(shared.queue(), &token, calls[t].out.data, sizeof token);
      EXPECT_EQ(std::vector<int32_t>{token}, want[t]);
    }
  }
}

// The other ops of sampling against the cpu's kernels, bit for bit.
class SampleOpsOnBoth : public DeviceOps {
 protected:
  template <class Args>
  void RunOnHost(const Args& args) {
    vt::cpu::Register();
    vt::Run(*vt::GetBackend({}).CreateQueue(), args);
  }
  vt::Draws DrawsOf(int32_t seed) {
    return {.seed = t_.Ints({seed, 0, 3}), .position = t_.Ints({kPosition}), .offset = 1};
  }
  vt::Tensor NormalRows(int64_t rows, size_t n, uint32_t seed) {
    const Logits values = Normal(static_cast<size_t>(rows) * n, seed);
    const vt::Tensor x = t_.Empty(kF32, {rows, static_cast<int64_t>(n)});
    std::copy(values.begin(), values.end(), x.as<float>());
    return x;
  }
};

TEST_F(SampleOpsOnBoth, Filters) {
  for (const size_t n : {size_t{1}, size_t{255}, size_t{2048}, size_t{151936}}) {
    for (const auto& [k, p] :
         {std::pair<int64_t, float>{40, 1.0F}, {0, 0.9F}, {50, 0.95F}, {100000, 0.999F}}) {
      const vt::Tensor host = NormalRows(n > 10000 ? 1 : 16, n, 51);
      const vt::Tensor device = t_.Copy(host);
      RunOnHost(vt::ApplyTopKTopPArgs{.x = host, .top_k = k, .top_p = p});
      Run(vt::ApplyTopKTopPArgs{.x = device, .top_k = k, .top_p = p});
      EXPECT_TRUE(SameBits(host, device)) << n << " tokens, top_k " << k << ", top_p " << p;
    }
  }
}

TEST_F(SampleOpsOnBoth, Softmaxes) {
  for (const size_t n : {size_t{1}, size_t{2047}, size_t{151936}}) {
    const vt::Tensor x = NormalRows(n > 10000 ? 2 : 16, n, 52);
    const vt::Tensor host = t_.Copy(x);
    Run(vt::SoftmaxArgs{.x = x, .out = x});
    RunOnHost(vt::SoftmaxArgs{.x = host, .out = host});
    EXPECT_TRUE(SameBits(host, x)) << n;
  }
}

TEST_F(SampleOpsOnBoth, Rounds) {
  for (const int64_t k : {1, 4, 16, 64}) {
    for (int32_t seed = 0; seed < 12; ++seed) {
      const int64_t drafts = 1 + (seed * 5) % 15;
      const size_t n = seed % 2 == 0 ? 100 : 5000;
      const vt::Tensor ids = t_.Empty(kI32, {drafts, k});
      std::vector<int32_t> all(n);
      for (size_t i = 0; i < n; ++i) all[i] = static_cast<int32_t>(i);
      for (int64_t t = 0; t < drafts; ++t) {
        std::shuffle(all.begin(), all.end(), t_.random());
        std::copy(all.begin(), all.begin() + k, ids.as<int32_t>() + t * k);
      }
      const vt::Tensor edges = t_.Random(kF32, {drafts, k, k}, -2, 2);
      std::vector<vt::Tensor> drafted, q, target;
      vt::Tensor p = NormalRows(drafts, n, static_cast<uint32_t>(seed));
      for (int64_t t = 0; t < drafts; ++t) {  // the candidates are likely, or every draft is rejected at once
        for (int64_t j = 0; j < k; ++j) p.as<float>()[t * p.step(0) + ids.as<int32_t>()[t * k + j]] += 9;
      }
      RunOnHost(vt::SoftmaxArgs{.x = p, .out = p});
      for (const bool host : {true, false}) {
        drafted.push_back(t_.Empty(kI32, {drafts}));
        q.push_back(t_.Empty(kF32, {drafts, k}));
        target.push_back(t_.Empty(kI32, {drafts + 1}));
        const vt::PathWalkArgs walk = {edges, ids, drafted.back(), q.back(), DrawsOf(seed), 0.8F};
        host ? RunOnHost(walk) : Run(walk);
        std::vector<int32_t> block = {0};
        for (const int32_t token : Ids(drafted.back())) block.push_back(token);
        const vt::RejectionSampleArgs reject = {
            t_.Ints(block), p, q.back(), ids, t_.Ints({17}), target.back(), DrawsOf(seed)};
        host ? RunOnHost(reject) : Run(reject);
      }
      EXPECT_EQ(Ids(drafted[0]), Ids(drafted[1])) << k << " candidates, seed " << seed;
      EXPECT_TRUE(SameBits(q[0], q[1])) << k << " candidates, seed " << seed;
      EXPECT_EQ(Ids(target[0]), Ids(target[1])) << k << " candidates, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace testing_support
