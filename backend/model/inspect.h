// What `warmleg inspect` says about a checkpoint, without loading it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/model/checkpoint.h"
#include "backend/model/counts.h"
#include "backend/model/parse_config.h"

namespace warmleg::model {

// Weight bytes that one model makes a step read, as they lie on the device. Rows that are gathered
// (embedding, codebooks) count as rows.
struct StepBytes {
  uint64_t matrices = 0;  // every matrix and norm of the blocks
  uint64_t head = 0;      // 0 for a draft: it uses the target's
  uint64_t rows = 0;      // gathered rows of one step
};

struct ModelReport {
  CheckpointKind kind = CheckpointKind::target;
  std::string dir;
  Findings findings;
  bool checked = false;  // the tensors were matched; else only findings say something
  TargetConfig target;   // of kind target
  DraftConfig draft;     // of kind draft
  int64_t tensors_used = 0;
  uint64_t parameters = 0;
  std::map<std::string, uint64_t> stored_bytes;   // by dtype in the file
  std::map<std::string, uint64_t> compute_bytes;  // by dtype on the device
  std::map<std::string, SkippedGroup> skipped;
  StepBytes step;
  std::vector<SizedItem> items;  // what the bytes were counted from
};

struct InspectOptions {
  bool config_only = false;         // the configs alone: what weights made from them would be
  int64_t context = 512;            // at which steps and rounds are counted
  std::optional<double> roof_gb_s;  // to give floors in time
};

struct InspectReport {
  ModelReport model;                // DIR
  std::optional<ModelReport> pair;  // --target: the target a draft was checked against

  bool ok() const;
  std::vector<std::string> Reasons() const;  // of both, in order
  const ModelReport* Target() const;         // null when only a draft was given
  // Weight bytes of one plain step; of one draft round: draft, head for its logits, target over the verify
  // rows. 0: the part that would say it is not there.
  uint64_t PlainStepBytes() const;
  uint64_t DraftRoundBytes() const;
  // Op by op, with KV, states and logits; nothing without a target.
  std::optional<Counted> Counts() const;

  InspectOptions options;
};

// `target_dir` may be empty. Never throws for what the files hold.
InspectReport Inspect(const std::string& dir, const std::string& target_dir,
                      const InspectOptions& options = {});

std::string InspectText(const InspectReport& report);
nlohmann::json InspectJson(const InspectReport& report);

}  // namespace warmleg::model
