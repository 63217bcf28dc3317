// Sampling: each op against float64 loops, and the distributions that they are for.
#include "backend/vt/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/chi_square.h"
#include "tests/support/device_ops.h"

namespace testing_support {
namespace {

namespace sampler = vt::sampler;

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Sampler, LogAndExpAreThoseOfFloat64) {
  for (const float x :
       {1e-30F, 2.4e-10F, 0.1F, 0.5F, 0.70710F, 0.70711F, 0.999999F, 1.0F, 1.0000001F, 1.5F, 22.9F, 3.3e7F}) {
    EXPECT_NEAR(sampler::Log(x), std::log(double{x}), 2e-7 * std::max(1.0, std::abs(std::log(double{x}))))
        << x;
  }
  EXPECT_EQ(sampler::Log(1.0F), 0.0F);
  for (float x = 0; x > -87; x -= 0.0371F) {
    EXPECT_NEAR(sampler::Exp(x) / std::exp(double{x}), 1.0, 3e-7) << x;
  }
  EXPECT_EQ(sampler::Exp(0.0F), 1.0F);
  EXPECT_EQ(sampler::Exp(-88.0F), 0.0F);
  EXPECT_EQ(sampler::Exp(-kInf), 0.0F);
}

TEST(Sampler, ExponentialKeepsBothTails) {
  for (const uint32_t bits :
       {0U, 1U, 2U, 1000U, 0x12345678U, 0x7fffffffU, 0x80000000U, 0xdeadbeefU, 0xfffffffeU, 0xffffffffU}) {
    const double u = 1 - (bits + 0.5) * 0x1p-32;
    EXPECT_NEAR(sampler::Exponential(bits) / -std::log(u), 1.0, 3e-7) << bits;
  }
}

TEST(Sampler, KeysDifferInEveryPart) {
  using sampler::KeyOf;
  using sampler::Purpose;
  const uint64_t key = KeyOf(1, 0, 5, Purpose::sample);
  for (const uint64_t other :
       {KeyOf(2, 0, 5, Purpose::sample), KeyOf(1ULL << 40, 0, 5, Purpose::sample),
        KeyOf(1, 1, 5, Purpose::sample), KeyOf(1, 0, 6, Purpose::sample), KeyOf(1, 0, 5, Purpose::draft),
        KeyOf(1, 0, 5, Purpose::accept), KeyOf(1, 0, 5, Purpose::resample)}) {
    EXPECT_NE(other, key);
  }
  EXPECT_EQ(KeyOf(1, 0, 5, Purpose::sample), key);
}

TEST(Sampler, UniformStaysInside) {
  EXPECT_GT(sampler::Uniform(0), 0.0F);
  EXPECT_LT(sampler::Uniform(0xffffffffU), 1.0F);
}

class SampleOps : public DeviceOps {
 protected:
  vt::Draws DrawsOf(uint64_t seed, int32_t position, int32_t request = 0) {
    return {.seed = t_.Ints(
                {static_cast<int32_t>(seed & 0xffffffffU), static_cast<int32_t>(seed >> 32), request}),
            .position = t_.Ints({position})};
  }
  vt::Tensor Row(const std::vector<float>& values) {
    vt::Tensor x = t_.Empty(kF32, {1, static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), x.as<float>());
    return x;
  }
  int32_t Sample(const vt::Tensor& x, const vt::Draws& draws) {
    const vt::Tensor out = t_.Empty(kI32, {x.dim(0)});
    Run(vt::RandomSampleArgs{.x = x, .out = out, .draws = draws});
    return Ids(out)[0];
  }
  // The ids that a filter of a row leaves.
  std::vector<int32_t> Left(const std::vector<float>& row, int64_t top_k, float top_p) {
    const vt::Tensor x = Row(row);
    Run(vt::ApplyTopKTopPArgs{.x = x, .top_k = top_k, .top_p = top_p});
    std::vector<int32_t> ids;
    for (size_t i = 0; i < row.size(); ++i) {
      if (x.as<float>()[i] == -kInf) continue;
      EXPECT_EQ(x.as<float>()[i], row[i]) << "a kept logit changes";
      ids.push_back(static_cast<int32_t>(i));
    }
    return ids;
  }
};

// What the filters keep, from a full sort in float64. `sure` is false where a mass lies so near top_p that
// rounding decides.
struct Filtered {
  std::vector<int32_t> ids;
  bool sure = true;
};
Filtered FilterReference(const std::vector<float>& row, int64_t top_k, double top_p) {
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
  });
  if (top_k > 0 && static_cast<size_t>(top_k) < order.size()) order.resize(static_cast<size_t>(top_k));
  const double best = row[static_cast<size_t>(order[0])];
  double total = 0;
  for (const int32_t i : order) total += std::exp(row[static_cast<size_t>(i)] - best);
  Filtered out;
  double before = 0;
  for (const int32_t i : order) {
    if (!out.ids.empty() && std::abs(before / total - top_p) < 1e-6) out.sure = false;
    if (!out.ids.empty() && top_p < 1 && before / total >= top_p) break;
    out.ids.push_back(i);
    before += std::exp(row[static_cast<size_t>(i)] - best);
  }
  std::sort(out.ids.begin(), out.ids.end());
  return out;
}

TEST_F(SampleOps, TemperatureDivides) {
  const vt::Tensor x = t_.Strided({3, 301}, 3, -20, 20);
  const vt::Tensor out = t_.Empty(kF32, {3, 301});
  Run(vt::ApplyTemperatureArgs{.x = x, .out = out, .temperature = 0.7F});
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t i = 0; i < 301; ++i) {
      EXPECT_EQ(out.as<float>()[r * 301 + i], x.as<float>()[r * x.step(0) + i] / 0.7F);
    }
  }
}

TEST_F(SampleOps, FiltersAgreeWithAFullSort) {
  std::normal_distribution<float> normal(0, 3);
  int sure = 0;
  for (const size_t n : {size_t{1}, size_t{2}, size_t{255}, size_t{257}, size_t{2049}, size_t{20011}}) {
    std::vector<float> row(n);
    for (float& z : row) z = std::round(normal(t_.random()) * 64) / 64;  // ties
    for (const int64_t k : {0, 1, 2, 50, 5000}) {
      for (const float p : {1.0F, 0.95F, 0.5F, 0.01F, 0.0F}) {
        SCOPED_TRACE(testing::Message() << n << " tokens, top_k " << k << ", top_p " << p);
        const Filtered want = FilterReference(row, k, p);
        if (!want.sure) continue;
        EXPECT_EQ(Left(row, k, p), want.ids);
        ++sure;
      }
    }
  }
  EXPECT_GT(sure, 120);
}

TEST_F(SampleOps, FiltersOfTiesInfinitiesAndFarScores) {
  EXPECT_EQ(Left({1, 1, 1, 1}, 2, 1), (std::vector<int32_t>{0, 1})) << "ties: the lower index";
  EXPECT_EQ(Left({1, 1, 1, 1}, 0, 0.5F), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(Left({1, 1, 1, 1}, 0, 0.51F), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(Left({-kInf, 3, -kInf, 3.5F}, 2, 1), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(Left({0, kInf, 5, kInf}, 0, 0.5F), (std::vector<int32_t>{1}));
  EXPECT_EQ(Left({-500, -300, -700, -301}, 3, 1), (std::vector<int32_t>{0, 1, 3})) << "beyond the buckets";
  EXPECT_EQ(Left({-500, -300, -700, -301}, 0, 0.999F), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(Left({-0.0F, 0.0F, -0.0F}, 2, 1).size(), 2U);
  EXPECT_EQ(Left({2, 1, 0}, 3, 1).size(), 3U);
  EXPECT_EQ(Left({2, 1, 0}, 0, 0), (std::vector<int32_t>{0})) << "the best token stays";
}

TEST_F(SampleOps, TopPCountsTheMassThatTopKLeft) {
  // masses 4 : 3 : 2 : 1; of the first three, two thirds and a bit need the second
  const std::vector<float> row = {std::log(4.0F), std::log(3.0F), std::log(2.0F), std::log(1.0F)};
  EXPECT_EQ(Left(row, 0, 0.69F), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(Left(row, 2, 0.55F), (std::vector<int32_t>{0})) << "4 of 7 is enough";
  EXPECT_EQ(Left(row, 0, 0.55F), (std::vector<int32_t>{0, 1}));
}

TEST_F(SampleOps, SoftmaxAgreesWithFloat64) {
  for (const int64_t n : {1, 2, 255, 2048, 2049, 40000}) {
    const vt::Tensor x = t_.Strided({3, n}, 3, -12, 12);
    const vt::Tensor out = t_.Empty(kF32, {3, n});
    Run(vt::SoftmaxArgs{.x = x, .out = out});
    for (int64_t r = 0; r < 3; ++r) {
      const float* row = x.as<float>() + r * x.step(0);
      const double best = *std::max_element(row, row + n);
      double total = 0;
      for (int64_t i = 0; i < n; ++i) total += std::exp(row[i] - best);
      double worst = 0;
      for (int64_t i = 0; i < n; ++i) {
        worst = std::max(worst, std::abs(out.as<float>()[r * n + i] - std::exp(row[i] - best) / total));
      }
      EXPECT_LT(worst, 3e-7) << n;
    }
  }
  const vt::Tensor same = Row({1, -kInf, 1, 1, 1});
  Run(vt::SoftmaxArgs{.x = same, .out = same});
  EXPECT_TRUE(Near(same, {0.25, 0, 0.25, 0.25, 0.25}, 0));
}

TEST_F(SampleOps, ADroppedTokenIsNeverDrawnAndARowOfOneIsCertain) {
  for (int seed = 0; seed < 200; ++seed) {
    const vt::Draws draws = DrawsOf(static_cast<uint64_t>(seed), 7);
    EXPECT_EQ(Sample(Row({-kInf, -kInf, -80, -kInf}), draws), 2);
    EXPECT_EQ(Sample(Row({5}), draws), 0);
  }
  EXPECT_EQ(Sample(Row({-kInf, -kInf}), DrawsOf(1, 1)), 0);
  EXPECT_EQ(Sample(Row({1, kInf, kInf}), DrawsOf(1, 1)), 1);
}

TEST_F(SampleOps, ARowDoesNotDependOnTheOthersButOnItsPosition) {
  const vt::Tensor x = t_.Strided({16, 3001}, 3, -4, 4);
  const vt::Tensor out = t_.Empty(kI32, {16});
  vt::Draws draws = DrawsOf(9, 100);
  draws.offset = 5;
  Run(vt::RandomSampleArgs{.x = x, .out = out, .draws = draws});
  for (int64_t r = 0; r < 16; ++r) {
    EXPECT_EQ(Sample(x.Rows(r, 1), DrawsOf(9, 105 + static_cast<int32_t>(r))),
              Ids(out)[static_cast<size_t>(r)]);
  }
  int same = 0;
  for (int32_t request = 1; request <= 16; ++request) {
    same += Sample(x.Rows(0, 1), DrawsOf(9, 105, request)) == Ids(out)[0] ? 1 : 0;
  }
  EXPECT_LT(same, 3) << "another request draws other numbers";
}

TEST_F(SampleOps, TheDrawFollowsTheDistribution) {
  const std::vector<double> p = {0.4, 0.25, 0.05, 0.2, 0.1};
  std::vector<float> row;
  for (const double each : p) row.push_back(static_cast<float>(std::log(each) * 0.5));
  const vt::Tensor x = Row(row);
  Run(vt::ApplyTemperatureArgs{.x = x, .out = x, .temperature = 0.5F});
  const int draws = OnCpu() ? 40000 : 4000;
  ChiSquare chi(p);
  for (int i = 0; i < draws; ++i)
    chi.Add(static_cast<size_t>(Sample(x, DrawsOf(static_cast<uint64_t>(i), 3))));
  EXPECT_TRUE(chi.Fits());
}

// One draft round over six tokens: the target's next-token table, and edges of a draft that disagrees.
class SampledRound : public SampleOps {
 protected:
  static constexpr size_t kTokens = 6;
  static constexpr int32_t kAnchor = 2;
  using Table = std::array<std::array<double, kTokens>, kTokens>;
  static constexpr Table kTarget = {{{0.10, 0.30, 0.20, 0.15, 0.15, 0.10},
                                     {0.25, 0.05, 0.10, 0.30, 0.20, 0.10},
                                     {0.15, 0.10, 0.35, 0.05, 0.15, 0.20},
                                     {0.20, 0.20, 0.10, 0.10, 0.30, 0.10},
                                     {0.10, 0.15, 0.15, 0.20, 0.05, 0.35},
                                     {0.30, 0.10, 0.05, 0.25, 0.20, 0.10}}};

  void SetUp() override {
    ids_ = t_.Empty(kI32, {2, 4});
    const int32_t ids[] = {2, 0, 5, 3, 4, 1, 0, 2};
    std::copy(std::begin(ids), std::end(ids), ids_.as<int32_t>());
    edges_ = t_.Random(kF32, {2, 4, 4}, -0.6F, 0.6F);
    for (size_t a = 0; a < kTokens; ++a) {
      std::vector<float> row;
      for (const double p : kTarget[a]) row.push_back(static_cast<float>(std::log(p)));
      logits_.push_back(Row(row));
      next_.push_back(Row(row));
      Run(vt::SoftmaxArgs{.x = next_.back(), .out = next_.back()});
    }
  }

  struct Walked {
    std::vector<int32_t> drafted;
    vt::Tensor q;
  };
  Walked DraftTwo(uint64_t seed) {
    const vt::Tensor drafted = t_.Empty(kI32, {2});
    const vt::Tensor q = t_.Empty(kF32, {2, 4});
    vt::Draws draws = DrawsOf(seed, 10);
    draws.offset = 1;
    Run(vt::PathWalkArgs{edges_, ids_, drafted, q, draws, 0.5F});
    return {Ids(drafted), q};
  }
  // The tokens of one round, by what RejectionSample says; the token after a rejection is drawn as a plain
  // step draws it.
  std::array<int32_t, 2> TwoTokens(uint64_t seed) {
    const auto [drafted, q] = DraftTwo(seed);
    const vt::Tensor block = t_.Ints({kAnchor, drafted[0], drafted[1]});
    const vt::Tensor p = t_.Empty(kF32, {2, static_cast<int64_t>(kTokens)});
    for (size_t t = 0; t < 2; ++t) {
      const float* from = next_[static_cast<size_t>(t == 0 ? kAnchor : drafted[0])].as<float>();
      std::copy(from, from + kTokens, p.as<float>() + t * kTokens);
    }
    vt::Draws draws = DrawsOf(seed, 10);
    const vt::Tensor bonus = t_.Ints({Sample(logits_[static_cast<size_t>(drafted[1])], DrawsOf(seed, 13))});
    const vt::Tensor target = t_.Empty(kI32, {3});
    draws.offset = 1;
    Run(vt::RejectionSampleArgs{block, p, q, ids_, bonus, target, draws});
    const std::vector<int32_t> got = Ids(target);
    if (got[0] != drafted[0]) {
      ++rejected_;
      EXPECT_EQ(got[1], -1);
      EXPECT_EQ(got[2], -1);
      return {got[0], Sample(logits_[static_cast<size_t>(got[0])], DrawsOf(seed, 12))};
    }
    if (got[1] == drafted[1]) {
      EXPECT_EQ(got[2], Ids(bonus)[0]);
      ++accepted_;
    } else {
      EXPECT_EQ(got[2], -1);
    }
    return {got[0], got[1]};
  }

  vt::Tensor ids_, edges_;
  std::vector<vt::Tensor> logits_, next_;
  int rejected_ = 0, accepted_ = 0;
};

TEST_F(SampledRound, TheWalkKeepsTheDistributionItDrawsFrom) {
  const int draws = OnCpu() ? 20000 : 2000;
  const auto softmax = [&](int64_t row, int64_t from) {
    std::vector<double> p(4);
    double total = 0;
    for (int64_t j = 0; j < 4; ++j) {
      const float edge = edges_.as<float>()[(row * 4 + from) * 4 + j];
      total += p[static_cast<size_t>(j)] = std::exp(edge / 0.5);
    }
    for (double& each : p) each /= total;
    return p;
  };
  const auto rank = [&](int64_t row, int32_t token) {
    const int32_t* ids = ids_.as<int32_t>() + row * 4;
    return std::find(ids, ids + 4, token) - ids;
  };
  ChiSquare first(softmax(0, 0));
  ChiSquare second(softmax(1, 2));  // behind the third candidate
  for (int i = 0; i < draws; ++i) {
    const Walked walked = DraftTwo(static_cast<uint64_t>(i));
    const auto from = rank(0, walked.drafted[0]);
    ASSERT_LT(from, 4);
    ASSERT_LT(rank(1, walked.drafted[1]), 4);
    first.Add(static_cast<size_t>(from));
    if (from == 2) second.Add(static_cast<size_t>(rank(1, walked.drafted[1])));
    if (i > 20) continue;
    EXPECT_TRUE(Near(walked.q.Rows(0, 1), softmax(0, 0), 1e-6));
    EXPECT_TRUE(Near(walked.q.Rows(1, 1), softmax(1, from), 1e-6));
  }
  EXPECT_TRUE(first.Fits());
  EXPECT_TRUE(second.Fits());
}

TEST_F(SampledRound, TheOutputFollowsTheTargetWhateverTheDraft) {
  std::vector<double> joint;
  for (size_t a = 0; a < kTokens; ++a) {
    for (size_t b = 0; b < kTokens; ++b) joint.push_back(kTarget[kAnchor][a] * kTarget[a][b]);
  }
  ChiSquare chi(joint);
  const int rounds = OnCpu() ? 40000 : 6000;
  for (int i = 0; i < rounds; ++i) {
    const auto [a, b] = TwoTokens(static_cast<uint64_t>(i));
    ASSERT_GE(a, 0);
    ASSERT_GE(b, 0);
    chi.Add(static_cast<size_t>(a) * kTokens + static_cast<size_t>(b));
  }
  EXPECT_TRUE(chi.Fits());
  EXPECT_GT(rejected_, rounds / 10) << "the test needs rejections";
  EXPECT_GT(accepted_, rounds / 10);
}

TEST_F(SampleOps, AcceptanceIsCertainWhereTheDraftIsTheTarget) {
  const vt::Tensor p = Row({0.5F, 0.25F, 0.25F});
  const vt::Tensor ids = t_.Ints({0, 1, 2}).Reshape({1, 3});
  for (int seed = 0; seed < 300; ++seed) {
    const vt::Tensor target = t_.Empty(kI32, {2});
    Run(vt::RejectionSampleArgs{t_.Ints({0, seed % 3}), p, p, ids, t_.Ints({1}), target,
                                DrawsOf(static_cast<uint64_t>(seed), 4)});
    EXPECT_EQ(Ids(target), (std::vector<int32_t>{seed % 3, 1}));
  }
}

TEST_F(SampleOps, ADraftTheTargetForbidsIsReplacedFromTheRest) {
  const vt::Tensor p = Row({0, 0.25F, 0.75F});
  const vt::Tensor ids = t_.Ints({0, 1}).Reshape({1, 2});
  const vt::Tensor q = t_.Empty(kF32, {1, 2});
  q.as<float>()[0] = 0.75F;
  q.as<float>()[1] = 0.25F;
  for (int seed = 0; seed < 100; ++seed) {
    const vt::Tensor target = t_.Empty(kI32, {2});
    Run(vt::RejectionSampleArgs{t_.Ints({9, 0}), p, q, ids, t_.Ints({1}), target,
                                DrawsOf(static_cast<uint64_t>(seed), 4)});
    EXPECT_EQ(Ids(target), (std::vector<int32_t>{2, -1})) << "p - q is positive for token 2 alone";
  }
}

}  // namespace
}  // namespace testing_support
