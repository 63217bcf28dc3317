#include "backend/model/inspect.h"

#include <fmt/core.h>

#include "backend/model/tokenizer.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

void AddPlan(const std::vector<WeightItem>& plan, const TensorMatch& match, ModelReport* report) {
  report->items = SizedItems(plan, match);
  for (const SizedItem& item : report->items) {
    const uint64_t bytes = item.bytes();
    const uint64_t row = bytes / static_cast<uint64_t>(item.shape[0]);
    report->parameters += bytes / static_cast<uint64_t>(vt::SizeOf(item.dtype));
    report->compute_bytes[std::string(vt::Name(item.dtype))] += bytes;
    switch (item.use) {
      case WeightUse::matrix:
        report->step.matrices += bytes;
        break;
      case WeightUse::embedding:
        report->step.rows += row;
        if (report->target.tied_head) report->step.head = bytes;
        break;
      case WeightUse::head:
        report->step.head = bytes;
        break;
      case WeightUse::codebook: {
        // Per drafted row: the predecessors and the successors of K candidates.
        const auto rows =
            static_cast<uint64_t>((report->draft.block_size - 1) * report->draft.selector_top_k);
        report->step.rows += row * rows;
        break;
      }
    }
  }
}

template <class Checked>
void Fill(Checked&& checked, ModelReport* report) {
  report->findings = std::move(checked.findings);
  report->checked = !checked.plan.empty();
  if (!report->checked) return;
  report->tensors_used = checked.match.used;
  report->stored_bytes = checked.match.stored_bytes;
  report->skipped = checked.match.skipped;
  AddPlan(checked.plan, checked.match, report);
}

// A run from token ids needs no tokenizer, so only one that is there and unusable refuses.
void CheckTokenizer(const std::string& dir, ModelReport* report) {
  try {
    const std::optional<std::string> text = ReadSmallFile(dir, "tokenizer.json", uint64_t{256} << 20);
    if (!text) {
      report->findings.shown.emplace_back("target: no tokenizer.json: only --prompt-ids works");
      return;
    }
    const int64_t size = Tokenizer::Parse(*text, "target: tokenizer.json").size();
    report->findings.shown.push_back(fmt::format("target: tokenizer.json has ids below {}", size));
    if (report->checked && size > report->target.vocab)
      report->findings.warned.push_back(
          fmt::format("target: tokenizer.json has ids up to {}, the embedding has {} rows", size - 1,
                      report->target.vocab));
  } catch (const vt::InputError& error) {
    report->findings.wrong.emplace_back(error.what());
  }
}

ModelReport InspectTarget(const std::string& dir, bool config_only) {
  ModelReport report;
  report.dir = dir;
  CheckedTarget checked = config_only ? CheckTargetConfig(dir) : CheckTarget(dir);
  report.target = checked.weights.config;
  Fill(std::move(checked), &report);
  if (!config_only) CheckTokenizer(dir, &report);
  return report;
}

ModelReport InspectDraft(const std::string& dir, const TargetConfig* target, bool config_only) {
  ModelReport report;
  report.dir = dir;
  report.kind = CheckpointKind::draft;
  CheckedDraft checked = config_only ? CheckDraftConfig(dir, target) : CheckDraft(dir, target);
  report.draft = checked.weights.config;
  Fill(std::move(checked), &report);
  return report;
}

// The kind its config states; a directory without a readable one is taken for a target, whose check says why.
CheckpointKind KindOf(const std::string& dir) {
  try {
    if (const std::optional<std::string> text = ReadSmallFile(dir, "config.json")) return KindOfConfig(*text);
  } catch (const vt::InputError&) {
    return CheckpointKind::target;
  }
  return CheckpointKind::target;
}

}  // namespace

bool InspectReport::ok() const { return Reasons().empty(); }

std::vector<std::string> InspectReport::Reasons() const {
  std::vector<std::string> out = model.findings.wrong;
  if (pair) out.insert(out.end(), pair->findings.wrong.begin(), pair->findings.wrong.end());
  return out;
}

const ModelReport* InspectReport::Target() const {
  if (model.kind == CheckpointKind::target) return &model;
  return pair ? &*pair : nullptr;
}

uint64_t InspectReport::PlainStepBytes() const {
  const ModelReport* target = Target();
  if (target == nullptr || !target->checked) return 0;
  return target->step.matrices + target->step.head + target->step.rows;
}

uint64_t InspectReport::DraftRoundBytes() const {
  if (model.kind != CheckpointKind::draft || !model.checked || PlainStepBytes() == 0) return 0;
  const StepBytes& target = Target()->step;
  const auto rows = static_cast<uint64_t>(model.draft.block_size);
  // Both models gather an embedding row for each row of the block; the head is read by both.
  return model.step.matrices + model.step.rows + target.matrices + 2 * target.head + 2 * rows * target.rows;
}

std::optional<Counted> InspectReport::Counts() const {
  const ModelReport* target = Target();
  if (PlainStepBytes() == 0) return std::nullopt;
  const bool draft = model.kind == CheckpointKind::draft && model.checked;
  return Count(target->target, target->items, draft ? &model.draft : nullptr, draft ? &model.items : nullptr,
               options.context, draft ? model.draft.block_size : 1);
}

InspectReport Inspect(const std::string& dir, const std::string& target_dir, const InspectOptions& options) {
  InspectReport report;
  report.options = options;
  const bool bare = options.config_only;
  const CheckpointKind kind = KindOf(dir);
  if (kind == CheckpointKind::target) {
    report.model = InspectTarget(dir, bare);
    if (!target_dir.empty())
      report.model.findings.wrong.push_back(
          fmt::format("{}: a target, but --target was given; the first directory must be the draft", dir));
    return report;
  }
  if (target_dir.empty()) {
    report.model = InspectDraft(dir, nullptr, bare);
    report.model.findings.warned.emplace_back(
        "draft: no --target given, so that it was not checked against its target");
    return report;
  }
  if (KindOf(target_dir) == CheckpointKind::draft) {
    report.model = InspectDraft(dir, nullptr, bare);
    report.model.findings.wrong.push_back(
        fmt::format("{}: a draft where --target expects a target", target_dir));
    return report;
  }
  report.pair = InspectTarget(target_dir, bare);
  report.model = InspectDraft(dir, report.pair->findings.ok() ? &report.pair->target : nullptr, bare);
  return report;
}

}  // namespace warmleg::model
