#include "backend/sim/fiber.h"

#include <memory>
#include <utility>

#include "backend/sim/sanitizer.h"

namespace vt::sim {

namespace {

#if defined(WARMLEG_ASAN) || defined(WARMLEG_TSAN)
constexpr size_t kStackBytes = 512 * 1024;  // instrumented frames are larger
#else
constexpr size_t kStackBytes = 128 * 1024;
#endif

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)),
      stacks_(kStackBytes),
      stack_(stacks_.allocate()),
      tsan_inside_(CreateTsanFiber()) {
  // Boost enters the new stack here already; told nothing, AddressSanitizer would keep its entry's frame with
  // this thread, which may end before the fiber.
  LeaveStack(&outside_fake_, static_cast<const char*>(stack_.sp) - stack_.size, stack_.size);
  inside_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack_.sp, stack_.size, stack_), stacks_,
      [this](boost::context::fiber&& caller) { return Start(std::move(caller)); });
  // Boost has come back without a word: in the sanitizer's books this is still the fiber's stack.
  ArriveOnStack(outside_fake_, &outside_bottom_, &outside_bytes_);
  LeaveStack(&outside_fake_, outside_bottom_, outside_bytes_);
  ArriveOnStack(outside_fake_, nullptr, nullptr);
}

Fiber::~Fiber() { DestroyTsanFiber(tsan_inside_); }

boost::context::fiber Fiber::Start(boost::context::fiber&& caller) {
  ArriveOnStack(nullptr, &outside_bottom_, &outside_bytes_);
  caller_ = std::move(caller);
  body_();
  LeaveStack(nullptr, outside_bottom_, outside_bytes_);
  return std::move(caller_);
}

void Fiber::Resume() {
  // Both switches stand here: ThreadSanitizer's own call stack of a fiber then sees as many returns as calls.
  void* const outside = CurrentTsanFiber();
  const auto* bottom = static_cast<const char*>(stack_.sp) - stack_.size;
  LeaveStack(&outside_fake_, bottom, stack_.size);
  SwitchTsanFiber(tsan_inside_);
  inside_ = std::move(inside_).resume();
  SwitchTsanFiber(outside);
  ArriveOnStack(outside_fake_, nullptr, nullptr);
}

void Fiber::Suspend() {
  LeaveStack(&inside_fake_, outside_bottom_, outside_bytes_);
  caller_ = std::move(caller_).resume();
  ArriveOnStack(inside_fake_, &outside_bottom_, &outside_bytes_);
}

}  // namespace vt::sim
