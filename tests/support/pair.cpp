#include "tests/support/pair.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/backends.h"

namespace warmleg::test {

namespace {

std::string Directory(const std::string& name) {
  if (name == "tiny-code") return "scenarios/checkpoints/tiny-code";
  if (name == "flat-tied") return "tests/data/flat-tied";
  return "tests/data/extra/" + name;
}

vt::Backend& BackendFor(vt::Device device) {
  vt::RegisterBackends();
  return vt::GetBackend(device);
}

}  // namespace

vt::Device TestDevice() {
  const char* text = std::getenv("WARMLEG_TEST_DEVICE");
  return text != nullptr ? vt::ParseDevice(text) : vt::Device{};
}

int64_t Bound(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::min(otherwise, static_cast<int64_t>(std::atoll(text))) : otherwise;
}

Pair::Pair(const std::string& name, vt::Device device)
    : target(model::LoadTarget(Directory(name) + "/target", BackendFor(device))),
      draft(model::LoadDraft(Directory(name) + "/draft", target.config, BackendFor(device))) {}

std::vector<GoldenCase> LoadGoldens(const std::string& name) {
  const std::string path =
      name == "extra" ? "tests/data/extra/extra.json" : "tests/data/goldens/" + name + ".json";
  std::ifstream file(path);
  const nlohmann::json all = nlohmann::json::parse(file);
  std::vector<GoldenCase> cases;
  for (const auto& j : all.at("cases")) {
    GoldenCase c;
    c.pair = j.value("pair", name);
    c.prompt = j.value("prompt", "");
    j.at("prompt_ids").get_to(c.prompt_ids);
    j.at("greedy").get_to(c.greedy);
    j.at("dflash2").get_to(c.dflash2);
    if (j.contains("stop_ids")) j.at("stop_ids").get_to(c.stop_ids);
    c.ignore_eos = c.stop_ids.empty();
    c.max_new_tokens = j.value("max_new_tokens", static_cast<int64_t>(c.greedy.size()));
    j.at("first_logits_top8").at("ids").get_to(c.first_ids);
    j.at("first_logits_top8").at("values").get_to(c.first_values);
    if (j.contains("taps_last_row_l2")) j.at("taps_last_row_l2").get_to(c.taps_l2);
    for (const auto& s : j.at("steps")) {
      c.rounds.push_back(
          {s.at("anchor"), s.at("position"), s.at("drafted"), s.at("accepted"), s.at("emitted")});
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace warmleg::test
