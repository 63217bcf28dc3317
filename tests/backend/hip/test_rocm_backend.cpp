// RocmBackend on the device at hand: copies, launches, the flush before a host fall-back, two queues, two
// devices.
#include <chrono>
#include <numeric>
#include <optional>

#include "backend/cpu/register.h"
#include "backend/vt/dispatch.h"
#include "backend/vt/error.h"
#include "backend/vt/stats.h"
#include "tests/backend/hip/rocm_test.h"

namespace vt::hip::WARMLEG_VENDOR {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using RocmBackendTest = RocmTest;

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
#if defined(WARMLEG_VENDOR_SIM)
  EXPECT_EQ(sim::PageableCopies(), 0U);
#endif
}

TEST_F(RocmBackendTest, ExampleKernelsRunOnEveryDevice) {
  for (const DeviceInfo& info : ListHipDevices(nullptr)) {
    const auto device = Open(info.device.index);
    const auto work = device->CreateQueue();
    if (kSimulated) {
      EXPECT_EQ(WaveSize(*work), info.device.index == 0 ? 32 : 64);
    }
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
  const Buffer buffer = backend->Alloc(16);
  backend->Stamp(*queue, 3);
  FillFloatsLate(*queue, Floats(buffer), 1, 4, static_cast<uint64_t>(0.002 * ClockHz(Index())));
  backend->Stamp(*queue, 4);
  backend->Synchronize(*queue);
  const double seconds = backend->StampSeconds(*queue, 3, 4);
  EXPECT_GE(seconds, 0.002);
  EXPECT_LT(seconds, 0.5);
  EXPECT_EQ(backend->StampSeconds(*queue, 4, 3), -seconds);
}

TEST_F(RocmBackendTest, MeasuresItsOwnClock) {
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<double> mhz = backend->MeasureClockMhz(*queue, 0.02);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(mhz);
  EXPECT_GE(took.count(), 0.02);
  // The simulated counter runs at 1000 MHz; a real one lies below what its runtime states, and is no idle
  // clock.
  const double top = kSimulated ? 1500 : 1.1 * backend->Info().top_clock_mhz;
  EXPECT_GT(*mhz, kSimulated ? 500 : 100);
  EXPECT_LT(*mhz, top);
  backend->BeginCapture(*queue);
  EXPECT_THROW(backend->MeasureClockMhz(*queue, 0.001), RefusedError);
  backend->AbandonCapture(*queue);
}

TEST_F(RocmBackendTest, DestroyingAQueueDrainsIt) {
  const Buffer buffer = backend->Alloc(4 * sizeof(float));
  auto other = backend->CreateQueue();
  FillFloatsLate(*other, Floats(buffer), 5, 4, LateTicks());
  other.reset();
  EXPECT_THAT(Read(*queue, buffer), Each(5.0F));
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
    backend = Open(Index(), kind);
    queue = backend->CreateQueue();
    src = backend->Alloc(8 * sizeof(float));
    index = backend->Alloc(2 * sizeof(int32_t));
    out = backend->Alloc(4 * sizeof(float));
    args.src = MakeTensor(src.data(), DType::f32, {4, 2}, backend->device());
    args.index = MakeTensor(index.data(), DType::i32, {2}, backend->device());
    args.out = MakeTensor(out.data(), DType::f32, {2, 2}, backend->device());
    backend->Fill(*queue, index.data(), 0, index.bytes());
    backend->Fill(*queue, src.data(), 0, src.bytes());
    backend->Fill(*queue, out.data(), 0, out.bytes());
    backend->Synchronize(*queue);
  }
  // Work that the host would overtake if nothing waited for it.
  void FillLate(Queue& on, float value) { FillFloatsLate(on, Floats(src), value, 8, LateTicks()); }

  Buffer src, index, out;
  IndexSelectArgs args;
};

TEST_F(HostFallback, ALaunchReturnsBeforeItsWork) {
  FillLate(*queue, 3);
  EXPECT_EQ(*static_cast<volatile float*>(Floats(src)), 0.0F) << "the tests below would prove nothing";
  backend->Synchronize(*queue);
  EXPECT_EQ(*Floats(src), 3.0F);
}

TEST_F(HostFallback, FlushPendingWaitsForEveryQueueOfTheDevice) {
  const auto other = backend->CreateQueue();
  FillLate(*other, 7);
  backend->FlushPending(*queue);
  EXPECT_EQ(*static_cast<volatile float*>(Floats(src)), 7.0F);
  EXPECT_EQ(Pending(0), 0U);
}

TEST_F(HostFallback, ReadsWhatWasQueuedBeforeTheCall) {
  const OpCall<IndexSelectArgs> op;  // looked up before the work is queued: a flush then would be too early
  for (const float value : {2.0F, 3.0F}) {
    FillLate(*queue, value);
    ASSERT_GT(Pending(1), 0U);
    op(*queue, args);
    EXPECT_THAT(Read(*queue, out), Each(value));
  }
}

TEST_F(HostFallback, ReadsWhatAnotherQueueOfTheDeviceWrote) {
  const auto other = backend->CreateQueue();
  FillLate(*other, 4);
  vt::Run(*queue, args);
  EXPECT_THAT(Read(*queue, out), Each(4.0F));
}

TEST_F(HostFallback, TheDeviceSeesWhatTheHostWrote) {
  FillFloats(*queue, Floats(src), 4, 8);
  vt::Run(*queue, args);
  AddFloats(*queue, Floats(out), Floats(out), Floats(out), 4);
  EXPECT_THAT(Read(*queue, out), Each(8.0F));
}

TEST_F(HostFallback, IsCounted) {
  FillFloats(*queue, Floats(src), 4, 8);
  const std::vector<OpTotals> before = ProviderTotals();
  vt::Run(*queue, args);
  vt::Run(*queue, args);
  const std::vector<OpTotals> moved = Difference(ProviderTotals(), before);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].op, "IndexSelect");
  EXPECT_EQ(moved[0].device, backend->device());
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
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("IndexSelect"), HasSubstr(DeviceName()), HasSubstr("device memory")));
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
  const Buffer buffer = backend->Alloc(16);
  try {
    LaunchTooLarge(*queue, Floats(buffer));
    FAIL() << "not refused";
  } catch (const EnvironmentError& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("launch failed at"), HasSubstr("example.hip:"), HasSubstr("invalid")));
  }
  EXPECT_EQ(hipGetLastError(), hipSuccess);
  FillFloats(*queue, Floats(buffer), 1, 4);
  EXPECT_THAT(Read(*queue, buffer), Each(1.0F));
}

TEST_F(RocmBackendTest, OutOfMemoryNamesTheSize) {
  const size_t bytes = backend->Info().memory_bytes + (size_t{1} << 20);
  try {
    static_cast<void>(backend->Alloc(bytes));
    FAIL() << "not refused";
  } catch (const OutOfMemoryError& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr(std::to_string(bytes) + " bytes of device memory on " + DeviceName()),
                      HasSubstr(hipGetErrorName(hipErrorOutOfMemory))));
  }
  EXPECT_EQ(backend->Alloc(16).bytes(), 16U);
}

}  // namespace
}  // namespace vt::hip::WARMLEG_VENDOR
