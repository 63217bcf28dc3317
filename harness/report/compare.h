// A comparison as text for a terminal, as Markdown to post, as JSON, and in Google Benchmark's form.
#pragma once

#include <string>

#include "harness/judge/compare.h"

namespace warmleg::report {

// 110 columns; provider mixes and fingerprint stand before any percentage.
std::string CompareText(const judge::Comparison& comparison);
std::string CompareMarkdown(const judge::Comparison& comparison);

// "warmleg.compare/1": every number of the verdict, with raw process and leg rates.
record::Json CompareJson(const judge::Comparison& comparison);

// One document with both sides: names "base/SCENARIO/plain/decode" and "candidate/...", one repetition a
// process, real_time = ns per token. `compare.py filters FILE base/ candidate/` reads it.
record::Json GoogleBenchmarkJson(const judge::Comparison& comparison);

}  // namespace warmleg::report
