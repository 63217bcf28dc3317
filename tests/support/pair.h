// The checkpoint pairs of the repository and their golden cases.
#pragma once

#include <string>
#include <vector>

#include "backend/decode/generate.h"
#include "backend/model/loader.h"

namespace warmleg::test {

// The device that tests of the chain run on: WARMLEG_TEST_DEVICE, else cpu.
vt::Device TestDevice();

// WARMLEG_TEST_CASES and WARMLEG_TEST_TOKENS bound what a slow device (sim) runs: cases of each file, tokens
// of each case.
int64_t Bound(const char* name, int64_t otherwise);

// "tiny-code", "flat-tied", "interval-bias", "all-f32"; paths are relative to the repository root.
struct Pair {
  explicit Pair(const std::string& name, vt::Device device = TestDevice());
  model::TargetWeights target;
  model::DraftWeights draft;
};

struct GoldenCase {
  std::string pair;
  std::string prompt;  // text, empty where the case has ids only
  std::vector<int32_t> prompt_ids, greedy, dflash2, stop_ids;
  int64_t max_new_tokens = 0;
  bool ignore_eos = true;
  std::vector<int32_t> first_ids;
  std::vector<float> first_values;
  std::vector<double> taps_l2;  // of the prompt's last row, one a tap; may be empty
  std::vector<decode::Round> rounds;
};

// All cases of tests/data/goldens/NAME.json or tests/data/extra/extra.json ("extra").
std::vector<GoldenCase> LoadGoldens(const std::string& name);

}  // namespace warmleg::test
