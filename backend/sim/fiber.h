// A fiber with the sanitizers told about each switch. Resume and Suspend must alternate on one thread.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <functional>

namespace vt::sim {

class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  // The body must have ended.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void Resume();   // from outside: until the body suspends or ends
  void Suspend();  // from the body

 private:
  boost::context::fiber Start(boost::context::fiber&& caller);

  std::function<void()> body_;
  boost::context::protected_fixedsize_stack stacks_;
  boost::context::stack_context stack_;
  boost::context::fiber inside_;  // where the body goes on
  boost::context::fiber caller_;  // where Resume goes on
  void* outside_fake_ = nullptr;  // AddressSanitizer's state of the two stacks
  void* inside_fake_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_bytes_ = 0;
  void* tsan_inside_ = nullptr;
};

}  // namespace vt::sim
