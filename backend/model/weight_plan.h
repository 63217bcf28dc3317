// The one table of which stored tensors make which weight: names, shapes, order in the fused matrix. The
// check of a checkpoint, the loader and inspect all read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/model/weights.h"

namespace warmleg::model {

// What a weight does in a step; the bytes that a step must read follow from it.
enum class WeightUse : uint8_t {
  matrix,     // read whole in every step
  embedding,  // one row a token
  head,       // read whole, by the target's step and again for the draft's logits
  codebook,   // rows of the candidates
};

struct WeightPart {
  std::string name;             // as the file spells it, prefix included
  std::vector<int64_t> stored;  // shape in the file
  std::string why;              // how the shape follows, for messages: "3 taps x 192"; may be empty
  std::string other_name;       // a second accepted spelling; may be empty
};

struct WeightItem {
  vt::Tensor* to = nullptr;
  std::vector<int64_t> shape;     // on the device
  std::vector<WeightPart> parts;  // one below the other along the first dimension
  WeightUse use = WeightUse::matrix;
  bool one_plus = false;  // a norm whose gain is 1 + w
};

// The items point into `weights`, whose config is set and whose layers are sized here. `prefix`: of every
// name but lm_head.weight. A tied head has no item.
std::vector<WeightItem> PlanTarget(TargetWeights* weights, const std::string& prefix);
std::vector<WeightItem> PlanDraft(DraftWeights* weights);

}  // namespace warmleg::model
