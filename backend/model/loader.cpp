#include "backend/model/loader.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "backend/model/checkpoint.h"
#include "backend/vt/memory_error.h"

namespace warmleg::model {

namespace {

constexpr uint64_t kStageBytes = 8u << 20;  // of file data at once; a multiple of every element size

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
// back to the system as soon as they were read: peak memory is the weights plus the stage.
class Uploader {
 public:
  Uploader(vt::Backend& backend, uint64_t total_bytes, const LoadProgress& progress)
      : backend_(backend),
        queue_(backend.CreateQueue()),
        progress_(progress),
        total_bytes_(total_bytes),
        file_stage_(kStageBytes) {}

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
  // Returns the bytes written to the device.
  uint64_t UploadPart(const FileTensor& part, vt::DType dtype, std::byte* to) {
    const StoredTensor& t = *part.tensor;
    const bool widen = dtype == vt::DType::f32 && t.dtype == "BF16";
    const uint64_t factor = widen ? 2 : 1;
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash(XXH3_createState(),
                                                                               XXH3_freeState);
    if (hash == nullptr) throw vt::OutOfMemoryError("out of memory while hashing weights");
    XXH3_128bits_reset(hash.get());
    for (uint64_t begin = 0; begin < t.bytes(); begin += kStageBytes) {
      const uint64_t n = std::min(kStageBytes, t.bytes() - begin);
      std::memcpy(file_stage_.data(), part.data() + begin, n);
      part.file->Release(t, begin, begin + n);
      XXH3_128bits_update(hash.get(), file_stage_.data(), n);
      backend_.CopyIn(*queue_, to + begin * factor, widen ? Widen(n) : file_stage_.data(), n * factor);
      done_bytes_ += n;
      if (progress_) progress_(done_bytes_, total_bytes_);
    }
    lines_[t.name] = fmt::format("{} {} {} {}\n", t.name, t.dtype, ShapeText(t.shape),
                                 Hex(XXH3_128bits_digest(hash.get())));
    return t.bytes() * factor;
  }

  const std::byte* Widen(uint64_t bytes) {
    wide_stage_.resize(2 * kStageBytes);
    for (uint64_t i = 0; i < bytes / 2; ++i) {
      uint16_t half = 0;
      std::memcpy(&half, file_stage_.data() + 2 * i, sizeof half);
      const uint32_t bits = static_cast<uint32_t>(half) << 16;
      std::memcpy(wide_stage_.data() + 4 * i, &bits, sizeof bits);
    }
    return wide_stage_.data();
  }

  vt::Backend& backend_;
  std::unique_ptr<vt::Queue> queue_;
  const LoadProgress& progress_;
  uint64_t total_bytes_ = 0, done_bytes_ = 0;
  std::vector<std::byte> file_stage_, wide_stage_;
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
