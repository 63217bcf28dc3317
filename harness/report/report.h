// `warmleg report`: one self-contained HTML page about one campaign, a comparison of two, or a trend of many.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/judge/compare.h"
#include "harness/judge/trend.h"
#include "harness/record/result.h"
#include "harness/report/samples.h"

namespace warmleg::report {

// A result file with what lies beside it.
struct Document {
  std::string name, sha256;  // file name without its folder
  record::Result result;
  judge::Measured measured;  // of the result
  Samples samples;
};

std::string CampaignPage(const Document& document);

// The verdict of `comparison`, then both campaigns.
std::string ComparisonPage(const Document& base, const Document& candidate,
                           const judge::Comparison& comparison);

// `files`: measured, in the order of the command line; `by`: what a release is.
std::string TrendPage(const std::vector<judge::Trend>& trends, const std::vector<judge::Measured>& files,
                      const std::string& by);

}  // namespace warmleg::report
