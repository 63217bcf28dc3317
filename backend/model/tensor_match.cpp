#include "backend/model/tensor_match.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace warmleg::model {

namespace {

constexpr std::array<std::string_view, 3> kSkipped = {"model.visual.", "visual.", "mtp."};
constexpr std::array<std::string_view, 2> kScaleEnds = {"_scale_inv", "_scale"};

bool IsFp8(const std::string& dtype) { return dtype.starts_with("F8_"); }

// The weight a scale tensor belongs to; empty: not a scale.
std::string ScaledName(const std::string& name) {
  for (const std::string_view end : kScaleEnds)
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return {};
}

// What stands before "layers.N." or "embed_tokens."; no value for other names.
std::optional<std::string> PrefixOf(const std::string& name) {
  for (size_t at = name.find("layers."); at != std::string::npos; at = name.find("layers.", at + 1)) {
    const bool start = at == 0 || name[at - 1] == '.';
    const size_t digit = at + 7;
    if (start && digit < name.size() && std::isdigit(static_cast<unsigned char>(name[digit])) != 0)
      return name.substr(0, at);
  }
  const size_t at = name.find("embed_tokens.");
  if (at != std::string::npos && (at == 0 || name[at - 1] == '.')) return name.substr(0, at);
  return std::nullopt;
}

std::string Quoted(const std::string& prefix) { return fmt::format("\"{}\"", prefix); }

class Matcher {
 public:
  Matcher(const CheckpointFiles& files, Findings* findings) : files_(files), findings_(findings) {}

  TensorMatch out;

  FileTensor Take(const WeightPart& part) {
    const auto& tensors = files_.tensors();
    auto it = tensors.find(part.name);
    if (!part.other_name.empty()) {
      const auto other = tensors.find(part.other_name);
      if (it != tensors.end() && other != tensors.end()) {
        used_.insert(part.other_name);
        findings_->wrong.push_back(
            fmt::format("{} and {} are both there and mean the same", part.name, part.other_name));
      }
      if (it == tensors.end()) it = other;
    }
    if (it == tensors.end()) {
      const auto unlisted = files_.unlisted().find(part.name);
      missing_.push_back(
          unlisted == files_.unlisted().end()
              ? fmt::format("{} is missing", part.name)
              : fmt::format("{} is in {}, but the index does not list it", part.name, unlisted->second));
      return {};
    }
    used_.insert(it->first);
    return Check(part, it->first, it->second) ? it->second : FileTensor{};
  }

  void Finish(bool skips, const std::vector<std::string>& also_used) {
    AddLimited(&findings_->wrong, missing_, [](const std::string& line) { return line; });
    used_.insert(also_used.begin(), also_used.end());
    std::vector<std::string> unknown;
    for (const auto& [name, found] : files_.tensors()) {
      if (used_.contains(name)) continue;
      const std::string group = skips ? SkippedGroupOf(name) : std::string{};
      if (group.empty()) {
        unknown.push_back(name);
        continue;
      }
      ++out.skipped[group].tensors;
      out.skipped[group].bytes += found.tensor->bytes();
    }
    AddLimited(&findings_->wrong, unknown, [&](const std::string& name) { return UnknownLine(name); });
    if (!files_.unlisted().empty())
      findings_->shown.push_back(fmt::format("{} tensors in the shards are not in the index (first: {})",
                                             files_.unlisted().size(), files_.unlisted().begin()->first));
  }

 private:
  bool Check(const WeightPart& part, const std::string& name, const FileTensor& found) {
    const StoredTensor& t = *found.tensor;
    const size_t before = findings_->wrong.size();
    if (const auto repeated = files_.repeated().find(name); repeated != files_.repeated().end())
      findings_->wrong.push_back(
          fmt::format("{} is in more than one shard: {}", name, fmt::join(repeated->second, ", ")));
    if (t.shape != part.stored)
      findings_->wrong.push_back(fmt::format("{} is {}, expected {}{}", name, ShapeText(t.shape),
                                             ShapeText(part.stored),
                                             part.why.empty() ? "" : fmt::format(" ({})", part.why)));
    if (IsFp8(t.dtype))
      RefuseFp8(name, t.dtype);
    else if (t.dtype != "BF16" && t.dtype != "F32")
      findings_->wrong.push_back(fmt::format("{} is {}, only BF16 and F32 are supported", name, t.dtype));
    ++out.used;
    out.stored_bytes[t.dtype] += t.bytes();
    return findings_->wrong.size() == before;
  }

  void RefuseFp8(const std::string& name, const std::string& dtype) {
    for (const std::string_view end : kScaleEnds) {
      const std::string scale = name + std::string(end);
      if (!files_.tensors().contains(scale)) continue;
      used_.insert(scale);
      findings_->wrong.push_back(
          fmt::format("{} is {} scaled by {}: fp8 weights are not supported, use the bf16 checkpoint", name,
                      dtype, scale));
      return;
    }
    findings_->wrong.push_back(
        fmt::format("{} is {} and its scale ({}_scale_inv) is missing: fp8 weights are not supported", name,
                    dtype, name));
  }

  std::string UnknownLine(const std::string& name) const {
    const std::string scaled = ScaledName(name);
    if (scaled.empty()) return fmt::format("{} is not a tensor of this model", name);
    const auto weight = files_.tensors().find(scaled);
    if (weight == files_.tensors().end())
      return fmt::format("{} is a scale without its weight {}", name, scaled);
    return fmt::format("{} is a scale, but {} is {}", name, scaled, weight->second.tensor->dtype);
  }

  const CheckpointFiles& files_;
  Findings* findings_;
  std::set<std::string> used_;
  std::vector<std::string> missing_;
};

}  // namespace

std::string SkippedGroupOf(const std::string& name) {
  for (const std::string_view group : kSkipped)
    if (name.starts_with(group)) return std::string(group);
  return {};
}

std::optional<std::string> FindPrefix(const CheckpointFiles& files, const std::vector<std::string>& expected,
                                      Findings* findings) {
  std::map<std::string, std::string> found;  // prefix -> one name
  for (const auto& [name, tensor] : files.tensors()) {
    if (!SkippedGroupOf(name).empty()) continue;
    if (const auto prefix = PrefixOf(name)) found.emplace(*prefix, name);
  }
  std::vector<std::string> wanted;
  for (const std::string& prefix : expected) wanted.push_back(Quoted(prefix));
  const std::string wanted_text = fmt::format("{}", fmt::join(wanted, " or "));
  if (found.size() == 1 &&
      std::find(expected.begin(), expected.end(), found.begin()->first) != expected.end())
    return found.begin()->first;
  if (found.empty()) {
    findings->wrong.push_back(
        fmt::format("no tensor is called {}layers.N.*; the {} tensors there are of another model",
                    expected.front(), files.tensors().size()));
  } else if (found.size() == 1) {
    findings->wrong.push_back(fmt::format("tensor names start with {} (as {}), expected {}",
                                          Quoted(found.begin()->first), found.begin()->second, wanted_text));
  } else {
    std::vector<std::string> seen;
    for (const auto& [prefix, name] : found) seen.push_back(fmt::format("{} (as {})", Quoted(prefix), name));
    if (seen.size() > 4) seen.resize(4);
    findings->wrong.push_back(fmt::format("tensor names mix the prefixes {}; expected one of {}",
                                          fmt::join(seen, ", "), wanted_text));
  }
  return std::nullopt;
}

TensorMatch MatchTensors(const CheckpointFiles& files, const std::vector<WeightItem>& plan, bool skips,
                         const std::vector<std::string>& also_used, Findings* findings) {
  Matcher matcher(files, findings);
  for (const WeightItem& item : plan) {
    std::vector<FileTensor>& parts = matcher.out.parts.emplace_back();
    for (const WeightPart& part : item.parts) parts.push_back(matcher.Take(part));
  }
  matcher.Finish(skips, also_used);
  return std::move(matcher.out);
}

vt::DType DeviceDType(const std::vector<FileTensor>& parts) {
  const bool all_bf16 = std::all_of(parts.begin(), parts.end(), [](const FileTensor& p) {
    return p.tensor != nullptr && p.tensor->dtype == "BF16";
  });
  return all_bf16 ? vt::DType::bf16 : vt::DType::f32;
}

}  // namespace warmleg::model
