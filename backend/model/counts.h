// What a plain step and a round must move through memory at the least, op by op, from the configs and the
// sizes of the weights alone: every weight once a sweep, KV, recurrent states, gathered rows, logits.
// Activations of a few rows stay on chip and are not counted. Divided by the read roof this is the floor of
// each op.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/model/checkpoint.h"

namespace warmleg::model {

struct SizedItem {
  std::string name;  // of its first part
  std::vector<int64_t> shape;
  vt::DType dtype = vt::DType::bf16;
  WeightUse use = WeightUse::matrix;

  uint64_t bytes() const;
};
// `match` without parts (configs alone): the dtypes that published checkpoints have.
std::vector<SizedItem> SizedItems(const std::vector<WeightItem>& plan, const TensorMatch& match);

struct CountedOp {
  std::string_view part;  // "step", "draft", "select", "verify", "commit"
  std::string_view what;  // "gate|up"
  int64_t calls = 0;
  uint64_t bytes = 0;  // of all calls
};

struct Counted {
  int64_t context = 0, rows = 0;
  std::vector<CountedOp> ops;

  uint64_t Bytes(std::string_view part) const;  // 0: no such part
  uint64_t RoundBytes() const;                  // draft, select, verify and commit
};

// `draft` null: the plain step alone. rows: of the verify block.
Counted Count(const TargetConfig& target, const std::vector<SizedItem>& target_items,
              const DraftConfig* draft, const std::vector<SizedItem>* draft_items, int64_t context,
              int64_t rows);

// A table; with the roof in GB/s also the floor of each op.
std::string CountsText(const Counted& counted, std::optional<double> roof_gb_s);
nlohmann::json CountsJson(const Counted& counted, std::optional<double> roof_gb_s);

}  // namespace warmleg::model
