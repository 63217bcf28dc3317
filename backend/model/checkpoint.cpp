#include "backend/model/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/model/parse_config.h"
#include "backend/model/tensor_match.h"
#include "backend/vt/error.h"

namespace warmleg::model {

namespace {

constexpr uint64_t kCompareBytes = 8u << 20;

// Runs `work`; an InputError becomes lines of the findings.
template <class Work>
void Collect(Findings* findings, const Work& work) {
  try {
    work();
  } catch (const vt::InputError& error) {
    findings->wrong.emplace_back(error.what());
  }
}

std::string NeedConfig(const std::string& dir) {
  std::optional<std::string> text = ReadSmallFile(dir, "config.json");
  if (!text) throw vt::InputError(fmt::format("{}: config.json is not there", dir));
  return std::move(*text);
}

bool SameBytes(const FileTensor& a, const FileTensor& b) {
  if (a.tensor->dtype != b.tensor->dtype || a.tensor->shape != b.tensor->shape) return false;
  const uint64_t bytes = a.tensor->bytes();
  for (uint64_t at = 0; at < bytes; at += kCompareBytes) {
    const uint64_t end = std::min(bytes, at + kCompareBytes);
    const bool same = std::memcmp(a.data() + at, b.data() + at, end - at) == 0;
    a.file->Release(*a.tensor, at, end);
    b.file->Release(*b.tensor, at, end);
    if (!same) return false;
  }
  return true;
}

// The head of a tied model: absent, or the embedding once more. Returns the names it accounts for.
std::vector<std::string> CheckTiedHead(const CheckpointFiles& files, const std::string& prefix,
                                       Findings* findings) {
  const auto head = files.tensors().find("lm_head.weight");
  const auto embedding = files.tensors().find(prefix + "embed_tokens.weight");
  if (head == files.tensors().end() || embedding == files.tensors().end()) return {};
  if (SameBytes(head->second, embedding->second))
    findings->shown.push_back("lm_head.weight equals the embedding, which a tied model reads instead");
  else
    findings->wrong.push_back("tie_word_embeddings is true, but lm_head.weight differs from the embedding");
  return {"lm_head.weight"};
}

double Mean(const FileTensor& t) {
  const auto n = static_cast<size_t>(t.tensor->shape[0]);
  const bool bf16 = t.tensor->dtype == "BF16";
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, t.data() + i * (bf16 ? 2 : 4), bf16 ? 2 : 4);
    if (bf16) bits <<= 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    sum += value;
  }
  return sum / static_cast<double>(n);
}

// A (1 + w) norm stores w, which is centred near 0; a file whose gains were shifted already stores about 1.
void ShowShiftedNorms(const CheckedTarget& t, Findings* findings) {
  int64_t norms = 0, near_one = 0;
  std::string first;
  for (size_t i = 0; i < t.plan.size(); ++i) {
    if (!t.plan[i].one_plus || t.match.parts[i][0].file == nullptr) continue;
    ++norms;
    const double mean = Mean(t.match.parts[i][0]);
    if (!(std::abs(mean - 1) < 0.25)) continue;
    if (near_one++ == 0) first = fmt::format("{} has mean {:.3f}", t.plan[i].parts[0].name, mean);
  }
  if (near_one > 0)
    findings->warned.push_back(
        fmt::format("suspicious norm gains: {} of {} norms with gain 1 + w have a mean near 1 ({}): the file "
                    "may store 1 + w "
                    "already; nothing was shifted",
                    near_one, norms, first));
}

bool HasDFlash2Tensors(const CheckpointFiles& files) {
  return std::any_of(files.tensors().begin(), files.tensors().end(), [](const auto& entry) {
    return entry.first.starts_with("candidate_selector.") || entry.first.find("_conv.") != std::string::npos;
  });
}

}  // namespace

CheckedTarget CheckTarget(const std::string& dir) {
  CheckedTarget out;
  Findings found;
  Collect(&found, [&] {
    const std::string config = NeedConfig(dir);
    const std::optional<std::string> generation = ReadSmallFile(dir, "generation_config.json");
    out.weights.config = ParseTargetConfig(config, generation, &found);
  });
  Collect(&found, [&] { out.files = std::make_unique<CheckpointFiles>(CheckpointFiles::Open(dir, &found)); });
  if (found.ok()) {
    // Both names the architectures use are accepted, whichever form the config has; never both at once.
    std::vector<std::string> expected = {out.weights.config.tensor_prefix};
    expected.emplace_back(expected[0] == "model." ? "model.language_model." : "model.");
    if (const auto prefix = FindPrefix(*out.files, expected, &found)) {
      if (*prefix != expected[0])
        found.warned.push_back(fmt::format("tensor names start with \"{}\", usual for this config is \"{}\"",
                                           *prefix, expected[0]));
      out.prefix = out.weights.config.tensor_prefix = *prefix;
      out.plan = PlanTarget(&out.weights, *prefix);
      std::vector<std::string> head;
      if (out.weights.config.tied_head) head = CheckTiedHead(*out.files, *prefix, &found);
      out.match = MatchTensors(*out.files, out.plan, true, head, &found);
      ShowShiftedNorms(out, &found);
    }
  }
  out.findings.Append(std::move(found), "target: ");
  return out;
}

CheckedDraft CheckDraft(const std::string& dir, const TargetConfig* target) {
  CheckedDraft out;
  Findings found;
  Collect(&found, [&] { out.weights.config = ParseDraftConfig(NeedConfig(dir), target, &found); });
  Collect(&found, [&] { out.files = std::make_unique<CheckpointFiles>(CheckpointFiles::Open(dir, &found)); });
  const bool relabelled = out.weights.config.architecture == "DFlashDraftModel";
  const bool second = out.files != nullptr && HasDFlash2Tensors(*out.files);
  if (relabelled && second)
    found.wrong.push_back(
        "config.json says DFlashDraftModel, but the file has *_conv or candidate_selector tensors: "
        "a DFlash2 checkpoint was relabelled");
  if (found.ok() && !second)
    found.wrong.push_back(
        "config.json says DFlash2DraftModel, but the file has no *_conv or candidate_selector tensor: "
        "this is a DFlash draft");
  if (found.ok() && FindPrefix(*out.files, {""}, &found)) {
    out.plan = PlanDraft(&out.weights);
    out.match = MatchTensors(*out.files, out.plan, false, {}, &found);
  }
  out.findings.Append(std::move(found), "draft: ");
  return out;
}

CheckedTarget CheckTargetConfig(const std::string& dir) {
  CheckedTarget out;
  Findings found;
  Collect(&found, [&] {
    const std::string config = NeedConfig(dir);
    out.weights.config = ParseTargetConfig(config, ReadSmallFile(dir, "generation_config.json"), &found);
  });
  if (found.ok()) {
    out.prefix = out.weights.config.tensor_prefix;
    out.plan = PlanTarget(&out.weights, out.prefix);
  }
  out.findings.Append(std::move(found), "target: ");
  return out;
}

CheckedDraft CheckDraftConfig(const std::string& dir, const TargetConfig* target) {
  CheckedDraft out;
  Findings found;
  Collect(&found, [&] { out.weights.config = ParseDraftConfig(NeedConfig(dir), target, &found); });
  if (found.ok()) out.plan = PlanDraft(&out.weights);
  out.findings.Append(std::move(found), "draft: ");
  return out;
}

}  // namespace warmleg::model
