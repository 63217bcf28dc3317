// warmleg-opbench --model: what a plain step and a round of one model cost, op by op.
#pragma once

#include <string>

#include "backend/vt/backend.h"

namespace vt::bench {

struct ModelBench {
  std::string target;      // config.json of a target, or its folder
  std::string draft;       // of a DFlash2 draft; empty: the plain step alone
  int64_t context = 1024;  // tokens before the step
  bool json = false;       // one JSON object instead of the table
};

// Prints to stdout. Throws InputError for a config that is refused.
void RunModelBench(const ModelBench& bench, Backend& backend);

}  // namespace vt::bench
