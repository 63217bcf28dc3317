// Capture and graphs of the simulated runtime: what is recorded, what is refused, what a refusal leaves
// behind.
#include <functional>
#include <thread>
#include <vector>

#include "tests/backend/sim/sim_test.h"

namespace vt::sim {
namespace {

class SimCapture : public SimTest {
 protected:
  void Begin(hipStreamCaptureMode mode = hipStreamCaptureModeThreadLocal) {
    ASSERT_HIP(hipStreamBeginCapture(stream, mode));
  }
  hipStreamCaptureStatus Status(hipStream_t of) {
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    EXPECT_HIP(hipStreamIsCapturing(of, &status));
    return status;
  }
  // Ends an invalidated capture and shows that the stream works as before.
  void ExpectInvalidated() {
    EXPECT_EQ(Status(stream), hipStreamCaptureStatusInvalidated);
    EXPECT_EQ(Block(1, [](int) {}), hipErrorStreamCaptureInvalidated);
    hipGraph_t graph = nullptr;
    EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(Status(stream), hipStreamCaptureStatusNone);
    EXPECT_HIP(Block(1, [](int) {}));
    EXPECT_HIP(hipStreamSynchronize(stream));
  }
};

TEST_F(SimCapture, RecordsAndReplays) {
  auto* value = NewDevice<int>(1);
  auto* host = NewPinned<int>(1);
  ASSERT_HIP(hipMemsetAsync(value, 0, 4, stream));
  int add = 3;
  Begin();
  EXPECT_EQ(Status(stream), hipStreamCaptureStatusActive);
  ASSERT_HIP(Block(1, [value, add](int) { *value += add; }));
  hipGraph_t graph = nullptr;
  ASSERT_HIP(hipStreamEndCapture(stream, &graph));
  add = 100;  // the graph keeps the arguments of the capture
  hipGraphExec_t exec = nullptr;
  ASSERT_HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  ASSERT_HIP(hipGraphDestroy(graph));
  for (int i = 0; i < 4; ++i) ASSERT_HIP(hipGraphLaunch(exec, stream));
  ASSERT_HIP(hipGraphExecDestroy(exec));  // the launches are queued already
  ASSERT_HIP(hipMemcpyAsync(host, value, 4, hipMemcpyDeviceToHost, stream));
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(*host, 12);
}

TEST_F(SimCapture, AllocationIsRefusedAndInvalidates) {
  Begin();
  void* data = nullptr;
  EXPECT_EQ(hipMalloc(&data, 4), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(LiveUsage(0).allocations, 0U);
  ExpectInvalidated();
}

TEST_F(SimCapture, FreeAndBlockingCopyAreRefused) {
  auto* data = NewDevice<int>(1);
  Begin();
  EXPECT_EQ(hipFree(data), hipErrorStreamCaptureUnsupported);
  ExpectInvalidated();
  Begin();
  int host = 0;
  EXPECT_EQ(hipMemcpy(&host, data, 4, hipMemcpyDeviceToHost), hipErrorStreamCaptureUnsupported);
  ExpectInvalidated();
}

TEST_F(SimCapture, SynchronisingTheStreamOrTheDeviceInvalidates) {
  Begin();
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorStreamCaptureUnsupported);
  ExpectInvalidated();
  Begin();
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorStreamCaptureUnsupported);
  ExpectInvalidated();
  Begin();
  EXPECT_EQ(hipStreamQuery(stream), hipErrorStreamCaptureUnsupported);
  ExpectInvalidated();
}

TEST_F(SimCapture, ModesDecideWhoMayAllocate) {
  const auto allocate = [] {
    hipError_t error = hipSuccess;
    std::thread([&] {
      void* data = nullptr;
      error = hipMalloc(&data, 4);
      if (error == hipSuccess) hipFree(data);
    }).join();
    return error;
  };
  hipGraph_t graph = nullptr;
  Begin(hipStreamCaptureModeThreadLocal);
  EXPECT_EQ(allocate(), hipSuccess) << "a thread-local capture binds its own thread alone";
  EXPECT_HIP(hipStreamEndCapture(stream, &graph));
  EXPECT_HIP(hipGraphDestroy(graph));
  Begin(hipStreamCaptureModeRelaxed);
  void* data = nullptr;
  EXPECT_HIP(hipMalloc(&data, 4));
  EXPECT_HIP(hipFree(data));
  EXPECT_HIP(hipStreamEndCapture(stream, &graph));
  EXPECT_HIP(hipGraphDestroy(graph));
  Begin(hipStreamCaptureModeGlobal);
  EXPECT_EQ(allocate(), hipErrorStreamCaptureUnsupported);
  ExpectInvalidated();
  Begin(hipStreamCaptureModeThreadLocal);
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  ASSERT_HIP(hipThreadExchangeStreamCaptureMode(&mode));
  EXPECT_HIP(hipMalloc(&data, 4));
  EXPECT_HIP(hipFree(data));
  ASSERT_HIP(hipThreadExchangeStreamCaptureMode(&mode));
  EXPECT_HIP(hipStreamEndCapture(stream, &graph));
  EXPECT_HIP(hipGraphDestroy(graph));
}

TEST_F(SimCapture, AWaitForAnotherStreamIsUnsafe) {
  hipStream_t other = nullptr;
  hipEvent_t event = nullptr;
  ASSERT_HIP(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  ASSERT_HIP(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  ASSERT_HIP(hipEventRecord(event, other));
  const std::vector<std::function<hipError_t()>> waits = {
      [&] { return hipStreamSynchronize(other); }, [&] { return hipStreamQuery(other); },
      [&] { return hipEventSynchronize(event); }, [&] { return hipEventQuery(event); }};
  for (const auto& wait : waits) {
    Begin();
    EXPECT_EQ(wait(), hipErrorStreamCaptureUnsupported);
    ExpectInvalidated();
    Begin();
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
    ASSERT_HIP(hipThreadExchangeStreamCaptureMode(&mode));
    EXPECT_HIP(wait());
    ASSERT_HIP(hipThreadExchangeStreamCaptureMode(&mode));
    hipGraph_t graph = nullptr;
    EXPECT_HIP(hipStreamEndCapture(stream, &graph));
    EXPECT_HIP(hipGraphDestroy(graph));
  }
  EXPECT_HIP(hipEventDestroy(event));
  EXPECT_HIP(hipStreamDestroy(other));
}

TEST_F(SimCapture, BeginsOnceAndEndsWhereItBegan) {
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorIllegalState);
  Begin();
  EXPECT_EQ(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal), hipErrorIllegalState);
  hipError_t elsewhere = hipSuccess;
  std::thread([&] { elsewhere = hipStreamEndCapture(stream, &graph); }).join();
  EXPECT_EQ(elsewhere, hipErrorStreamCaptureWrongThread);
  EXPECT_HIP(hipStreamEndCapture(stream, &graph));
  EXPECT_HIP(hipGraphDestroy(graph));
}

TEST_F(SimCapture, EventsForkAndJoin) {
  hipStream_t other = NewStream();
  hipEvent_t fork = NewEvent();
  hipEvent_t join = NewEvent();
  hipGraph_t graph = nullptr;
  Begin();
  ASSERT_HIP(hipEventRecord(fork, stream));
  EXPECT_EQ(hipEventQuery(fork), hipErrorCapturedEvent);
  ASSERT_HIP(hipStreamWaitEvent(other, fork, 0));
  EXPECT_EQ(Status(other), hipStreamCaptureStatusActive);
  ASSERT_HIP(Block(
      1, [](int) {}, other));
  EXPECT_EQ(hipStreamEndCapture(other, &graph), hipErrorStreamCaptureUnmatched);
  ASSERT_HIP(hipEventRecord(join, other));
  ASSERT_HIP(hipStreamWaitEvent(stream, join, 0));
  EXPECT_HIP(hipStreamEndCapture(stream, &graph));
  EXPECT_HIP(hipGraphDestroy(graph));
  Begin();
  ASSERT_HIP(hipEventRecord(fork, stream));
  ASSERT_HIP(hipStreamWaitEvent(other, fork, 0));
  ASSERT_HIP(Block(
      1, [](int) {}, other));
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureUnjoined);
  EXPECT_EQ(Status(other), hipStreamCaptureStatusNone);
}

TEST_F(SimCapture, MayNotWaitForWorkOutside) {
  hipStream_t other = NewStream();
  hipEvent_t event = NewEvent();
  ASSERT_HIP(hipEventRecord(event, other));
  Begin();
  EXPECT_EQ(hipStreamWaitEvent(stream, event, 0), hipErrorStreamCaptureIsolation);
  ExpectInvalidated();
}

}  // namespace
}  // namespace vt::sim
