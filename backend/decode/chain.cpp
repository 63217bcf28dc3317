#include "backend/decode/chain.h"

#include <fmt/core.h>

#include <algorithm>

#include "backend/vt/dispatch.h"
#include "backend/vt/error.h"
#include "backend/vt/made_up.h"

namespace warmleg::decode {

using vt::DType;
using vt::kMaxRows;
using vt::Run;
using vt::Tensor;

namespace {

constexpr int kFirstLogits = 8;

int64_t TapWidth(const model::DraftWeights* draft) {
  return draft == nullptr ? 1 : static_cast<int64_t>(draft->config.tap_layers.size()) * draft->config.hidden;
}

int64_t HeldRows(const model::DraftWeights* draft) {
  return draft == nullptr ? 0 : std::min<int64_t>(draft->config.block_size, kMaxRows);
}

}  // namespace

Chain::Chain(const model::TargetWeights& target, const model::DraftWeights* draft, int64_t capacity,
             int64_t prefill_chunk)
    : queue_(target.pool->backend().CreateQueue()),
      chunk_(std::max<int64_t>(kMaxRows, std::min(prefill_chunk, capacity))),
      target_(target, chunk_),
      draft_(draft != nullptr ? std::make_unique<model::Draft>(*draft, target, chunk_) : nullptr),
      state_(target.config, capacity, HeldRows(draft), target.pool->backend()),
      draft_state_(draft != nullptr
                       ? std::make_unique<model::DraftState>(draft->config, capacity, target.pool->backend())
                       : nullptr),
      pool_(target.pool->backend()) {
  prompt_ids_ = pool_.New(DType::i32, {chunk_});
  outcome_ = pool_.New(DType::i32, {2 + 2 * kMaxRows});
  result_ = outcome_.Rows(0, 2 + kMaxRows);
  block_ids_ = outcome_.Rows(2 + kMaxRows, kMaxRows);
  mask_ids_ = pool_.New(DType::i32, {kMaxRows});
  taps_ = pool_.New(DType::f32, {chunk_, TapWidth(draft)});
  logits_ = pool_.New(DType::f32, {kMaxRows, target.config.vocab});
  choice_ = pool_.New(DType::i32, {kMaxRows});
  seed_ = pool_.New(DType::i32, {3});
  bonus_ = pool_.New(DType::i32, {1});
  const int64_t top = std::min<int64_t>(kFirstLogits, target.config.vocab);
  top_values_ = pool_.New(DType::f32, {1, top});
  top_ids_ = pool_.New(DType::i32, {1, top});
  limit_ = pool_.New(DType::i32, {1});
  stop_ids_ =
      pool_.New(DType::i32, {std::max<int64_t>(1, static_cast<int64_t>(target.config.stop_ids.size()))});
  start_ = pool_.New(DType::i32, {1});
  last_ = pool_.New(DType::i32, {1});
  if (draft != nullptr) {
    const std::vector<int32_t> masks(kMaxRows, draft->config.mask_id);
    backend().CopyIn(*queue_, mask_ids_.data, masks.data(), masks.size() * sizeof(int32_t));
  }
}

void Chain::SetPosition(int64_t position) {
  const auto value = static_cast<int32_t>(position);
  backend().CopyIn(*queue_, state_.position.data, &value, sizeof value);
}

void Chain::ReadBack(const Tensor& t, void* host) {
  backend().CopyOut(*queue_, host, t.data, static_cast<size_t>(t.bytes()));
}

void Chain::SimulateAccepted(std::span<const int32_t> counts) {
  accepted_counts_ = pool_.New(DType::i32, {static_cast<int64_t>(counts.size())});
  round_ = pool_.New(DType::i32, {1});
  backend().CopyIn(*queue_, accepted_counts_.data, counts.data(), counts.size_bytes());
}

void Chain::PrepareSampling() {
  if (!sampling_.on()) return;
  if (!scaled_) scaled_ = pool_.New(DType::f32, {kMaxRows, logits_.dim(1)});
  const std::array<int32_t, 3> words = {static_cast<int32_t>(sampling_.seed & 0xffffffffU),
                                        static_cast<int32_t>(sampling_.seed >> 32), sampling_.request};
  backend().CopyIn(*queue_, seed_.data, words.data(), sizeof words);
}

void Chain::Begin(int64_t limit, std::span<const int32_t> stop_ids, const Sampling& sampling) {
  state_.Reset(*queue_);
  sampling_ = sampling;
  PrepareSampling();
  const auto value = static_cast<int32_t>(limit);
  backend().CopyIn(*queue_, limit_.data, &value, sizeof value);
  if (round_) backend().Fill(*queue_, round_.data, 0, sizeof(int32_t));
  stop_count_ = static_cast<int64_t>(stop_ids.size());
  if (stop_count_ > 0) backend().CopyIn(*queue_, stop_ids_.data, stop_ids.data(), stop_ids.size_bytes());
}

int32_t Chain::Prefill(std::span<const int32_t> prompt, vt::Precision precision, bool for_draft) {
  const auto chunk = static_cast<size_t>(chunk_);
  for (size_t done = 0; done < prompt.size(); done += chunk) {
    const size_t rows = std::min(chunk, prompt.size() - done);
    const auto n = static_cast<int64_t>(rows);
    const bool last = done + rows == prompt.size();
    backend().CopyIn(*queue_, prompt_ids_.data, prompt.data() + done, rows * sizeof(int32_t));
    SetPosition(static_cast<int64_t>(done));
    model::Target::Pass pass;
    pass.ids = prompt_ids_.Rows(0, n);
    pass.precision = precision;
    if (last) pass.logits = logits_.Rows(0, 1);
    if (for_draft) {
      pass.taps = taps_.Rows(0, n);
      pass.tap_layers = draft_->weights().config.tap_layers;
    }
    target_.Forward(*queue_, state_, pass);
    if (for_draft) draft_->Append(*queue_, *draft_state_, pass.taps, state_.position, precision);
  }
  SetPosition(static_cast<int64_t>(prompt.size()));
  if (sampling_.on()) {
    EnqueueScaled(1);
    Run(*queue_, vt::RandomSampleArgs{scaled_.Rows(0, 1), choice_.Rows(0, 1), DrawsFrom(0)});
  } else {
    Run(*queue_, vt::ArgMaxArgs{logits_.Rows(0, 1), choice_.Rows(0, 1)});
  }
  Run(*queue_, vt::CopyRowsArgs{choice_.Rows(0, 1), Anchor()});
  int32_t token = 0;
  ReadBack(Anchor(), &token);
  RequireToken(token);
  return token;
}

// A kernel cannot throw: a row with a NaN has the token -1.
void Chain::RequireToken(int32_t token) const {
  if (token >= 0) return;
  throw vt::EnvironmentError(
      fmt::format("op {}: a row of logits holds a NaN; the checkpoint or the device is broken",
                  Name(sampling_.on() ? vt::Op::RandomSample : vt::Op::ArgMax)));
}

void Chain::FirstLogits(int k, std::vector<int32_t>* ids, std::vector<float>* values) {
  const auto n = static_cast<size_t>(std::min<int64_t>(k, top_ids_.dim(1)));
  ids->resize(static_cast<size_t>(top_ids_.dim(1)));
  values->resize(ids->size());
  Run(*queue_, vt::TopKPairsArgs{logits_.Rows(0, 1), top_values_, top_ids_});
  ReadBack(top_ids_, ids->data());
  ReadBack(top_values_, values->data());
  ids->resize(n);
  values->resize(n);
}

void Chain::EnqueueScaled(int64_t rows) {
  const Tensor scaled = scaled_.Rows(0, rows);
  Run(*queue_,
      vt::ApplyTemperatureArgs{logits_.Rows(0, rows), scaled, static_cast<float>(sampling_.temperature)});
  if (!sampling_.filters()) return;
  Run(*queue_, vt::ApplyTopKTopPArgs{scaled, sampling_.top_k, static_cast<float>(sampling_.top_p)});
}

void Chain::EnqueueChoice(int width) {
  const Tensor choice = choice_.Rows(0, width);
  if (!sampling_.on()) {
    Run(*queue_, vt::ArgMaxArgs{logits_.Rows(0, width), choice});
    return;
  }
  EnqueueScaled(width);
  const int drafts = width - 1;
  if (drafts == 0 || round_) {  // accepted counts that are made up need a token in every row
    Run(*queue_, vt::RandomSampleArgs{scaled_.Rows(0, width), choice, DrawsFrom(1)});
    return;
  }
  const Tensor p = scaled_.Rows(0, drafts);
  Run(*queue_, vt::RandomSampleArgs{scaled_.Rows(drafts, 1), bonus_, DrawsFrom(width)});
  Run(*queue_, vt::SoftmaxArgs{p, p});
  Run(*queue_, vt::RejectionSampleArgs{block_ids_.Rows(0, width), p, draft_->q(drafts),
                                       draft_->candidates(drafts), bonus_, choice, DrawsFrom(1)});
}

void Chain::EnqueuePlainStep() {
  model::Target::Pass pass;
  pass.ids = Anchor();
  pass.logits = logits_.Rows(0, 1);
  target_.Forward(*queue_, state_, pass);
  EnqueueChoice(1);
  Run(*queue_, vt::AcceptGreedyArgs{Anchor(), choice_.Rows(0, 1),
                                    stop_count_ > 0 ? stop_ids_.Rows(0, stop_count_) : Tensor{}, limit_,
                                    state_.position, last_, Anchor(), result_});
}

void Chain::EnqueueDraft(int width) {
  Run(*queue_, vt::CopyRowsArgs{Anchor(), mask_ids_.Rows(0, 1)});
  draft_->Block(*queue_, *draft_state_, mask_ids_.Rows(0, width), state_.position);
}

void Chain::EnqueueSelect(int width) {
  draft_->Select(*queue_, Anchor(), block_ids_.Rows(1, width - 1), static_cast<float>(sampling_.temperature),
                 sampling_.on() ? DrawsFrom(1) : vt::Draws{});
}

void Chain::EnqueueVerify(int width) {
  model::Target::Pass pass;
  pass.ids = block_ids_.Rows(0, width);
  pass.hold = true;
  pass.taps = taps_.Rows(0, width);
  pass.tap_layers = draft_->weights().config.tap_layers;
  pass.logits = logits_.Rows(0, width);
  target_.Forward(*queue_, state_, pass);
  EnqueueChoice(width);
}

void Chain::EnqueueCommit(int width) {
  Run(*queue_, vt::CopyRowsArgs{state_.position, start_});
  if (round_)
    vt::ForceAccept(*queue_, {accepted_counts_, round_, block_ids_.Rows(0, width), choice_.Rows(0, width)});
  Run(*queue_, vt::AcceptGreedyArgs{block_ids_.Rows(0, width), choice_.Rows(0, width),
                                    stop_count_ > 0 ? stop_ids_.Rows(0, stop_count_) : Tensor{}, limit_,
                                    state_.position, last_, Anchor(), result_});
  target_.Commit(*queue_, state_, last_);
  // All rows: those of rejected drafts lie beyond the new position and are written again before they are
  // read.
  draft_->Append(*queue_, *draft_state_, taps_.Rows(0, width), start_, vt::Precision::exact);
}

std::vector<int32_t> Chain::ReadDrafted(int width) {
  std::vector<int32_t> drafted(static_cast<size_t>(width - 1));
  ReadBack(block_ids_.Rows(1, width - 1), drafted.data());
  return drafted;
}

void Chain::WriteDrafted(std::span<const int32_t> drafted) {
  backend().CopyIn(*queue_, block_ids_.Rows(1, static_cast<int64_t>(drafted.size())).data, drafted.data(),
                   drafted.size_bytes());
}

StepResult Chain::ReadResult(int width) {
  std::array<int32_t, 2 + 2 * kMaxRows> host{};
  ReadBack(outcome_, host.data());
  StepResult result;
  result.accepted = host[0];
  const auto tokens = host.begin() + 2;
  result.tokens.assign(tokens, tokens + host[1]);
  for (const int32_t token : result.tokens) RequireToken(token);
  const auto drafts = host.begin() + 2 + kMaxRows + 1;  // behind the anchor
  result.drafted.assign(drafts, drafts + (width - 1));
  return result;
}

float Chain::ReadMargin() {
  std::vector<int32_t> ids;
  std::vector<float> values;
  FirstLogits(2, &ids, &values);
  return values.size() > 1 ? values[0] - values[1] : 0.0F;
}

std::vector<Tensor> Chain::Saveable() {
  std::vector<Tensor> all;
  for (const Tensor& t : {state_.conv, state_.delta, state_.position, Anchor(), round_}) {
    if (t) all.push_back(t);
  }
  return all;
}

void Chain::Save() {
  const std::vector<Tensor> all = Saveable();
  if (saved_pool_ == nullptr) {
    saved_pool_ = std::make_unique<vt::TensorPool>(backend());
    for (const Tensor& t : all) saved_.push_back(saved_pool_->New(t.dtype, {t.count()}));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    backend().Copy(*queue_, saved_[i].data, all[i].data, static_cast<size_t>(all[i].bytes()));
  }
}

void Chain::Restore() {
  const std::vector<Tensor> all = Saveable();
  for (size_t i = 0; i < all.size(); ++i) {
    backend().Copy(*queue_, all[i].data, saved_[i].data, static_cast<size_t>(all[i].bytes()));
  }
}

std::vector<float> Chain::ReadTaps(int64_t row) {
  std::vector<float> host(static_cast<size_t>(taps_.dim(1)));
  ReadBack(taps_.Rows(row, 1), host.data());
  return host;
}

StateDump Chain::DumpStates() {
  StateDump dump;
  int32_t position = 0;
  ReadBack(state_.position, &position);
  dump.covered = position;
  const auto add = [&](const std::string& name, const Tensor& t) {
    std::vector<float> host(static_cast<size_t>(t.count()));
    ReadBack(t, host.data());
    dump.tensors.emplace_back(name, std::move(host));
  };
  int64_t linear_blocks = 0;
  for (size_t i = 0; i < state_.k.size(); ++i) {
    const std::string layer = "layer " + std::to_string(i);
    if (state_.k[i]) {
      add(layer + " k", state_.k[i].Rows(0, position));
      add(layer + " v", state_.v[i].Rows(0, position));
    } else {
      add(layer + " conv", state_.conv.At(linear_blocks));
      add(layer + " delta", state_.delta.At(linear_blocks++));
    }
  }
  for (size_t i = 0; draft_state_ != nullptr && i < draft_state_->k.size(); ++i) {
    const std::string layer = "draft layer " + std::to_string(i);
    add(layer + " k", draft_state_->k[i].Rows(0, position));
    add(layer + " v", draft_state_->v[i].Rows(0, position));
  }
  return dump;
}

}  // namespace warmleg::decode
