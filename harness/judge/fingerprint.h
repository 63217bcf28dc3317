// The environment of a result, cut into components that can change one at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/judge/measured.h"
#include "harness/record/fingerprint.h"

namespace warmleg::judge {

// "rocm" (build, loaded, runtime, driver), "cuda" (build, runtime, driver), "libraries", "compiler",
// "warmleg", "kernel", "board", "vbios", "firmware", "cpu", "ram", "settings", "variables",
// "amdgpu_parameters".
std::vector<Component> Components(const record::Environment& environment);

// What differs from run to run by itself: boot, PCI address, page cache, other clients.
std::map<std::string, std::string> Circumstances(const record::Environment& environment);

// Whether the release built with and the one loaded differ in the parts that both name ("7.2" and "7.2.1"
// agree).
bool MixedRocm(const record::Environment& environment);

struct Change {
  std::string field, base, candidate;  // several values of a side are joined by " | "; absent is "-"
};
struct ComponentChange {
  std::string component;
  std::vector<Change> fields;
  bool mixed = false;  // a side has several values itself, so it cannot be a cause
};

// Components whose fields differ between the sides, or inside one.
std::vector<ComponentChange> ComponentChanges(const Files& base, const Files& candidate);

// Order of releases: numbers as numbers, so 7.9 < 7.10; a word marks a pre-release, so 7.10-rc1 < 7.10.
bool ReleaseLess(const std::string& a, const std::string& b);

}  // namespace warmleg::judge
