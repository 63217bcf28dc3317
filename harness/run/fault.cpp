#include "harness/run/fault.h"

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include "backend/vt/error.h"

namespace warmleg::run {

namespace {

// The kinds that the variable asks for at this place.
std::vector<std::string> Asked(const std::vector<std::string>& places) {
  const char* text = std::getenv("WARMLEG_TEST_FAULT");
  std::vector<std::string> kinds;
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const size_t colon = one.find(':');
    if (colon == std::string_view::npos) continue;
    for (const std::string& place : places) {
      if (one.substr(colon + 1) == place) kinds.emplace_back(one.substr(0, colon));
    }
  }
  return kinds;
}

std::vector<std::string> LegPlaces(int64_t process, int64_t leg) {
  if (process < 0) return {"reference"};
  return {std::to_string(leg), fmt::format("{}.{}", process, leg)};
}

[[noreturn]] void Hang() {
  std::signal(SIGTERM, SIG_IGN);
  for (;;) pause();
}

void Fail(const std::string& kind, const std::function<void()>& spin) {
  if (kind == "spin") {
    if (spin) spin();
    Hang();
  }
  if (kind == "abort") std::abort();
  if (kind == "exit") _exit(5);
  if (kind == "kill") kill(getpid(), SIGKILL);
  if (kind == "hang") Hang();
  if (kind == "oom") throw std::bad_alloc();
  if (kind == "full") throw vt::OutOfMemoryError("cpu: no room for 7 bytes");
  if (kind == "illegal") throw vt::EnvironmentError("an illegal memory access was encountered");
  if (kind == "garbage") {
    constexpr std::string_view junk = "\xff\xff\xff\xff not a frame";
    [[maybe_unused]] const ssize_t n = write(4, junk.data(), junk.size());
    Hang();
  }
}

}  // namespace

void InjectFault(FaultPoint point, int64_t process, int64_t leg, const std::function<void()>& spin) {
  const auto places = point == FaultPoint::load ? std::vector<std::string>{"load"} : LegPlaces(process, leg);
  for (const std::string& kind : Asked(places)) {
    fmt::print(stderr, "warmleg: test fault {} at process {} leg {}\n", kind, process, leg);
    Fail(kind, spin);
  }
}

void AlterLeg(int64_t process, LegReply& reply) {
  for (const std::string& kind : Asked(LegPlaces(process, reply.index))) {
    if (kind == "diverge" && !reply.output_ids.empty()) reply.output_ids.back() ^= 1;
    if (kind == "deaf") close(3);  // answers, and is gone before the next question
    if (kind == "leak") reply.repeats_equal = false;
    if (kind == "slow") reply.times.decode_s *= 3, reply.times.e2e_s += 2 * reply.times.decode_s / 3;
  }
}

}  // namespace warmleg::run
