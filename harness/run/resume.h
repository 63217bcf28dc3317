// Whether an unfinished result may be continued here and now.
#pragma once

#include <string>
#include <vector>

#include "harness/record/result.h"

namespace warmleg::run {

// Every reason against it, one line each: not unfinished, another scenario, another boot, another build,
// another workload. `now`: the campaign about to run; fields of its workload that need weights may still be
// empty.
std::vector<std::string> WhyNotResume(const record::Result& earlier, const record::Result& now);

}  // namespace warmleg::run
