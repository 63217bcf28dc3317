// From a scenario to a plan: device chosen, prompts tokenized, everything checked that needs no weights.
#pragma once

#include "harness/run/plan.h"
#include "harness/scenario/scenario.h"

namespace warmleg::run {

// A path, or the bare name of a shipped scenario: NAME.json in scenarios/ of the working folder, else in the
// source folder this program was built from. Throws vt::InputError that lists the shipped names.
std::string FindScenario(const std::string& name_or_path);

// Throws vt::InputError (several GPUs, no tokenizer for text prompts, an option that is not supported) and
// vt::EnvironmentError (no such device).
Plan MakePlan(const scenario::Scenario& scenario);

}  // namespace warmleg::run
