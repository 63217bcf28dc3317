// Graphs and scratch of RocmBackend: what a capture records and refuses, what it keeps alive.
#include <chrono>
#include <set>
#include <thread>

#include "backend/vt/dispatch.h"
#include "backend/vt/error.h"
#include "backend/vt/stats.h"
#include "tests/backend/hip/rocm_test.h"

namespace vt::hip::WARMLEG_VENDOR {
namespace {

using testing::Each;
using testing::HasSubstr;

// out = 2 * x by way of scratch, as an op with temporary memory does it.
void DoubleBy(Queue& queue, const char* purpose, const Buffer& x, const Buffer& out) {
  const size_t n = x.bytes() / sizeof(float);
  auto* temporary = Scratch<float>(queue, purpose, n);
  AddFloats(queue, static_cast<float*>(x.data()), static_cast<float*>(x.data()), temporary,
            static_cast<int>(n));
  queue.backend().Copy(queue, out.data(), temporary, x.bytes());
}

class RocmCapture : public RocmTest {
 protected:
  void SetUp() override {
    RocmTest::SetUp();
    x = backend->Alloc(1024);
    out = backend->Alloc(1024);
    FillFloats(*queue, Floats(x), 3, 256);
  }
  void TearDown() override {
    graph.reset();
    x = {};
    out = {};
    RocmTest::TearDown();
  }
  void Capture() {
    backend->BeginCapture(*queue);
    DoubleBy(*queue, "double", x, out);
    graph = backend->EndCapture(*queue);
  }
  void ExpectWorks() {
    EXPECT_FALSE(queue->capturing());
    DoubleBy(*queue, "double", x, out);
    EXPECT_THAT(Read(*queue, out), Each(6.0F));
    Capture();
    backend->Fill(*queue, out.data(), 0, out.bytes());
    graph->Launch(*queue);
    EXPECT_THAT(Read(*queue, out), Each(6.0F));
  }

  Buffer x, out;
  std::unique_ptr<Graph> graph;
};

TEST_F(RocmCapture, ReplaysWithWhatTheMemoryHoldsThen) {
  DoubleBy(*queue, "double", x, out);
  Capture();
  for (const float value : {1.0F, 4.0F}) {
    FillFloats(*queue, Floats(x), value, 256);
    graph->Launch(*queue);
    EXPECT_THAT(Read(*queue, out), Each(2 * value));
  }
}

TEST_F(RocmCapture, CountsItsCallsAtEachLaunch) {
  RegisterNative<SiluMulArgs>(
      kDeviceType, [](Queue& on, const SiluMulArgs& args) { FillFloats(on, args.out.as<float>(), 1, 4); });
  SiluMulArgs args;
  args.gate_up = MakeTensor(x.data(), DType::f32, {1, 8}, backend->device());
  args.out = MakeTensor(out.data(), DType::f32, {1, 4}, backend->device());
  const std::vector<OpTotals> before = ProviderTotals();
  backend->BeginCapture(*queue);
  for (int i = 0; i < 3; ++i) vt::Run(*queue, args);
  graph = backend->EndCapture(*queue);
  EXPECT_TRUE(Difference(ProviderTotals(), before).empty()) << "nothing ran yet";
  graph->Launch(*queue);
  graph->Launch(*queue);
  const std::vector<OpTotals> moved = Difference(ProviderTotals(), before);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].calls, 6U);
  EXPECT_EQ(moved[0].bytes, static_cast<uint64_t>(6 * args.bytes()));
  EXPECT_EQ(moved[0].provider, "vt-native");
  // A capture that is dropped leaves nothing for the next one.
  backend->BeginCapture(*queue);
  vt::Run(*queue, args);
  backend->AbandonCapture(*queue);
  backend->BeginCapture(*queue);
  graph = backend->EndCapture(*queue);
  graph->Launch(*queue);
  EXPECT_EQ(Difference(ProviderTotals(), before)[0].calls, 6U);
}

TEST_F(RocmCapture, StampsWorkInsideAGraph) {
  backend->BeginCapture(*queue);
  backend->Stamp(*queue, 0);
  FillFloatsLate(*queue, Floats(out), 1, 256, static_cast<uint64_t>(0.002 * ClockHz(Index())));
  backend->Stamp(*queue, 1);
  graph = backend->EndCapture(*queue);
  graph->Launch(*queue);
  backend->Synchronize(*queue);
  EXPECT_GE(backend->StampSeconds(*queue, 0, 1), 0.002);
}

TEST_F(RocmCapture, RefusesTheHostAndGoesOn) {
  DoubleBy(*queue, "double", x, out);
  std::vector<float> host(256);
  backend->BeginCapture(*queue);
  EXPECT_THROW(backend->FlushPending(*queue), RefusedError);
  EXPECT_THROW(backend->Synchronize(*queue), RefusedError);
  EXPECT_THROW(backend->BeginCapture(*queue), RefusedError);
  EXPECT_THROW(backend->CopyIn(*queue, x.data(), host.data(), 1024), RefusedError);
  EXPECT_THROW(backend->CopyOut(*queue, host.data(), x.data(), 1024), RefusedError);
  EXPECT_THROW(static_cast<void>(backend->Alloc(4)), RefusedError);
  EXPECT_THROW(static_cast<void>(backend->CreateQueue()), RefusedError);
  DoubleBy(*queue, "double", x, out);
  graph = backend->EndCapture(*queue);
  graph->Launch(*queue);
  EXPECT_THAT(Read(*queue, out), Each(6.0F));
  EXPECT_THROW(backend->EndCapture(*queue), RefusedError);
}

TEST_F(RocmCapture, MemoryFreedMeanwhileIsGivenBackAfterwards) {
  auto other = std::make_unique<Buffer>(backend->Alloc(64));
  const size_t before = LiveAllocations();
  backend->BeginCapture(*queue);
  other.reset();
  EXPECT_EQ(LiveAllocations(), before);
  FillFloats(*queue, Floats(out), 1, 256);
  graph = backend->EndCapture(*queue);
  EXPECT_EQ(LiveAllocations(), kSimulated ? before - 1 : before);
  graph->Launch(*queue);
  EXPECT_THAT(Read(*queue, out), Each(1.0F));
}

TEST_F(RocmCapture, AFlushSkipsOtherQueuesThatCapture) {
  const auto other = backend->CreateQueue();
  backend->BeginCapture(*queue);
  FillFloats(*queue, Floats(out), 7, 256);
  FillFloats(*other, Floats(x), 5, 256);
  backend->FlushPending(*other);
  EXPECT_EQ(Pending(0), 0U);
  EXPECT_THAT(Read(*other, x), Each(5.0F));
  graph = backend->EndCapture(*queue);
  graph->Launch(*queue);
  EXPECT_THAT(Read(*queue, out), Each(7.0F));
}

TEST_F(RocmCapture, AnotherQueueWorksOnWhileThisOneCaptures) {
  auto other = backend->CreateQueue();
  const std::vector<float> ones(256, 1);
  backend->BeginCapture(*queue);
  FillFloats(*queue, Floats(out), 7, 256);
  backend->CopyIn(*other, x.data(), ones.data(), x.bytes());
  EXPECT_THAT(Read(*other, x), Each(1.0F));
  FillFloats(*other, Floats(x), 5, 256);
  backend->Synchronize(*other);
  backend->BeginCapture(*other);
  FillFloats(*other, Floats(x), 6, 256);
  const auto second = backend->EndCapture(*other);
  EXPECT_THAT(Read(*other, x), Each(5.0F));
  second->Launch(*other);
  EXPECT_THAT(Read(*other, x), Each(6.0F));
  graph = backend->EndCapture(*queue);
  graph->Launch(*queue);
  EXPECT_THAT(Read(*queue, out), Each(7.0F));
}

TEST_F(RocmCapture, AQueueMayEndWhileAnotherCaptures) {
  auto other = backend->CreateQueue();
  FillFloats(*other, Floats(x), 5, 256);
  backend->BeginCapture(*queue);
  FillFloats(*queue, Floats(out), 7, 256);
  other.reset();
  graph = backend->EndCapture(*queue);
  graph->Launch(*queue);
  EXPECT_THAT(Read(*queue, out), Each(7.0F));
  EXPECT_THAT(Read(*queue, x), Each(5.0F));
}

TEST_F(RocmCapture, AGraphRunsOnItsOwnQueueOnly) {
  const auto other = backend->CreateQueue();
  DoubleBy(*queue, "double", x, out);
  Capture();
  EXPECT_THROW(graph->Launch(*other), RefusedError);
  backend->BeginCapture(*queue);
  EXPECT_THROW(graph->Launch(*queue), RefusedError);
  backend->AbandonCapture(*queue);
}

TEST_F(RocmCapture, AQueueMayEndWhileItCaptures) {
  auto other = backend->CreateQueue();
  backend->BeginCapture(*other);
  FillFloats(*other, Floats(x), 5, 256);
  other.reset();
  EXPECT_EQ(backend->Alloc(4).bytes(), 4U) << "this thread no longer captures";
}

TEST_F(RocmCapture, ColdScratchIsRefusedBeforeAnythingHappens) {
  backend->Synchronize(*queue);
  const size_t allocations = LiveAllocations();
  backend->BeginCapture(*queue);
  try {
    DoubleBy(*queue, "double", x, out);
    FAIL() << "not refused";
  } catch (const RefusedError& e) {
    EXPECT_THAT(e.what(), HasSubstr("scratch 'double' on " + DeviceName() +
                                    " has 0 bytes and a captured call needs 1024"));
  }
  EXPECT_EQ(LiveAllocations(), allocations);
  EXPECT_EQ(backend->scratch().usage().buffers, 0U);
  ExpectWorks();
}

TEST_F(RocmCapture, ScratchThatIsTooSmallIsColdToo) {
  Scratch<float>(*queue, "double", 10);
  backend->BeginCapture(*queue);
  EXPECT_THROW(DoubleBy(*queue, "double", x, out), RefusedError);
  EXPECT_EQ(backend->scratch().usage().bytes, 40U);
  ExpectWorks();
}

TEST_F(RocmCapture, GrowthDoesNotFreeWhatAGraphUses) {
  DoubleBy(*queue, "double", x, out);
  Capture();
  Scratch<float>(*queue, "double", 1 << 18);  // larger, and afterwards other memory takes any hole
  const Buffer taker = backend->Alloc(1024);
  FillFloats(*queue, Floats(taker), -1, 256);
  const size_t live = LiveAllocations();
  for (int i = 0; i < 2; ++i) {
    backend->Fill(*queue, out.data(), 0, out.bytes());
    graph->Launch(*queue);
    EXPECT_THAT(Read(*queue, out), Each(6.0F));
    EXPECT_THAT(Read(*queue, taker), Each(-1.0F));
  }
  graph.reset();
  EXPECT_EQ(LiveAllocations(), kSimulated ? live - 1 : live) << "the graph's buffer goes with the graph";
}

TEST_F(RocmCapture, AGraphOutlivesItsQueue) {
  auto other = backend->CreateQueue();
  DoubleBy(*other, "double", x, out);
  backend->BeginCapture(*other);
  DoubleBy(*other, "double", x, out);
  graph = backend->EndCapture(*other);
  graph->Launch(*other);
  other.reset();
  EXPECT_EQ(backend->scratch().usage().buffers, 0U);
  graph.reset();
}

TEST_F(RocmCapture, ScratchBelongsToDeviceQueueAndPurpose) {
  const auto other_queue = backend->CreateQueue();
  const auto other_device = OpenOther();  // null on a machine with one device: two queues then
  const auto elsewhere = other_device ? other_device->CreateQueue() : nullptr;
  std::set<float*> seen;
  for (Queue* each : {queue.get(), other_queue.get(), elsewhere.get()}) {
    if (each == nullptr) continue;
    for (const char* purpose : {"a", "b"}) {
      float* data = Scratch<float>(*each, purpose, 100);
      EXPECT_TRUE(seen.insert(data).second) << purpose << " is shared";
      EXPECT_EQ(Scratch<float>(*each, purpose, 50), data) << "grow-only";
    }
  }
  EXPECT_EQ(backend->scratch().usage().buffers, 4U);
  if (elsewhere) {
    EXPECT_EQ(other_device->scratch().usage(*elsewhere).bytes, 800U);
  }
}

TEST_F(RocmCapture, TwoQueuesDoNotDisturbOneAnother) {
  const auto other = backend->CreateQueue();
  const Buffer y = backend->Alloc(1024);
  const Buffer out_y = backend->Alloc(1024);
  FillFloats(*other, Floats(y), 10, 256);
  DoubleBy(*queue, "double", x, out);
  DoubleBy(*other, "double", y, out_y);
  EXPECT_THAT(Read(*other, out_y), Each(20.0F));
  EXPECT_GT(Pending(1), 0U) << "waiting for one queue ran the other";
  EXPECT_THAT(Read(*queue, out), Each(6.0F));
}

TEST_F(RocmCapture, ScratchIsFreedWithItsQueue) {
  auto other = backend->CreateQueue();
  const size_t before = LiveBytes();
  Scratch<float>(*other, "a", 100);
  Scratch<float>(*other, "a", 200);
  EXPECT_EQ(LiveBytes(), kSimulated ? before + 800 : before);
  EXPECT_EQ(backend->scratch().usage().bytes, 800U);
  other.reset();
  EXPECT_EQ(LiveBytes(), before);
  EXPECT_EQ(backend->scratch().usage().bytes, 0U);
}

TEST_F(RocmCapture, HostThreadsUseTheirQueuesAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const auto mine = backend->CreateQueue();
      const auto value = static_cast<float>(t + 1);
      for (int round = 1; round < 8; ++round) {
        const Buffer in = backend->Alloc(static_cast<size_t>(round) * 1024);
        const Buffer doubled = backend->Alloc(in.bytes());
        FillFloats(*mine, Floats(in), value, round * 256);
        DoubleBy(*mine, "double", in, doubled);
        backend->BeginCapture(*mine);
        DoubleBy(*mine, "double", in, doubled);
        const auto replay = backend->EndCapture(*mine);
        replay->Launch(*mine);
        EXPECT_THAT(Read(*mine, doubled), Each(2 * value));
        backend->FlushPending(*mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// An op of two launches over one piece of scratch, called by several threads on one queue.
TEST_F(RocmCapture, HostThreadsShareAQueue) {
  RegisterNative<SiluMulArgs>(kDeviceType, [](Queue& on, const SiluMulArgs& args) {
    const auto n = static_cast<size_t>(args.out.count());
    auto* twice = Scratch<float>(on, "twice", n);
    AddFloats(on, args.gate_up.as<float>(), args.gate_up.as<float>(), twice, static_cast<int>(n));
    std::this_thread::sleep_for(
        std::chrono::milliseconds(5));  // now another thread's call comes between, if it may
    on.backend().Copy(on, args.out.data, twice, n * sizeof(float));
  });
  constexpr int kThreads = 4;
  std::vector<Buffer> in, doubled;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    const int n = 256 * (kThreads - t);
    in.push_back(backend->Alloc(static_cast<size_t>(2 * n) * sizeof(float)));
    doubled.push_back(backend->Alloc(static_cast<size_t>(n) * sizeof(float)));
    FillFloats(*queue, Floats(in.back()), static_cast<float>(t + 1), 2 * n);
  }
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SiluMulArgs args;
      const auto n = static_cast<int64_t>(doubled[t].bytes() / sizeof(float));
      args.gate_up = MakeTensor(in[t].data(), DType::f32, {1, 2 * n}, backend->device());
      args.out = MakeTensor(doubled[t].data(), DType::f32, {1, n}, backend->device());
      vt::Run(*queue, args);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t)
    EXPECT_THAT(Read(*queue, doubled[t]), Each(2.0F * static_cast<float>(t + 1)));
}

}  // namespace
}  // namespace vt::hip::WARMLEG_VENDOR
