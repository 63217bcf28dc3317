#include "backend/bench/recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "backend/bench/replay.h"
#include "backend/decode/chain.h"
#include "backend/model/weight_plan.h"
#include "backend/vt/dispatch.h"

namespace vt::bench {

namespace {

namespace model = warmleg::model;

struct Recording {
  std::vector<RecordedCall> calls;
  std::string part;
};
Recording* recording = nullptr;  // where the kernels below write; one chain is recorded at a time

template <class Args>
std::string ShapeOf(const Args& args) {
  Args copy = args;
  std::string shape;
  for (const Tensor* t : TensorsOf(copy)) {
    if (*t) shape += (shape.empty() ? "" : " ") + ShapeText(*t);
  }
  return shape;
}
// The one op whose shape everybody knows by three numbers.
std::string ShapeOf(const MatMulArgs& args) {
  return fmt::format("{}x{} {}, rows {}{}{}{}", args.w.dim(0), args.w.dim(1), Name(args.w.dtype),
                     args.x.dim(0), args.norm ? ", norm" : "", args.silu_mul ? ", SiluMul" : "",
                     args.residual ? ", residual" : "");
}

template <class Args>
void Record(Queue&, const Args& args) {
  const std::string shape = ShapeOf(args);
  for (RecordedCall& call : recording->calls) {
    if (call.op != Args::kOp || call.shape != shape || call.part != recording->part) continue;
    ++call.calls;
    return;
  }
  RecordedCall& call = recording->calls.emplace_back();
  call.op = Args::kOp, call.part = recording->part, call.shape = shape;
  call.calls = 1, call.bytes = args.bytes();
  call.measure = [args](Backend& backend, int64_t context) { return Seconds(backend, args, context); };
}

// Addresses without memory; what is read is zero.
class Addresses final : public Backend {
 public:
  explicit Addresses(Device device) : Backend(device) {}

  DeviceInfo Info() const override {
    DeviceInfo info;
    info.device = device();
    return info;
  }
  MemoryKind memory_kind() const override { return MemoryKind::device; }
  std::unique_ptr<Queue> CreateQueue() override { return std::make_unique<Queue>(*this); }
  void CopyIn(Queue&, void*, const void*, size_t) override {}
  void CopyOut(Queue&, void* host, const void*, size_t bytes) override { std::memset(host, 0, bytes); }
  void Copy(Queue&, void*, const void*, size_t) override {}
  void Fill(Queue&, void*, uint8_t, size_t) override {}
  void FlushPending(Queue&) override {}
  void Synchronize(Queue&) override {}
  void Stamp(Queue&, int) override {}
  double StampSeconds(Queue&, int, int) override { return 0; }

 protected:
  void* AllocBytes(size_t bytes) override {
    const uintptr_t at = next_;
    next_ += (bytes + kPage) / kPage * kPage + kPage;  // a gap, so that two tensors never touch
    return reinterpret_cast<void*>(at);                // NOLINT(performance-no-int-to-ptr): never followed
  }
  void FreeBytes(void*) noexcept override {}

 private:
  static constexpr uintptr_t kPage = 4096;
  uintptr_t next_ = uintptr_t{1} << 40;
};

// A device type that the measured device is not of: its kernels are replaced by Record in this process.
Device RecordingDevice(Device measured_on) {
  const DeviceType type = measured_on.type == DeviceType::rocm ? DeviceType::cuda : DeviceType::rocm;
#define WARMLEG_RECORD(name) RegisterNative<name##Args>(type, Record<name##Args>);
  WARMLEG_VT_OPS(WARMLEG_RECORD)
#undef WARMLEG_RECORD
  return {type, kMaxDevices - 1};
}

void FillShapes(const std::vector<model::WeightItem>& plan, DType dtype, TensorPool& pool) {
  for (const model::WeightItem& item : plan) {
    const auto& s = item.shape;
    *item.to = s.size() == 1   ? pool.New(dtype, {s[0]})
               : s.size() == 2 ? pool.New(dtype, {s[0], s[1]})
                               : pool.New(dtype, {s[0], s[1], s[2]});
  }
}

model::TargetWeights TargetShapes(const model::TargetConfig& config, DType dtype, Backend& backend) {
  model::TargetWeights weights;
  weights.config = config;
  weights.pool = std::make_unique<TensorPool>(backend);
  FillShapes(model::PlanTarget(&weights, ""), dtype, *weights.pool);
  if (config.tied_head) weights.head = weights.embedding;
  return weights;
}

}  // namespace

std::vector<RecordedCall> RecordStep(const model::TargetConfig& target, DType dtype, int64_t context,
                                     Device measured_on) {
  Addresses backend(RecordingDevice(measured_on));
  const model::TargetWeights weights = TargetShapes(target, dtype, backend);
  warmleg::decode::Chain chain(weights, nullptr, context + kMaxRows);
  Recording all{{}, "step"};
  recording = &all;
  chain.EnqueuePlainStep();
  recording = nullptr;
  return std::move(all.calls);
}

std::vector<RecordedCall> RecordRound(const model::TargetConfig& target, const model::DraftConfig& draft,
                                      DType dtype, int64_t context, Device measured_on) {
  Addresses backend(RecordingDevice(measured_on));
  const model::TargetWeights weights = TargetShapes(target, dtype, backend);
  model::DraftWeights draft_weights;
  draft_weights.config = draft;
  draft_weights.pool = std::make_unique<TensorPool>(backend);
  FillShapes(model::PlanDraft(&draft_weights), dtype, *draft_weights.pool);
  warmleg::decode::Chain chain(weights, &draft_weights, context + kMaxRows);
  const int width = static_cast<int>(std::min<int64_t>(draft.block_size, kMaxRows));
  Recording all{{}, "draft"};
  recording = &all;
  chain.EnqueueDraft(width);
  all.part = "select";
  chain.EnqueueSelect(width);
  all.part = "verify";
  chain.EnqueueVerify(width);
  all.part = "commit";
  chain.EnqueueCommit(width);
  recording = nullptr;
  return std::move(all.calls);
}

uint64_t WeightBytes(const model::TargetConfig& target, DType dtype) {
  Addresses backend({DeviceType::rocm, kMaxDevices - 1});
  return TargetShapes(target, dtype, backend).pool->bytes();
}

}  // namespace vt::bench
