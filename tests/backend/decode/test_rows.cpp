// Verify rows equal plain steps bit for bit: the whole target, every width 1..16, on the device at hand.
#include <gtest/gtest.h>

#include "backend/model/target.h"
#include "tests/support/pair.h"

namespace warmleg {
namespace {

using test::Pair;

constexpr int64_t kCapacity = 64;
const std::vector<int32_t> kPrompt = {475, 383, 274, 17, 2};

// One target that holds blocks of kMaxRows rows.
class Rows {
 public:
  explicit Rows(const Pair& pair)
      : backend_(pair.target.pool->backend()),
        queue_(backend_.CreateQueue()),
        target_(pair.target, vt::kMaxRows),
        state_(pair.target.config, kCapacity, vt::kMaxRows, backend_),
        pool_(backend_),
        ids_(pool_.New(vt::DType::i32, {vt::kMaxRows})),
        last_(pool_.New(vt::DType::i32, {1})),
        logits_(pool_.New(vt::DType::f32, {vt::kMaxRows, pair.target.config.vocab})) {}

  // States after the prompt, by single steps.
  void Prefill() {
    state_.Reset(*queue_);
    for (size_t i = 0; i < kPrompt.size(); ++i) Forward({kPrompt[i]}, static_cast<int32_t>(i), false);
  }

  // Logits of each row.
  std::vector<float> Forward(const std::vector<int32_t>& ids, int32_t position, bool hold) {
    const auto rows = static_cast<int64_t>(ids.size());
    backend_.CopyIn(*queue_, ids_.data, ids.data(), ids.size() * sizeof(int32_t));
    backend_.CopyIn(*queue_, state_.position.data, &position, sizeof position);
    model::Target::Pass pass;
    pass.ids = ids_.Rows(0, rows);
    pass.hold = hold;
    pass.logits = logits_.Rows(0, rows);
    target_.Forward(*queue_, state_, pass);
    return Read(pass.logits);
  }

  // Of the block that was held last.
  void Commit(int32_t last) {
    backend_.CopyIn(*queue_, last_.data, &last, sizeof last);
    target_.Commit(*queue_, state_, last_);
  }

  // Recurrent and convolution states, all layers.
  std::vector<float> States() {
    std::vector<float> all = Read(state_.conv);
    const std::vector<float> delta = Read(state_.delta);
    all.insert(all.end(), delta.begin(), delta.end());
    return all;
  }

 private:
  std::vector<float> Read(const vt::Tensor& t) {
    std::vector<float> host(static_cast<size_t>(t.count()));
    backend_.CopyOut(*queue_, host.data(), t.data, static_cast<size_t>(t.bytes()));
    return host;
  }

  vt::Backend& backend_;
  std::unique_ptr<vt::Queue> queue_;
  model::Target target_;
  model::TargetState state_;
  vt::TensorPool pool_;
  vt::Tensor ids_, last_, logits_;
};

TEST(Rows, OfEveryWidthEqualSingleStepsBitForBit) {
  const Pair pair("flat-tied");
  const auto vocab = static_cast<size_t>(pair.target.config.vocab);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < vt::kMaxRows; ++i) tokens.push_back((i * 97 + 31) % static_cast<int32_t>(vocab));

  Rows rows(pair);
  rows.Prefill();
  std::vector<float> logits;
  std::vector<std::vector<float>> states = {rows.States()};  // after so many of the tokens
  const auto start = static_cast<int32_t>(kPrompt.size());
  for (int32_t i = 0; i < vt::kMaxRows; ++i) {
    const std::vector<float> one = rows.Forward({tokens[static_cast<size_t>(i)]}, start + i, false);
    logits.insert(logits.end(), one.begin(), one.end());
    states.push_back(rows.States());
  }
  for (size_t width = 1; width <= vt::kMaxRows; ++width) {
    for (const size_t counted : {size_t{0}, size_t{1}, width / 2, width}) {
      SCOPED_TRACE(std::to_string(counted) + " rows of " + std::to_string(width));
      rows.Prefill();
      const std::vector<float> got =
          rows.Forward({tokens.begin(), tokens.begin() + static_cast<long>(width)}, start, true);
      EXPECT_EQ(got, std::vector<float>(logits.begin(), logits.begin() + static_cast<long>(width * vocab)));
      EXPECT_EQ(rows.States(), states[0]) << "a held block moved the states";
      rows.Commit(static_cast<int32_t>(counted) - 1);
      EXPECT_EQ(rows.States(), states[counted]);
    }
  }
}

}  // namespace
}  // namespace warmleg
