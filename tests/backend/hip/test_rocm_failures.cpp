// Every allocation, launch and copy of a round fails once in turn: one clear error, nothing leaked, and the
// next run works.
#include "backend/vt/error.h"
#include "tests/backend/hip/rocm_test.h"

namespace vt::hip::on_sim {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

class RocmFailures : public testing::Test {
 protected:
  void SetUp() override { sim::Configure({{.memory_bytes = size_t{64} << 20}}); }

  // Open a device, work eagerly and by a graph, read back; everything is closed at the end.
  static std::vector<float> Round(MemoryKind kind) {
    RocmBackend backend(ListHipDevices(nullptr).at(0), kind);
    const auto queue = backend.CreateQueue();
    const Buffer x = backend.Alloc(1024);
    const Buffer out = backend.Alloc(1024);
    const std::vector<float> ones(256, 1.0F);
    backend.CopyIn(*queue, x.data(), ones.data(), x.bytes());
    const auto work = [&] {
      auto* temporary = Scratch<float>(*queue, "round", 256);
      AddFloats(*queue, static_cast<float*>(x.data()), static_cast<float*>(x.data()), temporary, 256);
      backend.Copy(*queue, out.data(), temporary, out.bytes());
      backend.Stamp(*queue, 0);
    };
    work();
    backend.Fill(*queue, out.data(), 0, out.bytes());
    std::unique_ptr<Graph> graph;
    try {
      backend.BeginCapture(*queue);
      work();
      graph = backend.EndCapture(*queue);
    } catch (...) {
      backend.AbandonCapture(*queue);
      throw;
    }
    graph->Launch(*queue);
    std::vector<float> values(256);
    backend.CopyOut(*queue, values.data(), out.data(), out.bytes());
    return values;
  }
  static void ExpectNothingLeaks() {
    EXPECT_EQ(sim::LiveUsage(0).allocations, 0U);
    EXPECT_EQ(sim::LiveUsage(0).host_allocations, 0U);
    EXPECT_EQ(sim::LiveUsage(0).streams, 0U);
    EXPECT_EQ(sim::hipPeekAtLastError(), sim::hipSuccess) << "the error leaks";
  }
};

struct Failure {
  sim::Point point;
  sim::hipError_t error;
  const char* name;
};

TEST_F(RocmFailures, EachCallFailsOnceInTurn) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::host_coherent, MemoryKind::managed}) {
    for (const Failure& failure :
         {Failure{sim::Point::allocation, sim::hipErrorOutOfMemory, "hipErrorOutOfMemory"},
          Failure{sim::Point::launch, sim::hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources"},
          Failure{sim::Point::copy, sim::hipErrorUnknown, "hipErrorUnknown"}}) {
      const uint64_t before = sim::Calls(failure.point);
      ASSERT_THAT(Round(kind), Each(2.0F));
      const uint64_t calls = sim::Calls(failure.point) - before;
      ASSERT_GE(calls, 4U);
      for (uint64_t nth = 1; nth <= calls; ++nth) {
        SCOPED_TRACE(testing::Message() << Name(kind) << " " << failure.name << " at call " << nth);
        sim::FailAt(failure.point, nth, failure.error);
        try {
          Round(kind);
          ADD_FAILURE() << "no error";
        } catch (const EnvironmentError& e) {
          EXPECT_THAT(e.what(), AllOf(HasSubstr(failure.name), HasSubstr("failed at"),
                                      AnyOf(HasSubstr(".cpp:"), HasSubstr(".hip:"))));
        }
        ExpectNothingLeaks();
        EXPECT_THAT(Round(kind), Each(2.0F)) << "the next run";
      }
    }
  }
  ExpectNothingLeaks();
}

TEST_F(RocmFailures, ALostDeviceIsOneErrorAndAResetRevivesIt) {
  RocmBackend backend(ListHipDevices(nullptr).at(0), MemoryKind::device);
  {
    const auto queue = backend.CreateQueue();
    const Buffer x = backend.Alloc(1024);
    FillFloats(*queue, static_cast<float*>(x.data()), 1, 256);
    sim::LoseDevice(0);
    try {
      backend.Synchronize(*queue);
      ADD_FAILURE() << "no error";
    } catch (const EnvironmentError& e) {
      EXPECT_THAT(e.what(), HasSubstr("hipErrorLaunchFailure (unspecified launch failure)"));
    }
    EXPECT_THROW(FillFloats(*queue, static_cast<float*>(x.data()), 1, 256), EnvironmentError);
  }
  EXPECT_EQ(sim::LiveUsage(0).allocations, 0U);
  EXPECT_EQ(sim::LiveUsage(0).streams, 0U);
  ASSERT_EQ(sim::hipDeviceReset(), sim::hipSuccess);
  EXPECT_THAT(Round(MemoryKind::device), Each(2.0F));
}

}  // namespace
}  // namespace vt::hip::on_sim
