// State of the simulated runtime, shared by its .cpp files. One mutex guards all of it; queued work runs with
// the mutex held, on the thread that waits.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/sim/control.h"
#include "backend/sim/hip_sim.h"

namespace vt::sim {

// A kernel did what a GPU would answer with garbage or a crash.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A point in a stream that others can wait for.
struct Marker {
  Stream* stream = nullptr;
  bool done = false;
  uint64_t ns = 0;
};

struct Operation {
  std::function<void()> run;      // may be empty
  std::shared_ptr<Marker> set;    // done after it
  std::shared_ptr<Marker> waits;  // done before it
};

// One capture sequence: its operations in the order of the calls, which is one order its graph allows.
struct Capture {
  unsigned long long id = 0;
  Stream* origin = nullptr;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<Operation> operations;
  std::map<Stream*, bool>
      joined;  // streams that were pulled in: whether the origin waits for their latest work
};

struct Stream {
  int device = 0;
  std::deque<Operation> queue;
  std::shared_ptr<Capture> capture;
};

struct Event {
  int device = 0;
  bool timing = true;
  std::shared_ptr<Marker> marker;    // of the latest record
  std::shared_ptr<Capture> capture;  // when the latest record was captured
  Stream* captured_on = nullptr;
};

struct GraphNodes {
  int device = 0;
  std::vector<Operation> operations;
};
struct GraphExec {
  int device = 0;
  std::vector<Operation> operations;
};

// The memory of one device: a range of addresses, first fit, canaries on both sides of each allocation.
class Arena {
 public:
  Arena(size_t bytes, bool guarded);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* Allocate(size_t bytes);  // nullptr when there is no room
  bool Free(void* data);         // false: not the start of a live allocation
  // Throws Fault that names the allocation whose canary was overwritten.
  void CheckCanaries() const;
  bool Contains(const void* data, size_t bytes) const;  // inside one live allocation
  size_t count() const { return live_.size(); }
  size_t bytes() const { return bytes_; }

  // Host code may not touch the memory unless it is open; opens nest.
  void Open();
  void Close();

 private:
  void Protect(int protection) const;

  std::byte* base_ = nullptr;
  size_t reserved_ = 0;
  bool guarded_ = true;
  int open_ = 0;
  size_t top_ = 0;                 // highest byte ever handed out
  size_t bytes_ = 0;               // of the live allocations, as asked for
  std::map<size_t, size_t> live_;  // offset of the data -> bytes
  std::map<size_t, size_t> free_;  // offset -> bytes of a gap below top_
};

class OpenArena {
 public:
  explicit OpenArena(Arena& arena) : arena_(arena) { arena_.Open(); }
  ~OpenArena() { arena_.Close(); }
  OpenArena(const OpenArena&) = delete;
  OpenArena& operator=(const OpenArena&) = delete;

 private:
  Arena& arena_;
};

struct SimDevice {
  DeviceConfig config;
  std::unique_ptr<Arena> arena;
  hipError_t sticky = hipSuccess;
};

struct HostBlock {
  size_t bytes;
  int device;
  bool managed;
};

struct Injection {
  uint64_t at = 0;  // value of `calls` at which it fires; 0: off
  hipError_t error = hipSuccess;
};

struct Runtime {
  std::recursive_mutex mutex;
  std::vector<SimDevice> devices;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<GraphNodes*> graphs;
  std::set<GraphExec*> execs;
  std::map<void*, HostBlock> host;  // pinned and managed
  std::array<uint64_t, 3> calls{};
  std::array<Injection, 3> injections{};
  uint64_t pageable_copies = 0;
  unsigned long long captures = 0;
  std::string fault;
  bool reverse = false;
};

Runtime& TheRuntime();
struct ThreadState {
  int device = 0;
  hipError_t last_error = hipSuccess;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
};
ThreadState& ThisThread();

// Runs `call` under the mutex and keeps its error as the thread's last one.
template <class F>
hipError_t Api(F&& call) {
  Runtime& rt = TheRuntime();
  const std::lock_guard lock(rt.mutex);
  const hipError_t error = call(rt);
  if (error != hipSuccess && error != hipErrorNotReady) ThisThread().last_error = error;
  return error;
}

SimDevice& Current(Runtime& rt);
// Counts the call; not success when a failure is injected here.
hipError_t Inject(Runtime& rt, Point point);
// hipErrorStreamCaptureUnsupported, with the captures invalidated, when a capture forbids an unsafe call
// here.
hipError_t RefuseDuringCapture(Runtime& rt);
// Success when the handle is alive and its device works.
hipError_t CheckStream(Runtime& rt, Stream* stream);
// Success when new work may be queued from this thread: also the current device must be the stream's.
hipError_t CheckEnqueue(Runtime& rt, Stream* stream);
// Appends to the stream or to the graph it captures.
hipError_t Enqueue(Runtime& rt, Stream* stream, Operation operation);
// Runs the stream's work up to `until` (nullptr: all of it).
hipError_t Drain(Runtime& rt, Stream* stream, const Marker* until = nullptr);
hipError_t DrainDevice(Runtime& rt, int device);
void InvalidateCapture(Stream* stream);

}  // namespace vt::sim
