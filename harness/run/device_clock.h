// The `device` clock source: while a leg runs, a thread of the worker asks the device itself, now and then,
// how fast its compute units run. For boards whose sensors nobody can read.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/vt/backend.h"
#include "harness/run/protocol.h"

namespace warmleg::run {

class DeviceClock {
 public:
  // Begins to sample, every `interval_ms` for a fifth of a millisecond of one thread of the device.
  DeviceClock(vt::Backend& backend, int64_t interval_ms);
  ~DeviceClock() { Stop(); }
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  // Ends it; what was seen, in time order. Empty on a device that cannot tell.
  std::vector<ClockReply> Stop();

 private:
  void Run(vt::Backend& backend, int64_t interval_ms);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;            // under mutex_
  std::vector<ClockReply> samples_;  // the thread's until it is joined
  std::thread thread_;
};

}  // namespace warmleg::run
