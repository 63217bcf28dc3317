// A result in which every field is set to something of its own, for round-trip, schema and store tests.
#pragma once

#include "harness/record/result.h"

namespace warmleg::record {

Result FullResult();

}  // namespace warmleg::record
