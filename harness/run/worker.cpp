#include "harness/run/worker.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>

#include "backend/vt/error.h"
#include "harness/run/devices.h"
#include "harness/run/engine.h"
#include "harness/run/fault.h"
#include "harness/run/protocol.h"

namespace warmleg::run {

namespace {

constexpr int kIn = 3, kOut = 4;  // as WorkerProcess sets them up
constexpr int kGone = 0;          // the parent has left: nobody reads the code

void Send(const Reply& reply) {
  const std::string bytes = Encode(reply);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(kOut, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(kGone);
    done += static_cast<size_t>(n);
  }
}

Reply Serve(Engine& engine, const Request& request) {
  if (const auto* load = std::get_if<LoadRequest>(&request)) {
    InjectFault(FaultPoint::load, 0, 0);
    return engine.Load(*load, [](const ProgressReply& progress) { Send(progress); });
  }
  if (const auto* warm = std::get_if<WarmRequest>(&request)) return engine.Warm(*warm);
  if (const auto* leg = std::get_if<LegRequest>(&request)) return engine.Leg(*leg);
  if (const auto* sentinel = std::get_if<SentinelRequest>(&request)) return engine.Sentinel(*sentinel);
  return engine.Roof(std::get<RoofRequest>(request));
}

Reply ServeOrFail(Engine& engine, const Request& request) {
  try {
    return Serve(engine, request);
  } catch (const vt::InputError& e) {
    return FailedReply{.kind = "input", .text = e.what()};
  } catch (const vt::OutOfMemoryError& e) {
    return FailedReply{.kind = "oom", .text = e.what()};
  } catch (const vt::EnvironmentError& e) {
    return FailedReply{.kind = "environment", .text = e.what()};
  } catch (const std::bad_alloc&) {
    return FailedReply{.kind = "oom", .text = "host memory ran out"};
  } catch (const std::exception& e) {
    return FailedReply{.kind = "internal", .text = e.what()};
  }
}

}  // namespace

int WorkerMain(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return kGone;  // it died before prctl
  RegisterBackends();
  Engine engine;
  FrameReader reader;
  std::array<char, 65536> bytes{};
  for (;;) {
    while (const std::optional<std::string> frame = reader.Next()) {
      const Request request = DecodeRequest(*frame);
      if (std::holds_alternative<QuitRequest>(request)) return 0;
      Send(ServeOrFail(engine, request));
    }
    const ssize_t n = read(kIn, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return kGone;
    reader.Feed({bytes.data(), static_cast<size_t>(n)});
  }
}

}  // namespace warmleg::run
