// Plain decoding and the DFlash2 round over one session, greedy or sampled.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/decode/generation.h"
#include "backend/decode/sampling.h"
#include "backend/model/weights.h"

namespace warmleg::decode {

struct Options {
  int64_t max_new_tokens = 0;
  bool ignore_eos = false;  // stop tokens do not end the output
  int block_size = 0;       // rows of a verify block; 0: the draft's; 1: plain decoding
  vt::Precision precision = vt::Precision::exact;  // of the prefill
  Sampling sampling;
  bool record_margins = false;  // plain decoding: fill Generation::margins (costs time)
  int first_logits = 0;         // how many of the best logits after the prompt to report, at most 8
  // Replaces the drafted tokens of a round before they are verified (tests, forced accept patterns).
  std::function<void(int64_t round, std::span<int32_t> drafted)> redraft;
  // Polled between steps; true ends the generation early by throwing Interrupted.
  std::function<bool()> interrupted;
};

struct Interrupted : std::exception {};

class Chain;

// Everything about a request that can be refused before weights are loaded; a Session refuses the same.
// Throws vt::InputError: an empty prompt, an id outside the vocabulary, prompt + max_new_tokens beyond the
// positions of the target (or of the draft, when there is one), a block size above the draft's or
// vt::kMaxRows, a temperature, top_k or top_p outside its range.
void CheckRequest(const model::TargetConfig& target, const model::DraftConfig* draft,
                  std::span<const int32_t> prompt, const Options& options);

// Device state of one sequence at a time: KV cache, recurrent and convolution states, taps, the draft's
// context. Buffers are kept for the next prompt; states are reset.
class Session {
 public:
  // `draft` may be null: plain decoding only. Both outlive the session. capacity: prompt + max_new_tokens at
  // most.
  Session(const model::TargetWeights& target, const model::DraftWeights* draft, int64_t capacity);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Throw vt::InputError as CheckRequest does, and when the capacity does not suffice.
  Generation Plain(std::span<const int32_t> prompt, const Options& options);
  Generation DFlash2(std::span<const int32_t> prompt, const Options& options);

  // Device state, for the sentinel and for tests.
  Chain& chain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmleg::decode
