// Launches and the threads of a block. A thread runs to its end on a worker; the worker becomes a fiber of
// its own, and the next thread gets another one, only when the thread meets a barrier or an exchange.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "backend/sim/fiber.h"
#include "backend/sim/kernel.h"
#include "backend/sim/runtime.h"

namespace vt::sim {

namespace {

constexpr size_t kSharedBytes = 64 * 1024;
constexpr size_t kSharedGap = 32;  // canary after each shared array
constexpr std::byte kCanary{0xc5};

struct Abort {};  // unwinds the other threads of a block that failed

struct Worker {
  std::unique_ptr<Fiber> fiber;
  bool idle = true;
};

struct Wave {
  uint64_t words[2][kMaxWave];  // two, so that a lane may give again before the last one has read
  int phase = 0;
  int arrived = 0;
  std::vector<Worker*> waiting;
};

struct SharedArray {
  const void* site;
  size_t offset, bytes;
};

// Runs grids on one host thread; its fibers are kept for the next launch.
class Scheduler {
 public:
  ~Scheduler();
  void RunGrid(const Geometry& geometry, int wave, bool reverse, const std::function<void()>& body);

  void Barrier();
  const uint64_t* Exchange(int wave, uint64_t mine);
  int Lane(int wave) const;
  void* SharedArrayAt(const void* site, size_t bytes, size_t align);
  void* Dynamic() { return shared_.data(); }

 private:
  void RunBlock();
  void BeginBlock();
  void CheckShared() const;
  void Resume(Worker* worker);
  void WorkerLoop(Worker* worker);
  void RunThread(unsigned thread);
  Worker* IdleWorker();
  void WaitHere();  // suspends the running thread until it is made ready
  std::string Stuck() const;

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
  std::deque<Worker*> ready_;
  bool quit_ = false;

  const Geometry* geometry_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  int wave_size_ = 32;
  bool reverse_ = false;
  bool aborting_ = false;
  std::optional<std::string> failure_;

  unsigned threads_ = 0, started_ = 0, finished_ = 0;
  unsigned current_ = 0;  // linear index of the running thread
  Worker* running_ = nullptr;
  std::vector<Worker*> at_barrier_;
  std::vector<Wave> waves_;
  std::vector<SharedArray> arrays_;
  size_t shared_used_ = 0;
  alignas(256) std::array<std::byte, kSharedBytes + 4096> shared_;
};

Scheduler& ThisScheduler() {
  thread_local const auto scheduler = std::make_unique<Scheduler>();
  return *scheduler;
}

Index3 ToIndex(const dim3& d) { return {d.x, d.y, d.z}; }

Scheduler::~Scheduler() {
  quit_ = true;
  for (const auto& worker : workers_) worker->fiber->Resume();
}

void Scheduler::RunGrid(const Geometry& geometry, int wave, bool reverse, const std::function<void()>& body) {
  geometry_ = &geometry;
  body_ = &body;
  wave_size_ = wave;
  reverse_ = reverse;
  threads_ = geometry.block.x * geometry.block.y * geometry.block.z;
  gridDim = ToIndex(geometry.grid);
  blockDim = ToIndex(geometry.block);
  for (unsigned z = 0; z < gridDim.z; ++z) {
    for (unsigned y = 0; y < gridDim.y; ++y) {
      for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {x, y, z};
        RunBlock();
      }
    }
  }
}

void Scheduler::BeginBlock() {
  started_ = finished_ = 0;
  aborting_ = false;
  failure_.reset();
  at_barrier_.clear();
  const auto lanes = static_cast<unsigned>(wave_size_);
  waves_.resize((threads_ + lanes - 1) / lanes);
  for (Wave& wave : waves_) {
    wave.phase = wave.arrived = 0;
    wave.waiting.clear();
  }
  arrays_.clear();
  const size_t dynamic = geometry_->shared_bytes;
  std::fill_n(shared_.begin(), std::max(shared_used_, dynamic + kSharedGap), std::byte{0xff});
  std::fill_n(shared_.begin() + static_cast<std::ptrdiff_t>(dynamic), kSharedGap, kCanary);
  arrays_.push_back({nullptr, 0, dynamic});
  shared_used_ = dynamic + kSharedGap;
}

void Scheduler::RunBlock() {
  BeginBlock();
  while (finished_ < threads_ && !failure_) {
    if (started_ < threads_) {
      Resume(IdleWorker());
    } else if (!ready_.empty()) {
      Worker* next = ready_.front();
      ready_.pop_front();
      Resume(next);
    } else {
      failure_ = Stuck();
    }
  }
  if (!failure_) CheckShared();
  if (!failure_) return;
  aborting_ = true;
  ready_.clear();
  for (const auto& worker : workers_) {
    if (!worker->idle) Resume(worker.get());
  }
  throw Fault(std::string("kernel launched at ") + geometry_->file + ":" + std::to_string(geometry_->line) +
              ", block (" + std::to_string(blockIdx.x) + ", " + std::to_string(blockIdx.y) + ", " +
              std::to_string(blockIdx.z) + "): " + *failure_);
}

std::string Scheduler::Stuck() const {
  size_t in_waves = 0;
  for (const Wave& wave : waves_) in_waves += wave.waiting.size();
  return std::to_string(at_barrier_.size()) + " threads wait at a barrier and " + std::to_string(in_waves) +
         " at an exchange of their wave that others never reach (" + std::to_string(finished_) + " of " +
         std::to_string(threads_) + " have returned)";
}

Worker* Scheduler::IdleWorker() {
  if (idle_.empty()) {
    auto worker = std::make_unique<Worker>();
    Worker* raw = worker.get();
    worker->fiber = std::make_unique<Fiber>([this, raw] { WorkerLoop(raw); });
    workers_.push_back(std::move(worker));
    return raw;
  }
  Worker* worker = idle_.back();
  idle_.pop_back();
  return worker;
}

void Scheduler::Resume(Worker* worker) {
  running_ = worker;
  worker->fiber->Resume();
}

void Scheduler::WorkerLoop(Worker* worker) {
  while (!quit_) {
    worker->idle = false;
    while (started_ < threads_ && !failure_) RunThread(started_++);
    worker->idle = true;
    idle_.push_back(worker);
    worker->fiber->Suspend();
  }
}

void Scheduler::RunThread(unsigned thread) {
  current_ = reverse_ ? threads_ - 1 - thread : thread;
  threadIdx = {current_ % blockDim.x, current_ / blockDim.x % blockDim.y, current_ / blockDim.x / blockDim.y};
  try {
    (*body_)();
  } catch (const Fault& fault) {
    if (!failure_) failure_ = fault.what();
  } catch (const Abort&) {
  }
  ++finished_;
}

void Scheduler::WaitHere() {
  const Index3 index = threadIdx;
  const unsigned thread = current_;
  running_->fiber->Suspend();
  threadIdx = index;
  current_ = thread;
  if (aborting_) throw Abort{};
}

void Scheduler::Barrier() {
  if (at_barrier_.size() + 1 < threads_) {
    at_barrier_.push_back(running_);
    WaitHere();
    return;
  }
  ready_.insert(ready_.end(), at_barrier_.begin(), at_barrier_.end());
  at_barrier_.clear();
}

int Scheduler::Lane(int wave) const {
  if (wave != wave_size_) {
    throw Fault("a kernel for wave " + std::to_string(wave) + " runs on a device of wave " +
                std::to_string(wave_size_));
  }
  return static_cast<int>(current_) % wave;
}

const uint64_t* Scheduler::Exchange(int wave, uint64_t mine) {
  const int lane = Lane(wave);
  if (threads_ % static_cast<unsigned>(wave) != 0) {
    throw Fault("an exchange in a block of " + std::to_string(threads_) +
                " threads, no multiple of the wave");
  }
  Wave& group = waves_[current_ / static_cast<unsigned>(wave)];
  uint64_t* const words = group.words[group.phase];
  words[lane] = mine;
  if (++group.arrived < wave) {
    group.waiting.push_back(running_);
    WaitHere();
    return words;
  }
  group.arrived = 0;
  group.phase ^= 1;
  ready_.insert(ready_.end(), group.waiting.begin(), group.waiting.end());
  group.waiting.clear();
  return words;
}

void* Scheduler::SharedArrayAt(const void* site, size_t bytes, size_t align) {
  for (const SharedArray& array : arrays_) {
    if (array.site == site) return shared_.data() + array.offset;
  }
  const size_t offset = (shared_used_ + align - 1) / align * align;
  size_t asked = bytes;
  for (const SharedArray& array : arrays_) asked += array.bytes;
  if (asked > kSharedBytes || offset + bytes + kSharedGap > shared_.size()) {
    throw Fault("shared memory of " + std::to_string(asked) + " bytes, more than " +
                std::to_string(kSharedBytes));
  }
  arrays_.push_back({site, offset, bytes});
  shared_used_ = offset + bytes + kSharedGap;
  std::fill_n(shared_.begin() + static_cast<std::ptrdiff_t>(offset + bytes), kSharedGap, kCanary);
  return shared_.data() + offset;
}

void Scheduler::CheckShared() const {
  for (const SharedArray& array : arrays_) {
    const auto* gap = shared_.data() + array.offset + array.bytes;
    if (std::all_of(gap, gap + kSharedGap, [](std::byte b) { return b == kCanary; })) continue;
    throw Fault(std::string("kernel launched at ") + geometry_->file + ":" + std::to_string(geometry_->line) +
                ": shared memory past an array of " + std::to_string(array.bytes) + " bytes was written");
  }
}

// Limits of the launch (HIP programming guide, hardware limits; hipErrorInvalidConfiguration): 1024 threads a
// block, a grid of at most 2^31-1 x 65535 x 65535 blocks, and less than 2^32 threads in each dimension.
hipError_t CheckGeometry(const Geometry& g) {
  const auto fits = [](unsigned blocks, unsigned threads, uint64_t most) {
    return blocks > 0 && threads > 0 && blocks <= most && uint64_t{blocks} * threads < (uint64_t{1} << 32);
  };
  if (!fits(g.grid.x, g.block.x, 0x7fffffff) || !fits(g.grid.y, g.block.y, 65535) ||
      !fits(g.grid.z, g.block.z, 65535)) {
    return hipErrorInvalidConfiguration;
  }
  if (uint64_t{g.block.x} * g.block.y * g.block.z > 1024) return hipErrorInvalidConfiguration;
  return g.shared_bytes > kSharedBytes ? hipErrorInvalidConfiguration : hipSuccess;
}

}  // namespace

hipError_t LaunchKernel(Stream* stream, const Geometry& geometry, std::function<void()> body) {
  return Api([&](Runtime& rt) {
    if (const hipError_t error = Inject(rt, Point::launch); error != hipSuccess) return error;
    if (const hipError_t error = CheckEnqueue(rt, stream); error != hipSuccess) return error;
    if (const hipError_t error = CheckGeometry(geometry); error != hipSuccess) return error;
    const int wave = rt.devices[static_cast<size_t>(stream->device)].config.wave;
    auto run = [&rt, geometry, wave, body = std::move(body)] {
      ThisScheduler().RunGrid(geometry, wave, rt.reverse, body);
    };
    return Enqueue(rt, stream, {std::move(run), nullptr, nullptr});
  });
}

void BlockBarrier() { ThisScheduler().Barrier(); }
const uint64_t* WaveExchange(int wave, uint64_t mine) { return ThisScheduler().Exchange(wave, mine); }
int WaveLane(int wave) { return ThisScheduler().Lane(wave); }
void* SharedAt(const void* site, size_t bytes, size_t align) {
  return ThisScheduler().SharedArrayAt(site, bytes, align);
}
void* DynamicShared() { return ThisScheduler().Dynamic(); }

}  // namespace vt::sim
