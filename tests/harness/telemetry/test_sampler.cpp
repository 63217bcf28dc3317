#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "backend/vt/error.h"
#include "harness/telemetry/perf_level.h"
#include "harness/telemetry/sampler_process.h"
#include "tests/harness/telemetry/fake_tree.h"

namespace warmleg::telemetry {
namespace {

using ::testing::HasSubstr;
using testing_support::Eventually;
using testing_support::FakeTree;
using testing_support::Slurp;

#if defined(WARMLEG_ASAN) || defined(WARMLEG_TSAN)
constexpr double kSlower = 10;
#else
constexpr double kSlower = 1;
#endif

const char* const kLevelFile = "power_dpm_force_performance_level";

SamplerOptions OptionsFor(const FakeTree& tree) {
  SamplerOptions o;
  o.interval_ms = 5;
  o.sys_root = tree.Sys();
  o.program = WARMLEG_SAMPLER;
  return o;
}

bool Gone(int pid) { return ::kill(pid, 0) != 0; }

bool SamplesGoOn(const SamplerProcess& process) { return process.WaitForSample(MonotonicNs(), 20000); }

TEST(Sampler, StreamsUntilStopped) {
  const FakeTree tree("strix-halo-steady");
  SamplerProcess process(OptionsFor(tree));
  EXPECT_TRUE(SamplesGoOn(process));
  EXPECT_TRUE(SamplesGoOn(process));
  const int pid = process.pid();
  ASSERT_GT(pid, 0);
  process.Stop();
  EXPECT_TRUE(Gone(pid));
  const SamplerStatus status = process.Status();
  EXPECT_FALSE(status.aborted);
  EXPECT_FALSE(status.lost);
  ASSERT_EQ(status.devices.size(), 1U);
  EXPECT_EQ(status.devices[0].pci, "0000:c5:00.0");
  EXPECT_FALSE(status.library.used);
  EXPECT_THAT(status.library.text, HasSubstr("/sys"));
}

TEST(Sampler, CountsTicksPerBoard) {
  const FakeTree tree("two-gpus");
  SamplerOptions options = OptionsFor(tree);
  options.count = 3;
  std::vector<std::string> seen;
  options.on_sample = [&](const BoardSample& s) { seen.push_back(s.pci); };
  SamplerProcess process(options);
  ASSERT_TRUE(process.WaitForEnd(20000));
  process.Stop();
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "0000:03:00.0"), 3);
}

TEST(Sampler, OneBoardByItsAddress) {
  const FakeTree tree("two-gpus");
  SamplerOptions options = OptionsFor(tree);
  options.count = 1;
  options.pci = "0000:c5:00.0";
  double sclk = 0;
  options.on_sample = [&](const BoardSample& s) { sclk += s.clocks.sclk_mhz.value.value_or(0); };
  SamplerProcess process(options);
  ASSERT_TRUE(process.WaitForEnd(20000));
  process.Stop();
  EXPECT_EQ(sclk, 2900);
  options.pci = "0000:99:00.0";
  SamplerProcess nowhere(options);
  ASSERT_TRUE(nowhere.WaitForEnd(20000));
  EXPECT_TRUE(nowhere.Status().no_device);
  EXPECT_FALSE(nowhere.Status().lost);
}

TEST(Sampler, RestartedOnceThenLost) {
  const FakeTree tree("strix-halo-steady");
  SamplerProcess process(OptionsFor(tree));
  ASSERT_TRUE(SamplesGoOn(process));
  const int first = process.pid();
  ::kill(first, SIGABRT);
  ASSERT_TRUE(Eventually([&] { return process.Status().aborted.has_value(); }));
  ASSERT_TRUE(SamplesGoOn(process));
  EXPECT_EQ(process.Status().aborted, "SIGABRT");
  EXPECT_FALSE(process.Status().lost);
  const int second = process.pid();
  EXPECT_NE(first, second);
  ::kill(second, SIGKILL);
  ASSERT_TRUE(process.WaitForEnd(20000));
  EXPECT_EQ(process.Status().lost, "SIGKILL");
  EXPECT_FALSE(process.Status().running);
  EXPECT_FALSE(process.WaitForSample(MonotonicNs(), 50));
}

TEST(Sampler, AProgramThatTalksNonsenseIsLost) {
  const FakeTree tree("strix-halo-steady");
  const std::filesystem::path script = tree.Gpu() / "sampler";
  std::ofstream(script) << "#!/bin/sh\necho '{\"t_ns\": true}'\necho garbage\nprintf '\\377\\000{'\n"
                           "echo \"it hurts\" >&2\nexit 7\n";
  ::chmod(script.c_str(), 0755);
  SamplerOptions options = OptionsFor(tree);
  options.program = script;
  SamplerProcess process(options);
  ASSERT_TRUE(process.WaitForEnd(20000));
  EXPECT_EQ(process.Status().lost, "exit 7: it hurts");
  EXPECT_EQ(process.Status().samples, 0);
}

TEST(Sampler, AMissingProgramIsSaidAtOnce) {
  const FakeTree tree("strix-halo-steady");
  SamplerOptions options = OptionsFor(tree);
  options.program = tree.Sys() + "/no-such-sampler";
  try {
    const SamplerProcess process(options);
    FAIL() << "started";
  } catch (const vt::EnvironmentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("no-such-sampler: No such file"));
  }
}

TEST(Sampler, WithoutTheLibraryFileItsTwinGoesOn) {
  const FakeTree tree("strix-halo-steady");
  const std::filesystem::path script = tree.Gpu() / "sampler";
  std::ofstream(script)
      << "#!/bin/sh\necho 'librocm_smi64.so.9: cannot open shared object file' >&2\nexit 127\n";
  std::ofstream(script.string() + "-sysfs") << "#!/bin/sh\nexec " << WARMLEG_SAMPLER << " \"$@\"\n";
  for (const char* suffix : {"", "-sysfs"}) ::chmod((script.string() + suffix).c_str(), 0755);
  SamplerOptions options = OptionsFor(tree);
  options.program = script;
  SamplerProcess process(options);
  EXPECT_TRUE(SamplesGoOn(process));
  EXPECT_FALSE(process.Status().aborted);
  EXPECT_FALSE(process.Status().library.used);
  EXPECT_THAT(process.Status().library.text, HasSubstr("librocm_smi64.so.9"));
}

TEST(PerfLevel, KeepNeverWrites) {
  const FakeTree tree("strix-halo-mid");
  const std::filesystem::path file = tree.Gpu() / kLevelFile;
  const auto before = std::filesystem::last_write_time(file);
  {
    SamplerProcess process(OptionsFor(tree));
    ASSERT_TRUE(SamplesGoOn(process));
  }
  EXPECT_EQ(std::filesystem::last_write_time(file), before);
}

TEST(PerfLevel, HighIsSetSeenAndPutBack) {
  const FakeTree tree("strix-halo-mid");
  SamplerOptions options = OptionsFor(tree);
  options.perf_level = PerfLevel::high;
  std::atomic<bool> seen{false};
  options.on_sample = [&](const BoardSample& s) { seen = seen || s.clocks.perf_level.value == "high"; };
  SamplerProcess process(options);
  ASSERT_TRUE(Eventually([&] { return seen.load(); }));
  process.Stop();
  EXPECT_EQ(tree.Read(kLevelFile), "auto\n");
  EXPECT_FALSE(process.Status().perf_level_problem);
}

TEST(PerfLevel, ARestartedSamplerKeepsItAndTheParentPutsItBack) {
  const FakeTree tree("strix-halo-mid");
  SamplerOptions options = OptionsFor(tree);
  options.perf_level = PerfLevel::high;
  SamplerProcess process(options);
  ASSERT_TRUE(SamplesGoOn(process));
  EXPECT_EQ(tree.Read(kLevelFile), "high\n");
  ::kill(process.pid(), SIGKILL);
  ASSERT_TRUE(Eventually([&] { return process.Status().aborted.has_value(); }));
  ASSERT_TRUE(SamplesGoOn(process));
  EXPECT_EQ(tree.Read(kLevelFile), "high\n");
  ::kill(process.pid(), SIGKILL);
  ASSERT_TRUE(process.WaitForEnd(20000));
  EXPECT_EQ(tree.Read(kLevelFile), "auto\n");
}

TEST(PerfLevel, ASamplerAskedToEndPutsItBackItself) {
  const FakeTree tree("strix-halo-mid");
  SamplerOptions options = OptionsFor(tree);
  options.perf_level = PerfLevel::high;
  SamplerProcess process(options);
  ASSERT_TRUE(SamplesGoOn(process));
  ::kill(process.pid(), SIGTERM);
  ASSERT_TRUE(Eventually([&] { return process.Status().aborted.has_value(); }));
  ASSERT_TRUE(SamplesGoOn(process));
  process.Stop();
  EXPECT_EQ(tree.Read(kLevelFile), "auto\n");
}

// The parent is killed at some moment of its start or of its sampling.
TEST(PerfLevel, AKilledParentLeavesNothingBehind) {
  const FakeTree tree("strix-halo-mid");
  for (const int delay_ms : {0, 1, 3, 5, 8, 12, 20, 30, 60, 120}) {
    std::array<int, 2> sampler_pid{};
    ASSERT_EQ(::pipe(sampler_pid.data()), 0);
    const pid_t parent = ::fork();
    if (parent == 0) {
      SamplerOptions options = OptionsFor(tree);
      options.perf_level = PerfLevel::high;
      const SamplerProcess process(options);
      const int pid = process.pid();
      [[maybe_unused]] const ssize_t n = ::write(sampler_pid[1], &pid, sizeof pid);
      while (true) ::pause();
    }
    int pid = -1;
    ASSERT_EQ(::read(sampler_pid[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    ::usleep(static_cast<useconds_t>(delay_ms) * 1000);
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
    EXPECT_TRUE(Eventually([&] { return Gone(pid); })) << delay_ms;
    EXPECT_EQ(tree.Read(kLevelFile), "auto\n") << delay_ms;
    for (const int fd : sampler_pid) ::close(fd);
  }
}

TEST(PerfLevel, AnUnreadableLevelIsOneWarning) {
  const FakeTree tree("strix-halo-mid");
  tree.Remove(kLevelFile);
  SamplerOptions options = OptionsFor(tree);
  options.perf_level = PerfLevel::high;
  SamplerProcess process(options);
  ASSERT_TRUE(SamplesGoOn(process));
  ASSERT_TRUE(process.Status().perf_level_problem);
  EXPECT_THAT(*process.Status().perf_level_problem, HasSubstr(kLevelFile));
}

TEST(PerfLevel, ALevelThatDoesNotStickIsSaid) {
  const FakeTree tree("strix-halo-mid");
  const std::string full = "/dev/full";  // accepts no byte
  EXPECT_THAT(SetPerfLevel(full, "high").value_or(""), HasSubstr("No space"));
  EXPECT_THAT(SetPerfLevel("/dev/null", "high").value_or(""), HasSubstr("reads \"\" after \"high\""));
}

// Peak memory of a run of `count` ticks without pause, in KiB.
long PeakKib(const FakeTree& tree, const char* count) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(1);
#if defined(WARMLEG_ASAN)  // what was freed is kept for a while, up to 256 MB of it
    const char* options = std::getenv("ASAN_OPTIONS");
    ::setenv("ASAN_OPTIONS",
             (std::string(options != nullptr ? options : "") + ":quarantine_size_mb=1").c_str(), 1);
#endif
    ::execl(WARMLEG_SAMPLER, WARMLEG_SAMPLER, "--interval-ms", "0", "--count", count, "--sys-root",
            tree.Sys().c_str(), nullptr);
    ::_exit(1);
  }
  int status = 0;
  rusage usage{};
  ::wait4(pid, &status, 0, &usage);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return usage.ru_maxrss;
}

TEST(SamplerCost, NoGrowthOverAnHourOfTicks) {
  const FakeTree tree("strix-halo-steady");
  const long short_run = PeakKib(tree, "200");
  const long hour = PeakKib(tree, "36000");  // at 100 ms
  EXPECT_LT(hour - short_run, 1024 * kSlower) << short_run << " KiB, then " << hour;
}

TEST(SamplerCost, UnderHalfAPercentAt100Ms) {
  const FakeTree tree("strix-halo-steady");
  SamplerOptions options = OptionsFor(tree);
  options.count = 101;
  std::vector<int64_t> cpu_ns;
  options.on_sample = [&](const BoardSample& s) { cpu_ns.push_back(s.sampler_cpu_ns); };
  SamplerProcess process(options);
  ASSERT_TRUE(process.WaitForEnd(60000));
  process.Stop();
  ASSERT_EQ(cpu_ns.size(), 101U);
  std::vector<int64_t> per_tick;
  for (size_t i = 1; i < cpu_ns.size(); ++i) per_tick.push_back(cpu_ns[i] - cpu_ns[i - 1]);
  std::sort(per_tick.begin(), per_tick.end());
  EXPECT_LT(static_cast<double>(per_tick[50]), 0.005 * 100e6 * kSlower);
}

}  // namespace
}  // namespace warmleg::telemetry
