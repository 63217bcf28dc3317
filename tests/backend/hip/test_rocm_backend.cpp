// RocmBackend on the simulated device: copies, launches, the flush before a host fall-back, two queues, two
// devices.
#include <numeric>

#include "backend/cpu/register.h"
#include "backend/vt/dispatch.h"
#include "backend/vt/memory_error.h"
#include "backend/vt/stats.h"
#include "tests/backend/hip/rocm_test.h"

namespace vt::hip::on_sim {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using RocmBackendTest = RocmTest;

TEST_F(RocmBackendTest, ListsItsDevicesByBusAddress) {
  const std::vector<DeviceInfo> devices = ListHipDevices(nullptr);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(ToString(devices[1].device), "sim:1");
  EXPECT_EQ(devices[0].pci, "ffff:00:00.0");
  EXPECT_EQ(devices[1].pci, "ffff:01:00.0");
  EXPECT_EQ(devices[0].memory_bytes, uint64_t{64} << 20);
  EXPECT_EQ(devices[0].peak_gb_s, 0) << "a simulation has no roof";
}

TEST_F(RocmBackendTest, CopiesOfAnySizeGoThroughThePinnedBuffer) {
  for (const size_t count : {size_t{1}, Staging::kHalfBytes / 4, 5 * Staging::kHalfBytes / 8 + 3}) {
    const Buffer buffer = backend->Alloc(count * sizeof(float));
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    const std::vector<float> sent = values;
    Write(*queue, buffer, values);
    values.assign(count, -1);  // the host side may be reused at once
    EXPECT_EQ(Read(*queue, buffer), sent);
  }
  EXPECT_EQ(sim::PageableCopies(), 0U);
}

TEST_F(RocmBackendTest, ALaunchReturnsBeforeItsWork) {
  const Buffer buffer = backend->Alloc(4 * sizeof(float));
  backend->Fill(*queue, buffer.data(), 0, buffer.bytes());
  FillFloats(*queue, Floats(buffer), 3, 4);
  EXPECT_EQ(sim::PendingWork(0), 2U);
  backend->Synchronize(*queue);
  EXPECT_EQ(sim::PendingWork(0), 0U);
  EXPECT_THAT(Read(*queue, buffer), Each(3.0F));
}

TEST_F(RocmBackendTest, ExampleKernelsRunOnBothWaveSizes) {
  for (const int index : {0, 1}) {
    const auto device = Open(index);
    const auto work = device->CreateQueue();
    EXPECT_EQ(WaveSize(*work), index == 0 ? 32 : 64);
    const Buffer x = device->Alloc(512 * sizeof(float));
    const Buffer out = device->Alloc(512 * sizeof(float));
    std::vector<float> values(512);
    for (size_t i = 0; i < 512; ++i) values[i] = i % 3 == 0 ? -1.0F : static_cast<float>(i);
    Write(*work, x, values);
    RowSums(*work, Floats(x), Floats(out), 2, 256);
    const float first = std::accumulate(values.begin(), values.begin() + 256, 0.0F);
    EXPECT_EQ(Read(*work, out)[0], first) << "integers: exact in any order";
    ReverseChunks(*work, Floats(x), Floats(out), 2);
    EXPECT_EQ(Read(*work, out)[256], values[511]);
    AddFloats(*work, Floats(x), Floats(x), Floats(out), 511);
    EXPECT_EQ(Read(*work, out)[510], 2 * values[510]);
    uint64_t counts[2];
    device->Fill(*work, out.data(), 0, 16);
    CountPositive(*work, Floats(x), static_cast<uint64_t*>(out.data()), 512);
    device->CopyOut(*work, counts, out.data(), sizeof(counts));
    EXPECT_EQ(counts[0] & 0xffU, 0b10110110U);
    EXPECT_EQ(counts[1], 341U);
  }
}

TEST_F(RocmBackendTest, StampsTellDeviceTime) {
  backend->Stamp(*queue, 3);
  const Buffer buffer = backend->Alloc(1 << 20);
  FillFloats(*queue, Floats(buffer), 1, 1 << 18);
  backend->Stamp(*queue, 4);
  backend->Synchronize(*queue);
  EXPECT_GT(backend->StampSeconds(*queue, 3, 4), 0);
  EXPECT_LT(backend->StampSeconds(*queue, 4, 3), 0);
}

TEST_F(RocmBackendTest, DestroyingAQueueDrainsIt) {
  const Buffer buffer = backend->Alloc(4 * sizeof(float));
  auto other = backend->CreateQueue();
  FillFloats(*other, Floats(buffer), 5, 4);
  other.reset();
  EXPECT_THAT(Read(*queue, buffer), Each(5.0F));
}

TEST_F(RocmBackendTest, FlushPendingDrainsEveryQueueOfTheDeviceAndNoOther) {
  const auto other_queue = backend->CreateQueue();
  const auto other_device = Open(1);
  const auto elsewhere = other_device->CreateQueue();
  const Buffer here = backend->Alloc(16);
  const Buffer there = other_device->Alloc(16);
  FillFloats(*queue, Floats(here), 1, 4);
  FillFloats(*other_queue, Floats(here), 1, 4);
  FillFloats(*elsewhere, Floats(there), 1, 4);
  backend->FlushPending(*queue);
  EXPECT_EQ(sim::PendingWork(0), 0U);
  EXPECT_EQ(sim::PendingWork(1), 1U) << "the other device was disturbed";
}

// out = src[index], served by the host: src and index are written by queued work.
class HostFallback : public RocmTest {
 protected:
  void SetUp() override {
    cpu::Register();
    RocmTest::SetUp();
    Reopen(MemoryKind::host_coherent);
  }
  void TearDown() override {
    args = {};
    for (Buffer* buffer : {&src, &index, &out}) *buffer = {};
    RocmTest::TearDown();
  }
  void Reopen(MemoryKind kind) {
    for (Buffer* buffer : {&src, &index, &out}) *buffer = {};
    queue.reset();
    backend = Open(0, kind);
    queue = backend->CreateQueue();
    src = backend->Alloc(8 * sizeof(float));
    index = backend->Alloc(2 * sizeof(int32_t));
    out = backend->Alloc(4 * sizeof(float));
    args.src = MakeTensor(src.data(), DType::f32, {4, 2}, backend->device());
    args.index = MakeTensor(index.data(), DType::i32, {2}, backend->device());
    args.out = MakeTensor(out.data(), DType::f32, {2, 2}, backend->device());
    backend->Fill(*queue, index.data(), 0, index.bytes());
    backend->Fill(*queue, out.data(), 0, out.bytes());
  }

  Buffer src, index, out;
  IndexSelectArgs args;
};

TEST_F(HostFallback, ReadsWhatWasQueuedBeforeTheCall) {
  const OpCall<IndexSelectArgs> op;  // looked up before the work is queued: a flush then would be too early
  for (const float value : {2.0F, 3.0F}) {
    FillFloats(*queue, Floats(src), value, 8);
    ASSERT_GT(sim::PendingWork(0), 0U);
    op(*queue, args);
    EXPECT_THAT(Read(*queue, out), Each(value));
  }
}

TEST_F(HostFallback, ReadsWhatAnotherQueueOfTheDeviceWrote) {
  const auto other = backend->CreateQueue();
  FillFloats(*other, Floats(src), 4, 8);
  vt::Run(*queue, args);
  EXPECT_THAT(Read(*queue, out), Each(4.0F));
}

TEST_F(HostFallback, TheDeviceSeesWhatTheHostWrote) {
  FillFloats(*queue, Floats(src), 4, 8);
  vt::Run(*queue, args);
  AddFloats(*queue, Floats(out), Floats(out), Floats(out), 4);
  EXPECT_THAT(Read(*queue, out), Each(8.0F));
}

TEST_F(HostFallback, WorksInManagedMemoryToo) {
  Reopen(MemoryKind::managed);
  FillFloats(*queue, Floats(src), 6, 8);
  vt::Run(*queue, args);
  EXPECT_THAT(Read(*queue, out), Each(6.0F));
}

TEST_F(HostFallback, IsCounted) {
  FillFloats(*queue, Floats(src), 4, 8);
  const std::vector<OpTotals> before = ProviderTotals();
  vt::Run(*queue, args);
  vt::Run(*queue, args);
  const std::vector<OpTotals> moved = Difference(ProviderTotals(), before);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].op, "IndexSelect");
  EXPECT_EQ(ToString(moved[0].device), "sim:0");
  EXPECT_EQ(moved[0].provider, "vt-cpu-ref");
  EXPECT_EQ(moved[0].calls, 2U);
  EXPECT_EQ(moved[0].fallbacks, 2U);
  EXPECT_EQ(moved[0].fallback_reason, "no native kernel");
  EXPECT_EQ(moved[0].bytes, static_cast<uint64_t>(2 * args.bytes()));
}

TEST_F(HostFallback, IsRefusedByNameWhereTheHostMayNotReadTheMemory) {
  Reopen(MemoryKind::device);
  try {
    vt::Run(*queue, args);
    FAIL() << "not refused";
  } catch (const RefusedError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("IndexSelect"), HasSubstr("sim:0"), HasSubstr("device memory")));
  }
}

TEST_F(HostFallback, IsRefusedWhileTheQueueCaptures) {
  backend->BeginCapture(*queue);
  const std::vector<OpTotals> before = ProviderTotals();
  EXPECT_THROW(vt::Run(*queue, args), RefusedError);
  EXPECT_FALSE(queue->capturing());
  EXPECT_TRUE(Difference(ProviderTotals(), before).empty());
  FillFloats(*queue, Floats(src), 4, 8);
  vt::Run(*queue, args);
  EXPECT_THAT(Read(*queue, out), Each(4.0F));
}

TEST_F(RocmBackendTest, AnErrorSaysWhatAndWhereAndDoesNotLeak) {
  try {
    launch(
        +[](int) {}, 1, 2048, 0, *queue, 1);
    FAIL() << "not refused";
  } catch (const EnvironmentError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("launch failed at"), HasSubstr("test_rocm_backend.cpp:"),
                                HasSubstr("hipErrorInvalidConfiguration"),
                                HasSubstr("invalid configuration argument")));
  }
  EXPECT_EQ(sim::hipPeekAtLastError(), sim::hipSuccess);
  const Buffer buffer = backend->Alloc(16);
  FillFloats(*queue, Floats(buffer), 1, 4);
  EXPECT_THAT(Read(*queue, buffer), Each(1.0F));
}

TEST_F(RocmBackendTest, AFaultOfAKernelIsReportedWhereItIsWaitedFor) {
  launch(
      +[](int) {
        if (threadIdx.x > 0) BlockSync();
      },
      1, 32, 0, *queue, 1);
  try {
    backend->Synchronize(*queue);
    FAIL() << "no error";
  } catch (const EnvironmentError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("hipErrorLaunchFailure"), HasSubstr("wait at a barrier")));
  }
  EXPECT_EQ(sim::hipDeviceReset(), sim::hipSuccess);
}

TEST_F(RocmBackendTest, OutOfMemoryNamesTheSize) {
  try {
    static_cast<void>(backend->Alloc(size_t{65} << 20));
    FAIL() << "not refused";
  } catch (const OutOfMemoryError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("68157440 bytes of device memory on sim:0"),
                                HasSubstr("hipErrorOutOfMemory")));
  }
  EXPECT_EQ(backend->Alloc(16).bytes(), 16U);
}

}  // namespace
}  // namespace vt::hip::on_sim
