// The real librocm_smi64 and a fake AMD GPU in /sys: what `warmleg clocks --json` says for every profile.
// Skipped by name where mount namespaces are not allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <vector>

#include "harness/record/json.h"
#include "harness/telemetry/child.h"
#include "tests/harness/telemetry/fake_tree.h"

namespace warmleg::telemetry {
namespace {

using record::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::FakeTree;
using testing_support::kFakeGpu;
using testing_support::NoNamespaces;
using testing_support::Shell;

class FakeGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = NoNamespaces(); !why.empty()) GTEST_SKIP() << why;
  }

  // The objects that `warmleg clocks --json` prints under a profile, stderr left in `errors`.
  std::vector<Json> Clocks(const std::string& profile, const std::string& options = "",
                           const std::string& more = "") {
    const std::string file = ::testing::TempDir() + "/fake_gpu_stderr." + std::to_string(::getpid());
    const auto run = Shell(kFakeGpu + " --profile " + profile + " " + options + " -- " + WARMLEG_PROGRAM +
                           " clocks --json " + more + " 2>" + file);
    errors = testing_support::Slurp(file);
    std::filesystem::remove(file);
    exit_code = run.exit_code;
    std::vector<Json> objects;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) objects.push_back(record::ParseStrict(line, "clocks"));
    return objects;
  }
  // The fields of the only board.
  Json Fields(const std::string& profile, const std::string& options = "") {
    const std::vector<Json> objects = Clocks(profile, options);
    EXPECT_EQ(exit_code, 0) << errors;
    EXPECT_EQ(objects.size(), 1U) << errors;
    return objects.empty() ? Json::object() : objects[0]["fields"];
  }

  std::string errors;
  int exit_code = -1;
};

void ExpectValue(const Json& field, const Json& value, const std::string& source) {
  EXPECT_EQ(field["value"], value);
  EXPECT_EQ(field["source"], source);
  EXPECT_FALSE(field.contains("reason"));
}

void ExpectNull(const Json& field, const std::string& reason) {
  EXPECT_TRUE(field["value"].is_null());
  EXPECT_EQ(field["reason"], reason);
  EXPECT_TRUE(field.contains("source"));
}

bool NotThrottled(const Json& field) {
  return field["value"]["active"].empty() && field["value"]["thermal"] == false;
}

#if WARMLEG_HAVE_ROCM_SMI
const char* const kLibrary = "rocm_smi";
#else
const char* const kLibrary = "sysfs";
#endif

TEST_F(FakeGpu, SteadyInTheAgreedForm) {
  const std::vector<Json> objects = Clocks("strix-halo-steady");
  ASSERT_EQ(objects.size(), 1U) << errors;
  std::vector<std::string> keys;
  for (const auto& [key, value] : objects[0].items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("pci", "name", "fields"));
  EXPECT_EQ(objects[0]["pci"], "0000:c5:00.0");
  const Json& fields = objects[0]["fields"];
  keys.clear();
  for (const auto& [key, value] : fields.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("sclk_mhz", "mclk_mhz", "fclk_mhz", "perf_level", "power_w", "power_cap_w",
                                "temp_c", "busy_percent", "throttle"));
  ExpectValue(fields["sclk_mhz"], 2900.0, kLibrary);
  ExpectValue(fields["mclk_mhz"], 1000.0, kLibrary);
  ExpectValue(fields["fclk_mhz"], 2000.0, kLibrary);
  ExpectValue(fields["perf_level"], "high", kLibrary);
  EXPECT_EQ(fields["power_w"]["value"], 118.016);
  ExpectNull(fields["power_cap_w"], "unsupported");
  EXPECT_EQ(fields["temp_c"]["value"], 71.0);
  ExpectValue(fields["busy_percent"], 98.0, kLibrary);
  EXPECT_EQ(fields["throttle"]["source"], "gpu_metrics");
  EXPECT_TRUE(NotThrottled(fields["throttle"]));
  EXPECT_EQ(errors, "");
}

TEST_F(FakeGpu, BelowTheLowestLevelAndNoStar) {
  const Json fields = Fields("strix-halo-below-min");
  ExpectValue(fields["sclk_mhz"], 49.0, kLibrary);
  ExpectNull(fields["mclk_mhz"], "no_current_level");
  ExpectValue(fields["fclk_mhz"], 2000.0, kLibrary);
}

TEST_F(FakeGpu, BetweenTheLevels) { ExpectValue(Fields("strix-halo-mid")["sclk_mhz"], 2399.0, kLibrary); }

TEST_F(FakeGpu, IdleAndStuck) {
  Json fields = Fields("strix-halo-auto-idle");
  ExpectValue(fields["sclk_mhz"], 600.0, kLibrary);
  ExpectValue(fields["mclk_mhz"], 400.0, kLibrary);
  ExpectValue(fields["perf_level"], "auto", kLibrary);
  fields = Fields("strix-halo-stuck-600");
  ExpectValue(fields["sclk_mhz"], 600.0, kLibrary);
  ExpectValue(fields["busy_percent"], 98.0, kLibrary);
}

TEST_F(FakeGpu, AbsentEmptyAndDenied) {
  ExpectNull(Fields("strix-halo-no-mclk")["mclk_mhz"], "unsupported");
  ExpectNull(Fields("strix-halo-mclk-empty")["mclk_mhz"], "empty");
  const Json denied = Fields("strix-halo-mclk-denied", "--drop-caps");
  ExpectNull(denied["mclk_mhz"], "permission");
  ExpectValue(denied["sclk_mhz"], 2900.0, kLibrary);
}

TEST_F(FakeGpu, LevelsFromTheHighestDown) {
  ExpectValue(Fields("strix-halo-mclk-descending")["mclk_mhz"], 1000.0, kLibrary);
}

TEST_F(FakeGpu, OutOfTreeDriver) { ExpectValue(Fields("strix-halo-dkms")["sclk_mhz"], 2900.0, kLibrary); }

TEST_F(FakeGpu, ACardThatIsNotCard0) {
  ExpectValue(Fields("strix-halo-card1")["sclk_mhz"], 2900.0, kLibrary);
}

TEST_F(FakeGpu, ACardThatTheLibraryDoesNotFind) {
  const Json fields = Fields("strix-halo-card1-headless");
  // Newer libraries find it; then they answer.
  EXPECT_EQ(fields["sclk_mhz"]["value"], 2900.0);
  EXPECT_EQ(fields["mclk_mhz"]["value"], 1000.0);
  EXPECT_EQ(fields["power_w"]["value"], 118.016);
}

TEST_F(FakeGpu, TwoBoardsByAddress) {
  std::vector<Json> objects = Clocks("two-gpus");
  ASSERT_EQ(objects.size(), 2U) << errors;
  EXPECT_EQ(objects[0]["pci"], "0000:03:00.0");
  ExpectValue(objects[0]["fields"]["sclk_mhz"], 2482.0, kLibrary);
  EXPECT_EQ(objects[0]["fields"]["power_cap_w"]["value"], 303.0);
  EXPECT_EQ(objects[1]["pci"], "0000:c5:00.0");
  ExpectValue(objects[1]["fields"]["sclk_mhz"], 2900.0, kLibrary);
  objects = Clocks("two-gpus", "", "--device c5:00.0");
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(objects[0]["pci"], "0000:c5:00.0");
  objects = Clocks("two-gpus", "", "--device 0000:99:00.0");
  EXPECT_TRUE(objects.empty());
  EXPECT_EQ(exit_code, 2);
  EXPECT_THAT(errors, HasSubstr("0000:03:00.0"));
}

TEST_F(FakeGpu, DiscreteCard) {
  Json fields = Fields("rx7900xtx-steady");
  ExpectValue(fields["sclk_mhz"], 2482.0, kLibrary);
  ExpectValue(fields["mclk_mhz"], 1249.0, kLibrary);
  EXPECT_EQ(fields["power_w"]["value"], 288.0);
  EXPECT_EQ(fields["power_cap_w"]["value"], 303.0);
  EXPECT_TRUE(NotThrottled(fields["throttle"]));
  fields = Fields("rx7900xtx-idle");
  ExpectValue(fields["sclk_mhz"], 27.0, kLibrary);
  fields = Fields("rx7900xtx-power-input");
  EXPECT_EQ(fields["power_w"]["value"], 288.0);
}

TEST_F(FakeGpu, DeepSleepAfterTheLibraryAborted) {
  const Json fields = Fields("rx7900xtx-deep-sleep");
  EXPECT_EQ(fields["sclk_mhz"]["value"], 27.0);
  EXPECT_EQ(fields["mclk_mhz"]["value"], 96.0);
#if WARMLEG_HAVE_ROCM_SMI
  if (!errors.empty()) {  // a library built without assertions answers instead
    EXPECT_THAT(errors, HasSubstr("rocm_smi_aborted: SIGABRT"));
    EXPECT_EQ(fields["sclk_mhz"]["source"], "sysfs");
  }
#endif
}

TEST_F(FakeGpu, NoBoardAtAll) {
  const auto run = Shell(std::string(WARMLEG_PROGRAM) + " clocks --json --device 0000:c5:00.0 2>&1");
  if (FakeTree::MachineHasAmdGpu()) GTEST_SKIP() << "this machine has an AMD GPU";
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.out, HasSubstr("no AMD GPU"));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1);
}

TEST_F(FakeGpu, NoRightToSetTheLevelIsOneWarning) {
  const auto run = Shell(kFakeGpu + " --profile strix-halo-mid --drop-caps -- sh -c 'chmod 444 " +
                         "$FAKE_GPU_DIR/gpu0/power_dpm_force_performance_level; " + WARMLEG_SAMPLER +
                         " --count 2 --perf-level high --interval-ms 1; cat " +
                         "$FAKE_GPU_DIR/gpu0/power_dpm_force_performance_level'");
  EXPECT_THAT(run.out, HasSubstr("\"code\":\"perf_level_not_set\""));
  EXPECT_THAT(run.out, HasSubstr("no right to write"));
  EXPECT_EQ(run.out.substr(run.out.size() - 5), "auto\n");
  EXPECT_EQ(run.out.find("perf_level_not_set"), run.out.rfind("perf_level_not_set"));
}

// Reads `warmleg clocks --watch --json` line by line while the test changes the board.
class Watched {
 public:
  explicit Watched(const std::string& profile)
      : tree_(profile),
        child_({"/usr/bin/env", "python3", "tests/fake-gpu/with-fake-gpu", "--dir", tree_.Root(), "--profile",
                profile, "--", WARMLEG_PROGRAM, "clocks", "--watch", "--json", "--interval", "10"}) {
    file_ = ::fdopen(::dup(child_.out()), "r");
  }
  ~Watched() {
    ::kill(child_.pid(), SIGTERM);
    child_.Reap();
    std::fclose(file_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // The next sample of which `is` holds; null after 2000 others or at the end.
  template <typename Is>
  std::optional<Json> Until(Is is) {
    std::array<char, 65536> line;
    for (int i = 0; i < 2000 && std::fgets(line.data(), line.size(), file_) != nullptr; ++i) {
      const Json sample = record::ParseStrict(line.data(), "clocks");
      if (is(sample["fields"])) return sample["fields"];
    }
    return std::nullopt;
  }
  void Set(const std::string& keys) const { tree_.Set(keys); }
  int pid() const { return child_.pid(); }

 private:
  FakeTree tree_;
  Child child_;
  std::FILE* file_ = nullptr;
};

TEST_F(FakeGpu, AnAbortInMidRunCostsNoSample) {
  Watched watched("rx7900xtx-steady");
  ASSERT_TRUE(watched.Until([](const Json& f) { return f["sclk_mhz"]["value"] == 2482.0; }));
  watched.Set("gpu0.sclk=27 gpu0.deep_sleep_format=yes");
  const std::optional<Json> after =
      watched.Until([](const Json& f) { return f["sclk_mhz"]["value"] == 27.0; });
  ASSERT_TRUE(after);
  watched.Set("gpu0.sclk=2000");
  EXPECT_TRUE(watched.Until([](const Json& f) { return f["sclk_mhz"]["value"] == 2000.0; }));
}

TEST_F(FakeGpu, AThrottleThatRisesIsSeenOnce) {
  Watched watched("strix-halo-mid");
  ASSERT_TRUE(watched.Until([](const Json& f) { return NotThrottled(f["throttle"]); }));
  watched.Set("gpu0.throttle=0x20");
  const std::optional<Json> hot = watched.Until([](const Json& f) { return !NotThrottled(f["throttle"]); });
  ASSERT_TRUE(hot);
  EXPECT_EQ((*hot)["throttle"]["value"]["active"], Json::array({"thm_gfx"}));
  EXPECT_TRUE(watched.Until([](const Json& f) { return NotThrottled(f["throttle"]); }));
}

TEST_F(FakeGpu, ThrottleBitsOfADiscreteCardLast) {
  Watched watched("rx7900xtx-steady");
  ASSERT_TRUE(watched.Until([](const Json& f) { return NotThrottled(f["throttle"]); }));
  watched.Set("gpu0.throttle=0x20");
  for (int i = 0; i < 3; ++i) {
    const std::optional<Json> limited =
        watched.Until([](const Json& f) { return f["throttle"]["value"]["power_cap"] == true; });
    ASSERT_TRUE(limited);
    EXPECT_EQ((*limited)["throttle"]["value"]["active"], Json::array({"fppt"}));
    EXPECT_EQ((*limited)["throttle"]["value"]["thermal"], false);
  }
}

TEST_F(FakeGpu, AnyFileMayVanishOrTurnToNoise) {
  Watched watched("strix-halo-mid");
  ASSERT_TRUE(watched.Until([](const Json& f) { return f["sclk_mhz"]["value"] == 2399.0; }));
  watched.Set(
      "gpu0.omit:pp_dpm_sclk=1 gpu0.raw:pp_dpm_mclk='noise\\\\n' gpu0.raw:gpu_metrics=xx "
      "gpu0.power_file=none");
  EXPECT_TRUE(watched.Until([](const Json& f) {
    return f["mclk_mhz"]["value"].is_null() && f["power_w"]["value"].is_null() &&
           f["throttle"]["value"].is_null() && f["busy_percent"]["value"] == 98.0;
  }));
}

}  // namespace
}  // namespace warmleg::telemetry
