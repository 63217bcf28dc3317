#include "backend/model/loader.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <map>

#include "backend/model/checkpoint.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

constexpr uint64_t kStageBytes = 8u << 20;  // of file data at once; a multiple of every element size
constexpr uint64_t kPrefetchBytes =
    64u << 20;  // asked for ahead of the stage that is read: keeps a fast disk busy

std::string Hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

vt::Tensor NewTensor(vt::TensorPool* pool, vt::DType dtype, const std::vector<int64_t>& shape) {
  switch (shape.size()) {
    case 1:
      return pool->New(dtype, {shape[0]});
    case 2:
      return pool->New(dtype, {shape[0], shape[1]});
    default:
      return pool->New(dtype, {shape[0], shape[1], shape[2]});
  }
}

// Copies stored tensors to the device piece by piece. The copy call never sees a mapped page, and pages go
// back to the system as soon as they were read: peak memory is the weights plus the stages.
class Uploader {
 public:
  Uploader(vt::Backend& backend, uint64_t total_bytes, const LoadProgress& progress)
      : backend_(backend),
        queue_(backend.CreateQueue()),
        progress_(progress),
        total_bytes_(total_bytes),
        stages_{std::vector<std::byte>(kStageBytes), std::vector<std::byte>(kStageBytes)} {}

  void Upload(const WeightItem& item, const std::vector<FileTensor>& parts, vt::TensorPool* pool) {
    const vt::DType dtype = DeviceDType(parts);
    *item.to = NewTensor(pool, dtype, item.shape);
    std::byte* at = item.to->data;
    for (const FileTensor& part : parts) at += UploadPart(part, dtype, at);
  }

  // XXH3-128 over the sorted list of what was uploaded.
  std::string Finish() {
    backend_.Synchronize(*queue_);
    std::string text;
    for (const auto& [name, line] : lines_) text += line;
    return Hex(XXH3_128bits(text.data(), text.size()));
  }

 private:
  // Returns the bytes written to the device. While one stage is hashed and copied, the next one is read.
  uint64_t UploadPart(const FileTensor& part, vt::DType dtype, std::byte* to) {
    const StoredTensor& t = *part.tensor;
    const bool widen = dtype == vt::DType::f32 && t.dtype == "BF16";
    const uint64_t factor = widen ? 2 : 1;
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash(XXH3_createState(),
                                                                               XXH3_freeState);
    if (hash == nullptr) throw vt::OutOfMemoryError("out of memory while hashing weights");
    XXH3_128bits_reset(hash.get());
    const auto size_at = [&](uint64_t begin) { return std::min(kStageBytes, t.bytes() - begin); };
    const auto read = [&](uint64_t begin) {
      part.file->Prefetch(t, begin, std::min(t.bytes(), begin + kPrefetchBytes));
      std::byte* stage = stages_[begin / kStageBytes % 2].data();
      part.file->Read(t, begin, size_at(begin), stage);
      part.file->Release(t, begin, begin + size_at(begin));
    };
    const bool several = t.bytes() > kStageBytes;  // a thread pays for large tensors alone
    if (t.bytes() > 0) read(0);
    for (uint64_t begin = 0; begin < t.bytes(); begin += kStageBytes) {
      std::future<void> next;
      const uint64_t after = begin + kStageBytes;
      if (several && after < t.bytes()) next = std::async(std::launch::async, read, after);
      const uint64_t n = size_at(begin);
      const std::byte* stage = stages_[begin / kStageBytes % 2].data();
      XXH3_128bits_update(hash.get(), stage, n);
      backend_.CopyIn(*queue_, to + begin * factor, widen ? Widen(stage, n) : stage, n * factor);
      done_bytes_ += n;
      if (progress_) progress_(done_bytes_, total_bytes_);
      if (next.valid()) next.get();
    }
    lines_[t.name] = fmt::format("{} {} {} {}\n", t.name, t.dtype, ShapeText(t.shape),
                                 Hex(XXH3_128bits_digest(hash.get())));
    return t.bytes() * factor;
  }

  const std::byte* Widen(const std::byte* stage, uint64_t bytes) {
    wide_stage_.resize(2 * kStageBytes);
    for (uint64_t i = 0; i < bytes / 2; ++i) {
      uint16_t half = 0;
      std::memcpy(&half, stage + 2 * i, sizeof half);
      const uint32_t bits = static_cast<uint32_t>(half) << 16;
      std::memcpy(wide_stage_.data() + 4 * i, &bits, sizeof bits);
    }
    return wide_stage_.data();
  }

  vt::Backend& backend_;
  std::unique_ptr<vt::Queue> queue_;
  const LoadProgress& progress_;
  uint64_t total_bytes_ = 0, done_bytes_ = 0;
  std::array<std::vector<std::byte>, 2> stages_;
  std::vector<std::byte> wide_stage_;
  std::map<std::string, std::string> lines_;
};

template <class Checked>
auto Load(Checked checked, vt::Backend& backend, LoadReport* report, const LoadProgress& progress,
          std::chrono::steady_clock::time_point begin) {
  checked.findings.Raise();
  uint64_t total = 0;
  for (const auto& [dtype, bytes] : checked.match.stored_bytes) total += bytes;
  auto& weights = checked.weights;
  weights.pool = std::make_unique<vt::TensorPool>(backend);
  Uploader uploader(backend, total, progress);
  for (size_t i = 0; i < checked.plan.size(); ++i)
    uploader.Upload(checked.plan[i], checked.match.parts[i], weights.pool.get());
  const std::string hash = uploader.Finish();
  if (report != nullptr) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    *report = {took.count(), weights.pool->bytes(), hash};
  }
  return std::move(weights);
}

}  // namespace

TargetWeights LoadTarget(const std::string& dir, vt::Backend& backend, LoadReport* report,
                         const LoadProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  TargetWeights weights = Load(CheckTarget(dir), backend, report, progress, begin);
  if (weights.config.tied_head) weights.head = weights.embedding;
  return weights;
}

DraftWeights LoadDraft(const std::string& dir, const TargetConfig& target, vt::Backend& backend,
                       LoadReport* report, const LoadProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  return Load(CheckDraft(dir, &target), backend, report, progress, begin);
}

}  // namespace warmleg::model
