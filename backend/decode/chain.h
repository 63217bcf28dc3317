// One sequence on a device, step by step: what is enqueued in a prefill, a plain step and a DFlash2 round.
// Token ids, positions and states stay on the device; the host reads one small result a step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/decode/generation.h"
#include "backend/decode/sampling.h"
#include "backend/model/draft.h"
#include "backend/model/target.h"

namespace warmleg::decode {

// Rows of one prefill pass, at most; fewer where the capacity is smaller. The work buffers are as large.
inline constexpr int64_t kPrefillChunk = 2048;

// What the host learns of a step.
struct StepResult {
  int accepted = 0;              // drafts that equal the target's choice, before any cut
  std::vector<int32_t> tokens;   // emitted
  std::vector<int32_t> drafted;  // width - 1 drafts that were verified
};

// Everything a later step depends on, read back for tests: name and values, in a fixed order.
struct StateDump {
  int64_t covered = 0;  // tokens the states cover
  std::vector<std::pair<std::string, std::vector<float>>> tensors;
};

class Chain {
 public:
  // `draft` may be null. capacity: prompt + new tokens. At least kMaxRows rows make a chunk.
  Chain(const model::TargetWeights& target, const model::DraftWeights* draft, int64_t capacity,
        int64_t prefill_chunk = kPrefillChunk);

  int64_t capacity() const { return state_.capacity; }
  vt::Queue& queue() { return *queue_; }
  vt::Backend& backend() { return queue_->backend(); }

  // From the next Begin on, the i-th round accepts counts[i % n] drafts, or all where it has fewer, whatever
  // the target says. Before the first step: a captured graph keeps how it was captured.
  void SimulateAccepted(std::span<const int32_t> counts);

  // Resets every state and sets where the sequence ends (`limit` positions, or a stop token) and how tokens
  // are chosen.
  void Begin(int64_t limit, std::span<const int32_t> stop_ids, const Sampling& sampling = {});
  const Sampling& sampling() const { return sampling_; }
  // All prompt tokens at once; with `for_draft` the draft's context too. The returned token is the first
  // anchor.
  int32_t Prefill(std::span<const int32_t> prompt, vt::Precision precision, bool for_draft);
  // The k best logits after the prompt, valid right after Prefill.
  void FirstLogits(int k, std::vector<int32_t>* ids, std::vector<float>* values);

  void EnqueuePlainStep();
  // A round of `width` rows is Draft, Select, Verify, Commit in this order.
  void EnqueueDraft(int width);
  void EnqueueSelect(int width);
  void EnqueueVerify(int width);
  void EnqueueCommit(int width);
  // Between Select and Verify: the drafted tokens out and back in (tests, forced patterns).
  std::vector<int32_t> ReadDrafted(int width);
  void WriteDrafted(std::span<const int32_t> drafted);

  // Waits for the step of `width` rows (1: plain); the one read-back of a round. Throws EnvironmentError that
  // names the op when a row of logits held a NaN, which leaves no token.
  StepResult ReadResult(int width);
  // Top-1 minus top-2 logit of the last plain step's row, or of the prefill's.
  float ReadMargin();

  // States as a saved point, and back: recurrent states, position and the newest token. KV rows beyond
  // the position are not part of it; they are written before they are read.
  void Save();
  void Restore();

  StateDump DumpStates();
  // What the last pass with taps gave the draft for one of its rows: [tap_layers * hidden].
  std::vector<float> ReadTaps(int64_t row);

  const model::Target& target() const { return target_; }
  const model::Draft* draft() const { return draft_.get(); }

 private:
  vt::Tensor Anchor() const { return block_ids_.Rows(0, 1); }
  void SetPosition(int64_t position);
  void ReadBack(const vt::Tensor& t, void* host);
  void PrepareSampling();
  vt::Draws DrawsFrom(int32_t offset) const { return {seed_, state_.position, offset}; }
  // The target's choice of each row of logits_ into choice_.
  void EnqueueChoice(int width);
  void EnqueueScaled(int64_t rows);
  void RequireToken(int32_t token) const;

  std::unique_ptr<vt::Queue> queue_;
  int64_t chunk_;  // rows of a prefill pass
  model::Target target_;
  std::unique_ptr<model::Draft> draft_;
  model::TargetState state_;
  std::unique_ptr<model::DraftState> draft_state_;
  vt::TensorPool pool_;
  vt::Tensor prompt_ids_;  // [chunk_] i32
  vt::Tensor outcome_;  // [2 + 2 * kMaxRows] i32: result_ and block_ids_ side by side, read back in one copy
  vt::Tensor result_;   // [2 + kMaxRows] i32, of outcome_
  vt::Tensor block_ids_;  // [kMaxRows] i32, of outcome_: anchor (the newest token), then drafts
  vt::Tensor mask_ids_;   // [kMaxRows] i32: anchor, then mask tokens
  vt::Tensor taps_;       // [chunk_, tap_layers * hidden]
  vt::Tensor logits_;     // [kMaxRows, vocab]
  vt::Tensor choice_;     // [kMaxRows] i32: the target's token of each row
  vt::Tensor scaled_;     // [kMaxRows, vocab]: logits after temperature, top-k, top-p, then probabilities
  vt::Tensor seed_;       // [3] i32, as Draws
  vt::Tensor bonus_;      // [1] i32
  Sampling sampling_;
  vt::Tensor top_values_, top_ids_;  // [1, 8]
  vt::Tensor limit_;                 // [1] i32
  vt::Tensor stop_ids_;              // [n] i32, of which the first stop_count_ count
  vt::Tensor start_;  // [1] i32: the round's first position, kept while Commit moves state_.position
  vt::Tensor last_;   // [1] i32: the round's last row that counts
  int64_t stop_count_ = 0;
  vt::Tensor accepted_counts_, round_;  // [n], [1] i32 of SimulateAccepted, or no data
  std::unique_ptr<vt::TensorPool> saved_pool_;
  std::vector<vt::Tensor> saved_;  // in the order of Saveable()
  std::vector<vt::Tensor> Saveable();
};

}  // namespace warmleg::decode
