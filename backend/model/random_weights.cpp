#include "backend/model/random_weights.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <chrono>
#include <cmath>
#include <set>

#include "backend/model/checkpoint.h"
#include "backend/vt/made_up.h"

namespace warmleg::model {

namespace {

uint64_t Elements(const std::vector<int64_t>& shape) {
  uint64_t n = 1;
  for (const int64_t d : shape) n *= static_cast<uint64_t>(d);
  return n;
}

vt::Tensor NewTensor(vt::TensorPool* pool, vt::DType dtype, const std::vector<int64_t>& shape) {
  if (shape.size() == 1) return pool->New(dtype, {shape[0]});
  if (shape.size() == 2) return pool->New(dtype, {shape[0], shape[1]});
  return pool->New(dtype, {shape[0], shape[1], shape[2]});
}

// Uniform in [-a, a) has variance a^2 / 3: rows of k numbers with a near sqrt(3 / k) keep the size of what
// they are multiplied with. Gains are near 1, decays and step sizes near the middle of their range.
vt::RandomFill FillFor(const WeightItem& item, const WeightPart& part, uint64_t seed) {
  vt::RandomFill fill;
  fill.key = XXH3_64bits_withSeed(part.name.data(), part.name.size(), seed);
  if (part.name.ends_with("norm.weight")) {
    fill.amplitude = 0.125F;
    fill.centre = item.one_plus ? 0.0F : 1.0F;
  } else if (item.use == WeightUse::embedding || part.name.ends_with("A_log") ||
             part.name.ends_with("dt_bias")) {
    fill.amplitude = 1.0F;
  } else if (part.name.ends_with(".bias") || part.name.ends_with("base_kernel")) {
    fill.amplitude = 0.25F;
  } else {
    const auto k = static_cast<double>(item.shape.back());
    fill.amplitude = static_cast<float>(std::exp2(std::floor(std::log2(std::sqrt(3.0 / k)))));
  }
  return fill;
}

template <class Checked>
auto Make(Checked checked, uint64_t seed, vt::Backend& backend, LoadReport* report,
          const LoadProgress& progress, std::chrono::steady_clock::time_point begin) {
  checked.findings.Raise();
  auto& weights = checked.weights;
  weights.pool = std::make_unique<vt::TensorPool>(backend);
  const auto queue = backend.CreateQueue();
  uint64_t total = 0;
  for (const WeightItem& item : checked.plan)
    total += Elements(item.shape) * static_cast<uint64_t>(vt::SizeOf(PublishedDType(item)));
  std::set<std::string> lines;
  for (const WeightItem& item : checked.plan) {
    const vt::DType dtype = PublishedDType(item);
    *item.to = NewTensor(weights.pool.get(), dtype, item.shape);
    const vt::Tensor flat = item.to->Reshape({item.to->count()});
    int64_t at = 0;
    for (const WeightPart& part : item.parts) {
      const auto n = static_cast<int64_t>(Elements(part.stored));
      vt::FillRandom(*queue, flat.Rows(at, n), FillFor(item, part, seed));
      at += n;
      lines.insert(fmt::format("{} {} {}\n", part.name, vt::Name(dtype), ShapeText(part.stored)));
    }
    if (progress) progress(weights.pool->bytes(), total);
  }
  backend.Synchronize(*queue);
  std::string text = fmt::format("random weights 1, seed {}\n", seed);
  for (const std::string& line : lines) text += line;
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  if (report != nullptr) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    *report = {took.count(), weights.pool->bytes(), fmt::format("{:016x}{:016x}", hash.high64, hash.low64)};
  }
  return std::move(weights);
}

}  // namespace

vt::DType PublishedDType(const WeightItem& item) {
  const std::string& name = item.parts.front().name;
  return name.ends_with("A_log") || name.ends_with("linear_attn.norm.weight") ? vt::DType::f32
                                                                              : vt::DType::bf16;
}

TargetWeights MakeRandomTarget(const std::string& dir, uint64_t seed, vt::Backend& backend,
                               LoadReport* report, const LoadProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  TargetWeights weights = Make(CheckTargetConfig(dir), seed, backend, report, progress, begin);
  if (weights.config.tied_head) weights.head = weights.embedding;
  return weights;
}

DraftWeights MakeRandomDraft(const std::string& dir, const TargetConfig& target, uint64_t seed,
                             vt::Backend& backend, LoadReport* report, const LoadProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  return Make(CheckDraftConfig(dir, &target), seed, backend, report, progress, begin);
}

}  // namespace warmleg::model
