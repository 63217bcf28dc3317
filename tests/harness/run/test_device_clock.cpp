// The device clock source beside work of another queue, on the simulated device; its counter runs at 1000
// MHz.
#include <gtest/gtest.h>

#include <unistd.h>

#include "harness/run/device_clock.h"
#include "harness/run/devices.h"

namespace warmleg::run {
namespace {

TEST(DeviceClock, SamplesWhileOthersWork) {
  RegisterBackends();
  vt::Backend& backend = vt::GetBackend(vt::ParseDevice("sim:0"));
  const auto queue = backend.CreateQueue();
  const vt::Buffer buffer = backend.Alloc(1024);
  DeviceClock clock(backend, 1);
  for (int i = 0; i < 20; ++i) {
    backend.Fill(*queue, buffer.data(), 0, 1024);
    backend.Synchronize(*queue);
    ::usleep(5000);
  }
  const std::vector<ClockReply> samples = clock.Stop();
  ASSERT_GE(samples.size(), 2U);
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_GT(samples[i].mhz, 0);
    if (i > 0) {
      EXPECT_GT(samples[i].at, samples[i - 1].at);
    }
  }
  EXPECT_TRUE(clock.Stop().empty()) << "it has ended";
}

TEST(DeviceClock, ADeviceWithoutCountersGivesNone) {
  RegisterBackends();
  DeviceClock clock(vt::GetBackend({}), 1);
  ::usleep(5000);
  EXPECT_TRUE(clock.Stop().empty());
}

}  // namespace
}  // namespace warmleg::run
