// The configs and the shard index; what is accepted must have sizes one can compute with.
#include <cstdint>
#include <cstdlib>

#include "backend/model/checkpoint_files.h"
#include "backend/model/parse_config.h"
#include "backend/model/weight_plan.h"
#include "backend/vt/error.h"

namespace {

using namespace warmleg::model;

void CheckPlan(const std::vector<WeightItem>& plan) {
  for (const WeightItem& item : plan) {
    int64_t n = 1;
    for (const int64_t d : item.shape)
      if (d <= 0 || __builtin_mul_overflow(n, d, &n)) std::abort();
  }
}

TargetConfig FittingTarget() {
  TargetConfig target;
  target.hidden = 32;
  target.vocab = 64;
  target.layers.assign(4, LayerType::linear_attention);
  target.stop_ids = {1};
  return target;
}

void Run(uint8_t kind, std::string_view text) {
  Findings findings;
  switch (kind % 4) {
    case 0: {
      TargetWeights w;
      w.config = ParseTargetConfig(text, "{\"eos_token_id\": [1]}", &findings);
      if (findings.ok()) CheckPlan(PlanTarget(&w, w.config.tensor_prefix));
      return;
    }
    case 1: {
      const TargetConfig target = FittingTarget();
      DraftWeights w;
      w.config = ParseDraftConfig(text, &target, &findings);
      if (findings.ok()) CheckPlan(PlanDraft(&w));
      return;
    }
    case 2:
      KindOfConfig(text);
      ParseDraftConfig(text, nullptr, &findings);
      return;
    default:
      ParseShardIndex(text, &findings);
  }
}

}  // namespace

// The first byte chooses the parser.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    Run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const vt::InputError&) {
  }
  return 0;
}
