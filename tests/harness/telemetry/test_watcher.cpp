#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/telemetry/watcher.h"
#include "tests/harness/telemetry/fake_tree.h"

namespace warmleg::telemetry {
namespace {

using ::testing::HasSubstr;
using testing_support::FakeTree;
using testing_support::Shell;
using testing_support::Slurp;

WatchOptions OptionsFor(const FakeTree& tree) {
  WatchOptions o;
  o.interval_ms = 10;
  o.sys_root = tree.Sys();
  o.program = WARMLEG_SAMPLER;
  return o;
}

TEST(Watcher, NotStartedItSaysNothing) {
  Watcher watcher;
  EXPECT_FALSE(watcher.started());
  EXPECT_EQ(watcher.WindowFor(0, 1, {}).samples_all, 0);
  EXPECT_TRUE(watcher.Warnings().empty());
  EXPECT_FALSE(watcher.lost());
  watcher.Stop();
}

TEST(Watcher, ALegHasItsWindow) {
  const FakeTree tree("strix-halo-mid");
  Watcher watcher;
  watcher.Start(OptionsFor(tree));
  EXPECT_EQ(watcher.pci(), "0000:c5:00.0");
  const int64_t begin = MonotonicNs();
  ::usleep(300000);
  const int64_t end = MonotonicNs();
  const record::ClockWindow w = watcher.WindowFor(begin, end, {{"decode", begin, end}});
  EXPECT_GE(w.samples, 3);
  EXPECT_EQ(w.sclk_mhz.p50, 2399);
  EXPECT_EQ(w.top_sclk_mhz, 2900);
  EXPECT_EQ(w.busy_percent.p50, 98);
  EXPECT_EQ(w.perf_level, "auto");
  EXPECT_EQ(w.phases.at("decode").samples, w.samples_all);
  EXPECT_NEAR(*w.energy_j, 104.021 * static_cast<double>(end - begin) * 1e-9, 1e-6);
  ASSERT_TRUE(w.sampler_cpu_share);
  EXPECT_GT(*w.sampler_cpu_share, 0);
  EXPECT_EQ(watcher.Samples(begin, end).size(), static_cast<size_t>(w.samples_all));

  record::Telemetry described;
  watcher.Describe(described);
  EXPECT_EQ(described.device->pci, "0000:c5:00.0");
  EXPECT_EQ(described.sources.at("sclk_mhz"), "sysfs");
  EXPECT_EQ(described.sources.at("throttle"), "gpu_metrics");
  EXPECT_EQ(described.interval_ms, 10);
  EXPECT_FALSE(described.lost);
}

TEST(Watcher, TheSidecarIsWholeAndItsHashIsRight) {
  const FakeTree tree("strix-halo-no-mclk");
  Watcher watcher;
  watcher.Start(OptionsFor(tree));
  const std::string path = tree.Sys() + "/../x.samples.jsonl";
  const std::string early = watcher.WriteSidecar(path);
  ::usleep(100000);
  watcher.Stop();
  const std::string hash = watcher.WriteSidecar(path);
  EXPECT_NE(hash, early);
  EXPECT_THAT(Shell("sha256sum " + path).out, ::testing::StartsWith(hash));
  std::ifstream in(path);
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  const record::Json head = record::ParseStrict(line, "head");
  EXPECT_EQ(head["schema"], "warmleg.samples/1");
  EXPECT_EQ(head["sources"]["sclk_mhz"], "sysfs");
  int64_t before = 0;
  int lines = 0;
  for (; std::getline(in, line); ++lines) {
    const record::Json sample = record::ParseStrict(line, "sample");
    EXPECT_GT(sample["t_ns"].get<int64_t>(), before);
    before = sample["t_ns"].get<int64_t>();
    EXPECT_EQ(sample["sclk_mhz"], 2900.0);
    EXPECT_TRUE(sample["mclk_mhz"].is_null());
    EXPECT_EQ(sample["missing"]["mclk_mhz"], "unsupported");
  }
  EXPECT_GE(lines, 2);
  EXPECT_THROW(watcher.WriteSidecar("/proc/no/x.jsonl"), vt::EnvironmentError);
  EXPECT_THROW(watcher.WriteSidecar(tree.Sys()), vt::EnvironmentError);  // a folder
  EXPECT_EQ(Shell("ls " + tree.Sys() + "/../ | grep -c XXXXXX").out, "0\n");
}

TEST(Watcher, WhichBoard) {
  const FakeTree two("two-gpus");
  WatchOptions options = OptionsFor(two);
  {
    Watcher watcher;
    try {
      watcher.Start(options);
      FAIL() << "two boards and auto";
    } catch (const vt::InputError& e) {
      EXPECT_THAT(e.what(), HasSubstr("0000:03:00.0"));
      EXPECT_THAT(e.what(), HasSubstr("0000:c5:00.0"));
    }
    options.pci = "03:00.0";
    watcher.Start(options);
    EXPECT_EQ(watcher.pci(), "0000:03:00.0");
  }
  for (const char* wrong : {"0000:99:00.0", "rocm:0", ""}) {
    options.pci = wrong;
    Watcher watcher;
    EXPECT_THROW(watcher.Start(options), vt::InputError) << wrong;
  }
  options.sys_root = "/nowhere";
  Watcher watcher;
  EXPECT_THROW(watcher.Start(options), vt::EnvironmentError);
}

TEST(Watcher, DeathsBecomeWarnings) {
  const FakeTree tree("strix-halo-mid");
  WatchOptions options = OptionsFor(tree);
  const std::filesystem::path script = tree.Gpu() / "sampler";
  std::ofstream(script) << "#!/bin/sh\nkill -ABRT $$\n";
  ::chmod(script.c_str(), 0755);
  options.program = script;
  Watcher watcher;
  watcher.Start(options);
  EXPECT_TRUE(watcher.lost());
  EXPECT_TRUE(watcher.rocm_smi_aborted());
  const std::vector<record::Reason> warnings = watcher.Warnings();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_TRUE(record::Has(warnings, record::Code::rocm_smi_aborted));
  EXPECT_TRUE(record::Has(warnings, record::Code::telemetry_lost));
  EXPECT_EQ(watcher.WindowFor(0, MonotonicNs(), {}).samples_all, 0);
  record::Telemetry described;
  watcher.Describe(described);
  EXPECT_THAT(described.lost.value_or(""), HasSubstr("SIGABRT"));
}

}  // namespace
}  // namespace warmleg::telemetry
