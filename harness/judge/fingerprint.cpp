#include "harness/judge/fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <type_traits>

namespace warmleg::judge {
namespace {

class Builder {
 public:
  template <class T>
  void Add(const char* component, const std::string& field, const std::optional<T>& value) {
    if (!value) return;
    if constexpr (std::is_same_v<T, std::string>)
      At(component).fields[field] = *value;
    else
      At(component).fields[field] = fmt::format("{}", *value);
  }
  void Add(const char* component, const std::string& prefix,
           const std::map<std::string, std::string>& values) {
    for (const auto& [key, value] : values) At(component).fields[prefix + key] = value;
  }
  std::vector<Component> Take() { return std::move(components_); }

 private:
  Component& At(const char* name) {
    for (Component& c : components_)
      if (c.name == name) return c;
    components_.push_back({name, {}});
    return components_.back();
  }
  std::vector<Component> components_;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "7.10-rc1" -> "7", "10", "rc", "1". Numbers without leading zeros.
std::vector<std::string> ReleaseParts(const std::string& text) {
  std::vector<std::string> parts;
  const auto is_alpha = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (size_t i = 0; i < text.size();) {
    const bool digit = IsDigit(text[i]);
    if (!digit && !is_alpha(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && (digit ? IsDigit(text[end]) : is_alpha(text[end]))) ++end;
    std::string part = text.substr(i, end - i);
    if (digit) part.erase(0, std::min(part.find_first_not_of('0'), part.size() - 1));
    parts.push_back(std::move(part));
    i = end;
  }
  return parts;
}

std::set<std::string> ValuesOf(const Files& side, const std::string& component, const std::string& field) {
  std::set<std::string> values;
  for (const Measured* m : side) {
    std::string value = "-";
    for (const Component& c : m->components) {
      if (c.name != component) continue;
      if (const auto it = c.fields.find(field); it != c.fields.end()) value = it->second;
    }
    values.insert(value);
  }
  return values;
}

}  // namespace

std::vector<Component> Components(const record::Environment& e) {
  Builder out;
  if (e.rocm) {
    out.Add("rocm", "rocm.build", e.rocm->build);
    out.Add("rocm", "rocm.loaded", e.rocm->loaded);
    out.Add("rocm", "rocm.runtime", e.rocm->runtime);
    out.Add("rocm", "rocm.driver", e.rocm->driver);
  }
  if (e.cuda) {
    out.Add("cuda", "cuda.build", e.cuda->build);
    out.Add("cuda", "cuda.runtime", e.cuda->runtime);
    out.Add("cuda", "cuda.driver", e.cuda->driver);
  }
  // The same build of a library in another folder is the same library.
  for (const record::Library& l : e.libraries) {
    const std::string name = l.soname ? *l.soname : l.path.substr(l.path.rfind('/') + 1);
    out.Add("libraries", name, std::optional(l.build_id ? *l.build_id : l.path));
  }
  out.Add("compiler", "compiler", e.compiler);
  out.Add("warmleg", "git", e.git);
  out.Add("kernel", "kernel", e.kernel);
  if (e.gpu) {
    const record::Gpu& gpu = *e.gpu;
    out.Add("board", "gpu.name", gpu.name), out.Add("board", "gpu.gfx", gpu.gfx),
        out.Add("board", "gpu.cu", gpu.cu);
    out.Add("board", "gpu.integrated", gpu.integrated), out.Add("board", "gpu.vram_bytes", gpu.vram_bytes);
    out.Add("vbios", "gpu.vbios", gpu.vbios);
    out.Add("firmware", "gpu.firmware.", gpu.firmware);
  }
  out.Add("cpu", "cpu", e.cpu);
  out.Add("ram", "ram_bytes", e.ram_bytes);
  out.Add("settings", "platform_profile", e.platform_profile);
  out.Add("settings", "tuned_profile", e.tuned_profile);
  out.Add("settings", "power_supply", e.power_supply);
  out.Add("settings", "cpu_governor", e.cpu_governor);
  out.Add("variables", "", e.variables);
  out.Add("amdgpu_parameters", "", e.amdgpu_parameters);
  return out.Take();
}

std::map<std::string, std::string> Circumstances(const record::Environment& e) {
  std::map<std::string, std::string> out;
  if (e.boot_id) out["boot_id"] = *e.boot_id;
  if (e.gpu && e.gpu->pci) out["gpu.pci"] = *e.gpu->pci;
  if (e.cached_bytes) out["cached_bytes"] = fmt::format("{}", *e.cached_bytes);
  if (e.other_clients) out["other_clients"] = fmt::format("{}", *e.other_clients);
  return out;
}

bool MixedRocm(const record::Environment& e) {
  if (!e.rocm || !e.rocm->build || !e.rocm->loaded) return false;
  const auto build = ReleaseParts(*e.rocm->build);
  const auto loaded = ReleaseParts(*e.rocm->loaded);
  return !std::equal(build.begin(),
                     build.begin() + static_cast<std::ptrdiff_t>(std::min(build.size(), loaded.size())),
                     loaded.begin());
}

namespace {

const std::set<std::string> kFindsRocm = {"LD_LIBRARY_PATH", "ROCM_PATH", "HIP_PATH"};

// Moves those fields of a component that belong to a changed release beside it.
void JoinToRocm(const char* component, bool (*belongs)(const Change&),
                std::vector<ComponentChange>& changes) {
  const auto is = [](const char* name) {
    return [name](const ComponentChange& c) { return c.component == name; };
  };
  const auto rocm = std::find_if(changes.begin(), changes.end(), is("rocm"));
  const auto other = std::find_if(changes.begin(), changes.end(), is(component));
  if (rocm == changes.end() || other == changes.end()) return;
  for (const Change& field : other->fields)
    if (belongs(field)) rocm->fields.push_back(field);
  rocm->mixed = rocm->mixed || other->mixed;
  std::erase_if(other->fields, belongs);
  if (other->fields.empty()) changes.erase(other);
}

}  // namespace

std::vector<ComponentChange> ComponentChanges(const Files& base, const Files& candidate) {
  std::vector<std::pair<std::string, std::set<std::string>>> names;  // in the order of the files
  for (const auto* side : {&base, &candidate})
    for (const Measured* m : *side)
      for (const Component& c : m->components) {
        auto it = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.first == c.name; });
        if (it == names.end()) it = names.insert(names.end(), {c.name, {}});
        for (const auto& [field, value] : c.fields) it->second.insert(field);
      }
  std::vector<ComponentChange> changes;
  for (const auto& [component, fields] : names) {
    ComponentChange change{.component = component, .fields = {}, .mixed = false};
    for (const std::string& field : fields) {
      const auto a = ValuesOf(base, component, field);
      const auto b = ValuesOf(candidate, component, field);
      if (a == b && a.size() == 1) continue;
      change.fields.push_back(
          {field, fmt::format("{}", fmt::join(a, " | ")), fmt::format("{}", fmt::join(b, " | "))});
      change.mixed = change.mixed || a.size() > 1 || b.size() > 1;
    }
    if (!change.fields.empty()) changes.push_back(std::move(change));
  }
  // A release brings its own libraries and is found by variables: they are no second change beside it.
  JoinToRocm(
      "libraries", [](const Change&) { return true; }, changes);
  JoinToRocm(
      "variables", [](const Change& c) { return kFindsRocm.contains(c.field); }, changes);
  return changes;
}

bool ReleaseLess(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& part) { return IsDigit(part.front()); };
  const auto x = ReleaseParts(a);
  const auto y = ReleaseParts(b);
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i] == y[i]) continue;
    if (number(x[i]) != number(y[i])) return !number(x[i]);
    if (number(x[i]) && x[i].size() != y[i].size()) return x[i].size() < y[i].size();
    return x[i] < y[i];
  }
  if (x.size() == y.size()) return false;
  const bool longer_is_pre_release = !number((x.size() < y.size() ? y : x)[std::min(x.size(), y.size())]);
  return (x.size() < y.size()) != longer_is_pre_release;
}

}  // namespace warmleg::judge
