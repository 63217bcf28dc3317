#include "harness/run/device_clock.h"

#include <chrono>
#include <exception>
#include <utility>

namespace warmleg::run {

namespace {

constexpr double kMeasure_s = 200e-6;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

DeviceClock::DeviceClock(vt::Backend& backend, int64_t interval_ms)
    : thread_([this, &backend, interval_ms] { Run(backend, interval_ms); }) {}

void DeviceClock::Run(vt::Backend& backend, int64_t interval_ms) {
  try {
    const auto queue = backend.CreateQueue();
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      const double at = Now();
      const std::optional<double> mhz = backend.MeasureClockMhz(*queue, kMeasure_s);
      if (!mhz) return;
      samples_.push_back({at, *mhz});
      lock.lock();
      changed_.wait_for(lock, std::chrono::milliseconds(interval_ms), [this] { return stopping_; });
    }
  } catch (const std::exception&) {
    // The device fails; the leg will say so.
  }
}

std::vector<ClockReply> DeviceClock::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  return std::exchange(samples_, {});
}

}  // namespace warmleg::run
