// A checkpoint that was checked as a whole: config, files, and which stored tensor makes which weight.
// Nothing is on a device yet.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/model/checkpoint_files.h"
#include "backend/model/weight_plan.h"

namespace warmleg::model {

struct SkippedGroup {
  int64_t tensors = 0;
  uint64_t bytes = 0;
};

// Which stored tensors a plan uses, and what else is in the files.
struct TensorMatch {
  std::vector<std::vector<FileTensor>> parts;    // per item, per part; no file where something is wrong
  std::map<std::string, SkippedGroup> skipped;   // "model.visual.", "visual.", "mtp."
  int64_t used = 0;                              // stored tensors
  std::map<std::string, uint64_t> stored_bytes;  // of the used ones, by stored dtype
};

// The dtype an item has on the device: that of its parts; parts of different dtypes are widened to f32.
vt::DType DeviceDType(const std::vector<FileTensor>& parts);

struct CheckedTarget {
  TargetWeights weights;  // config and sized layers, no data
  std::string prefix;     // as found in the files
  std::vector<WeightItem> plan;
  std::unique_ptr<CheckpointFiles> files;
  TensorMatch match;
  Findings findings;
};

struct CheckedDraft {
  DraftWeights weights;
  std::vector<WeightItem> plan;
  std::unique_ptr<CheckpointFiles> files;
  TensorMatch match;
  Findings findings;
};

// Never throw for what the files hold: every reason is in findings, with "target: " or "draft: " before it.
CheckedTarget CheckTarget(const std::string& dir);
CheckedDraft CheckDraft(const std::string& dir, const TargetConfig* target);

// From config.json alone: no files and no match, the plan stands. For weights that are made, not read.
CheckedTarget CheckTargetConfig(const std::string& dir);
CheckedDraft CheckDraftConfig(const std::string& dir, const TargetConfig* target);

}  // namespace warmleg::model
