// Sampling: the logits after temperature, top-k and top-p, the draw, the sampled walk over a draft's
// candidates and the rejection of drafts. Every number that decides comes from vt/sampler.h.
#include "backend/vt/sampler.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/nan_row.h"
#include "backend/cpu/parallel.h"
#include "backend/vt/check.h"

namespace vt::cpu {

namespace {

using sampler::Purpose;

constexpr int64_t kExpWork = 32;  // multiply-adds that one exp or log counts for

class Keys {
 public:
  explicit Keys(const Draws& draws)
      : words_(draws.seed.as<int32_t>()), position_(draws.position.as<int32_t>()[0] + draws.offset) {}
  uint64_t Of(int64_t row, Purpose purpose) const {
    const uint64_t seed =
        static_cast<uint64_t>(static_cast<uint32_t>(words_[1])) << 32 | static_cast<uint32_t>(words_[0]);
    return sampler::KeyOf(seed, static_cast<uint32_t>(words_[2]),
                          static_cast<uint32_t>(position_ + static_cast<int32_t>(row)), purpose);
  }

 private:
  const int32_t* words_;
  int32_t position_;
};

// The best score of a row; false when it holds a NaN.
bool Best(const float* x, int64_t n, float* best) {
  *best = x[0];
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) return false;
    if (x[i] > *best) *best = x[i];
  }
  return true;
}

// How many of the row's tokens, best first, are kept; `order` holds at least the top_k best.
size_t Kept(const std::vector<uint64_t>& order, size_t top_k, uint64_t top_p_fixed, float best) {
  const auto mass = [&](size_t i) { return sampler::Mass(sampler::ScoreOf(order[i]), best); };
  uint64_t total = 0;
  for (size_t i = 0; i < top_k; ++i) total += mass(i);
  const uint64_t wanted = sampler::TopPMass(total, top_p_fixed);
  uint64_t before = 0;
  size_t kept = 0;
  for (; kept < top_k && before < wanted; ++kept) before += mass(kept);
  return kept;
}

void FilterRow(float* x, int64_t n, int64_t top_k, float top_p, float best) {
  std::vector<uint64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    order[static_cast<size_t>(i)] = sampler::Choice(x[i], static_cast<uint32_t>(i));
  }
  const size_t k = top_k > 0 ? static_cast<size_t>(std::min(top_k, n)) : order.size();
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(k);
  if (k < order.size()) std::nth_element(order.begin(), end, order.end(), std::greater<>());
  std::sort(order.begin(), end, std::greater<>());
  const size_t kept = top_p < 1 ? Kept(order, k, sampler::TopPFixed(top_p), best) : k;
  const uint64_t last = order[kept - 1];
  for (int64_t i = 0; i < n; ++i) {
    if (sampler::Choice(x[i], static_cast<uint32_t>(i)) < last)
      x[i] = -std::numeric_limits<float>::infinity();
  }
}

// probabilities[i] of n scores; false when one is a NaN.
bool SoftmaxRow(const float* x, int64_t n, float* probabilities) {
  float best = 0;
  if (!Best(x, n, &best)) return false;
  uint64_t total = 0;
  for (int64_t i = 0; i < n; ++i) total += sampler::Mass(x[i], best);
  for (int64_t i = 0; i < n; ++i) {
    probabilities[i] = sampler::Probability(sampler::Mass(x[i], best), total);
  }
  return true;
}

}  // namespace

void ApplyTemperature(Queue&, const ApplyTemperatureArgs& args) {
  ParallelFor(args.x.dim(0), args.x.count(), [&](int64_t r) {
    const float* x = args.x.as<float>() + r * args.x.step(0);
    float* out = args.out.as<float>() + r * args.out.step(0);
    for (int64_t i = 0; i < args.x.dim(1); ++i) out[i] = x[i] / args.temperature;
  });
}

void ApplyTopKTopP(Queue&, const ApplyTopKTopPArgs& args) {
  const int64_t n = args.x.dim(1);
  NanRow nan(args.kOp);
  ParallelFor(args.x.dim(0), args.x.count() * kExpWork, [&](int64_t r) {
    float* x = args.x.as<float>() + r * args.x.step(0);
    float best = 0;
    if (!Best(x, n, &best)) return nan.Set(r);
    FilterRow(x, n, args.top_k, args.top_p, best);
  });
  nan.Raise();
}

void Softmax(Queue&, const SoftmaxArgs& args) {
  NanRow nan(args.kOp);
  ParallelFor(args.x.dim(0), args.x.count() * kExpWork, [&](int64_t r) {
    const float* x = args.x.as<float>() + r * args.x.step(0);
    if (!SoftmaxRow(x, args.x.dim(1), args.out.as<float>() + r * args.out.step(0))) nan.Set(r);
  });
  nan.Raise();
}

void RandomSample(Queue&, const RandomSampleArgs& args) {
  if (args.phase == SamplePhase::partials) return;
  NanRow nan(args.kOp);
  const Keys keys(args.draws);
  ParallelFor(args.x.dim(0), args.x.count() * kExpWork, [&](int64_t r) {
    const float* x = args.x.as<float>() + r * args.x.step(0);
    const uint64_t key = keys.Of(r, Purpose::sample);
    uint64_t best = 0;
    for (int64_t i = 0; i < args.x.dim(1); ++i) {
      best = std::max(best, sampler::Drawn(x[i], key, static_cast<uint32_t>(i)));
    }
    const int32_t token = sampler::TokenOf(best);
    args.out.as<int32_t>()[r] = token;
    if (token < 0) nan.Set(r);
  });
  nan.Raise();
}

void SampledWalk(const PathWalkArgs& args) {
  const int64_t k = args.ids.dim(1);
  NanRow nan(args.kOp);
  const Keys keys(args.draws);
  std::array<float, kMaxCandidates> scores{};
  int64_t chosen = 0;  // of the row before; edges[0, 0] start from the anchor
  for (int64_t t = 0; t < args.ids.dim(0); ++t) {
    const float* edges = args.edges.as<float>() + (t * k + chosen) * k;
    const int32_t* ids = args.ids.as<int32_t>() + t * k;
    for (int64_t j = 0; j < k; ++j) scores[static_cast<size_t>(j)] = edges[j] / args.temperature;
    if (!SoftmaxRow(scores.data(), k, args.q.as<float>() + t * k)) nan.Set(t);
    nan.Raise();
    const uint64_t key = keys.Of(t, Purpose::draft);
    uint64_t best = 0;
    for (int64_t j = 0; j < k; ++j) {
      const float score =
          scores[static_cast<size_t>(j)] + sampler::Gumbel(key, static_cast<uint32_t>(ids[j]));
      best = std::max(best, sampler::Choice(score, static_cast<uint32_t>(j)));
    }
    chosen = sampler::TokenOf(best);
    args.drafted.as<int32_t>()[t] = ids[chosen];
  }
}

namespace {

// q[t, token], 0 when it is no candidate.
float DraftProbability(const RejectionSampleArgs& args, int64_t t, int32_t token) {
  const int64_t k = args.ids.dim(1);
  const int32_t* ids = args.ids.as<int32_t>() + t * k;
  const int32_t* found = std::find(ids, ids + k, token);
  return found == ids + k ? 0.0F : args.q.as<float>()[t * k + (found - ids)];
}

// What replaces the draft of row t.
int32_t Replacement(const RejectionSampleArgs& args, int64_t t, int32_t draft, uint64_t key) {
  const float* p = args.p.as<float>() + t * args.p.step(0);
  const int64_t n = args.p.dim(1);
  std::vector<float> q(static_cast<size_t>(n), 0.0F);
  for (int64_t j = 0; j < args.ids.dim(1); ++j) {
    const int32_t id = args.ids.as<int32_t>()[t * args.ids.dim(1) + j];
    if (id >= 0 && id < n) q[static_cast<size_t>(id)] = args.q.as<float>()[t * args.ids.dim(1) + j];
  }
  uint64_t best = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == draft) continue;
    best = std::max(best, sampler::Residual(p[i], q[static_cast<size_t>(i)], key, static_cast<uint32_t>(i)));
  }
  return sampler::ResidualToken(best);
}

}  // namespace

void RejectionSample(Queue&, const RejectionSampleArgs& args) {
  const int64_t rows = args.block.dim(0);
  const auto* block = args.block.as<int32_t>();
  auto* target = args.target.as<int32_t>();
  const Keys keys(args.draws);
  NanRow nan(args.kOp);
  std::fill(target, target + rows, -1);
  for (int64_t t = 0; t < rows - 1; ++t) {
    const int32_t draft = block[t + 1];
    if (draft < 0 || draft >= args.p.dim(1)) {
      throw std::logic_error(fmt::format("op RejectionSample: draft {} is token {}, the vocabulary has {}", t,
                                         draft, args.p.dim(1)));
    }
    const float p = args.p.as<float>()[t * args.p.step(0) + draft];
    if (sampler::Accepts(keys.Of(t, Purpose::accept), static_cast<uint32_t>(draft), p,
                         DraftProbability(args, t, draft))) {
      target[t] = draft;
      continue;
    }
    target[t] = Replacement(args, t, draft, keys.Of(t, Purpose::resample));
    if (target[t] < 0) nan.Set(t);
    nan.Raise();
    return;
  }
  target[rows - 1] = args.bonus.as<int32_t>()[0];
}

}  // namespace vt::cpu
