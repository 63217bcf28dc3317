#include "harness/run/resume.h"

#include <fmt/core.h>

#include <optional>

#include "harness/record/json.h"

namespace warmleg::run {

namespace {

std::string Text(const std::optional<std::string>& value) { return value.value_or("unknown"); }

}  // namespace

std::vector<std::string> WhyNotResume(const record::Result& earlier, const record::Result& now) {
  std::vector<std::string> why;
  const auto differs = [&](const std::string& what, const std::string& then, const std::string& today) {
    if (then != today) why.push_back(fmt::format("{}: '{}' in the file, '{}' now", what, then, today));
  };
  if (earlier.complete) why.emplace_back("the file is complete: nothing is left to run");
  differs("scenario.sha256", record::ScenarioText(earlier, "sha256", ""),
          record::ScenarioText(now, "sha256", ""));
  // An unreadable boot id is no proof of the same boot.
  const auto& then = earlier.environment;
  const auto& today = now.environment;
  if (!then.boot_id || !today.boot_id || *then.boot_id != *today.boot_id) {
    why.push_back(
        fmt::format("boot_id: '{}' in the file, '{}' now", Text(then.boot_id), Text(today.boot_id)));
  }
  differs("build", Text(then.git) + " " + Text(then.compiler), Text(today.git) + " " + Text(today.compiler));
  const record::Json before = record::ToJson(earlier.workload);
  const record::Json after = record::ToJson(now.workload);
  for (const auto& item : after.items()) {
    const bool unknown_yet = item.value().is_null() || item.value() == "" || item.key() == "graph_mode" ||
                             (item.key() == "block_size" && item.value() == 0);
    if (unknown_yet || !before.contains(item.key())) continue;
    differs("workload." + item.key(), before[item.key()].dump(), item.value().dump());
  }
  return why;
}

}  // namespace warmleg::run
