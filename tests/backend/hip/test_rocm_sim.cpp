// What only the simulated device shows of RocmBackend: queued work, faults of kernels, managed memory.
#include "backend/cpu/register.h"
#include "backend/vt/dispatch.h"
#include "backend/vt/error.h"
#include "tests/backend/hip/rocm_test.h"

namespace vt::hip::on_sim {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using RocmSim = RocmTest;

TEST_F(RocmSim, ListsItsDevicesByBusAddress) {
  const std::vector<DeviceInfo> devices = ListHipDevices(nullptr);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(ToString(devices[1].device), "sim:1");
  EXPECT_EQ(devices[0].pci, "ffff:00:00.0");
  EXPECT_EQ(devices[1].pci, "ffff:01:00.0");
  EXPECT_EQ(devices[0].memory_bytes, uint64_t{64} << 20);
  EXPECT_EQ(devices[0].peak_gb_s, 0) << "a simulation has no roof";
}

TEST_F(RocmSim, ALaunchReturnsBeforeItsWork) {
  const Buffer buffer = backend->Alloc(4 * sizeof(float));
  backend->Fill(*queue, buffer.data(), 0, buffer.bytes());
  FillFloats(*queue, Floats(buffer), 3, 4);
  EXPECT_EQ(sim::PendingWork(0), 2U);
  backend->Synchronize(*queue);
  EXPECT_EQ(sim::PendingWork(0), 0U);
  EXPECT_THAT(Read(*queue, buffer), Each(3.0F));
}

TEST_F(RocmSim, FlushPendingDrainsEveryQueueOfTheDeviceAndNoOther) {
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

TEST_F(RocmSim, AFaultOfAKernelIsReportedWhereItIsWaitedFor) {
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

// A real discrete card may hang on managed memory, so no test asks one for it.
TEST_F(RocmSim, TheHostReadsManagedMemoryToo) {
  cpu::Register();
  const auto managed = Open(0, MemoryKind::managed);
  const auto work = managed->CreateQueue();
  const Buffer src = managed->Alloc(8 * sizeof(float));
  const Buffer index = managed->Alloc(2 * sizeof(int32_t));
  const Buffer out = managed->Alloc(4 * sizeof(float));
  IndexSelectArgs args;
  args.src = MakeTensor(src.data(), DType::f32, {4, 2}, managed->device());
  args.index = MakeTensor(index.data(), DType::i32, {2}, managed->device());
  args.out = MakeTensor(out.data(), DType::f32, {2, 2}, managed->device());
  managed->Fill(*work, index.data(), 0, index.bytes());
  FillFloats(*work, Floats(src), 6, 8);
  vt::Run(*work, args);
  EXPECT_THAT(Read(*work, out), Each(6.0F));
}

}  // namespace
}  // namespace vt::hip::on_sim
