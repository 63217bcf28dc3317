#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/telemetry/board_reader.h"
#include "harness/telemetry/sysfs.h"
#include "tests/harness/telemetry/fake_tree.h"

namespace warmleg::telemetry {
namespace {

using testing_support::FakeTree;

// Answers what a test puts in.
class StubLibrary : public ClockLibrary {
 public:
  explicit StubLibrary(std::string pci) : devices_{std::move(pci)} {}
  const std::vector<std::string>& Devices() const override { return devices_; }
  LibraryReading Read(size_t) override { return reading; }
  LibraryClock ReadFclk(size_t) override {
    ++fclk_reads;
    return fclk;
  }
  std::string File() const override { return "stub"; }
  std::string Soname() const override { return "stub"; }
  std::string Version() const override { return "0"; }
  LibraryReading reading;
  LibraryClock fclk;
  int fclk_reads = 0;

 private:
  std::vector<std::string> devices_;
};

BoardSample ReadOnce(const FakeTree& tree, ClockLibrary* library = nullptr) {
  const std::vector<SysfsBoard> boards = FindBoards(tree.Sys());
  EXPECT_EQ(boards.size(), 1U);
  return BoardReader(boards.at(0), library, tree.Sys()).Read(7);
}

void ExpectNull(const Number& n, Missing why) {
  EXPECT_FALSE(n.value);
  EXPECT_EQ(n.missing, why) << record::Name(n.missing);
}

TEST(BoardReader, FilesAloneAnswer) {
  const FakeTree tree("strix-halo-card1-headless");
  const BoardSample s = ReadOnce(tree);
  EXPECT_EQ(s.pci, "0000:c5:00.0");
  EXPECT_EQ(s.clocks.monotonic_ns, 7);
  EXPECT_EQ(s.clocks.sclk_mhz.value, 2900);
  EXPECT_EQ(s.clocks.sclk_mhz.source, Source::sysfs);
  EXPECT_EQ(s.clocks.top_sclk_mhz.value, 2900);
  EXPECT_EQ(s.clocks.power_w.value, 118.016);
  EXPECT_EQ(s.clocks.power_w.source, Source::hwmon);
  EXPECT_EQ(s.clocks.perf_level.value, "high");
  EXPECT_EQ(s.clocks.temp_c.value, 71);
  ExpectNull(s.clocks.power_cap_w, Missing::unsupported);
  EXPECT_EQ(s.average_sclk_mhz.value, 2900);
  EXPECT_EQ(s.average_sclk_mhz.source, Source::gpu_metrics);
}

TEST(BoardReader, TheFabricClockIsReadOnceASecond) {
  const FakeTree tree("strix-halo-card1-headless");
  StubLibrary library("0000:c5:00.0");
  BoardReader reader(FindBoards(tree.Sys()).at(0), &library, tree.Sys());
  constexpr int64_t kTick = 100'000'000;
  for (int64_t tick = 1; tick <= 21; ++tick) {
    library.fclk.mhz = Value(static_cast<double>(tick), Source::rocm_smi);
    EXPECT_EQ(reader.Read(tick * kTick).clocks.fclk_mhz.value, (tick - 1) / 10 * 10 + 1);
  }
  EXPECT_EQ(library.fclk_reads, 3);
}

TEST(BoardReader, AnAverageNeverStandsInForACurrentClock) {
  const FakeTree tree("strix-halo-steady");
  for (const char* file : {"pp_dpm_sclk", "pp_dpm_mclk", "pp_dpm_fclk", "hwmon"}) tree.Remove(file);
  const BoardSample s = ReadOnce(tree);
  ExpectNull(s.clocks.sclk_mhz, Missing::unsupported);
  ExpectNull(s.clocks.mclk_mhz, Missing::unsupported);
  ExpectNull(s.clocks.fclk_mhz, Missing::unsupported);
  EXPECT_EQ(s.average_sclk_mhz.value, 2900);
  EXPECT_EQ(s.clocks.power_w.source, Source::gpu_metrics);  // power may be an average
  EXPECT_EQ(s.clocks.power_w.value, 118.016);
  EXPECT_EQ(s.clocks.temp_c.source, Source::gpu_metrics);
}

TEST(BoardReader, ACurrentClockOfFormat1MayStandIn) {
  const FakeTree tree("rx7900xtx-steady");
  for (const char* file : {"pp_dpm_sclk", "hwmon"}) tree.Remove(file);
  const BoardSample s = ReadOnce(tree);
  EXPECT_EQ(s.clocks.sclk_mhz.value, 2482);
  EXPECT_EQ(s.clocks.sclk_mhz.source, Source::gpu_metrics);
}

TEST(BoardReader, TheLibraryComesFirstAndItsGapsAreFilled) {
  const FakeTree tree("strix-halo-steady");
  StubLibrary library("0000:c5:00.0");
  library.reading.sclk.mhz = Value(2111.0, Source::rocm_smi);
  library.reading.sclk.top_mhz = Value(2899.0, Source::rocm_smi);
  library.reading.mclk.mhz = Null(Missing::unsupported, Source::rocm_smi);
  BoardSample s = ReadOnce(tree, &library);
  EXPECT_EQ(s.clocks.sclk_mhz.value, 2111);
  EXPECT_EQ(s.clocks.top_sclk_mhz.value, 2899);
  EXPECT_EQ(s.clocks.mclk_mhz.value, 1000);
  EXPECT_EQ(s.clocks.mclk_mhz.source, Source::sysfs);
  StubLibrary other("0000:03:00.0");  // the library's first device is another board
  other.reading.sclk.mhz = Value(1.0, Source::rocm_smi);
  s = ReadOnce(tree, &other);
  EXPECT_EQ(s.clocks.sclk_mhz.value, 2900);
}

TEST(BoardReader, TwoMarkedLevelsAreAmbiguousWhateverTheLibrarySays) {
  const FakeTree tree("strix-halo-steady");
  tree.Write("pp_dpm_mclk", "0: 400Mhz *\n1: 1000Mhz *\n");
  StubLibrary library("0000:c5:00.0");
  library.reading.mclk.mhz = Value(400.0, Source::rocm_smi);
  ExpectNull(ReadOnce(tree, &library).clocks.mclk_mhz, Missing::ambiguous);
}

TEST(BoardReader, AnEmptyBusyFileIsNotIdle) {
  const FakeTree tree("strix-halo-steady");
  tree.Write("gpu_busy_percent", "");
  StubLibrary library("0000:c5:00.0");
  library.reading.busy_percent = Value(0.0, Source::rocm_smi);  // what 5.2.3 makes of it
  EXPECT_EQ(ReadOnce(tree, &library).clocks.busy_percent.source, Source::gpu_metrics);
  tree.Remove("gpu_metrics");
  ExpectNull(ReadOnce(tree, &library).clocks.busy_percent, Missing::empty);
  tree.Write("gpu_busy_percent", "0\n");
  EXPECT_EQ(ReadOnce(tree, &library).clocks.busy_percent.value, 0);
}

TEST(BoardReader, ValuesThatAreNotValues) {
  const FakeTree tree("strix-halo-steady");
  tree.Remove("gpu_metrics");
  tree.Write("gpu_busy_percent", "65535\n");
  ExpectNull(ReadOnce(tree).clocks.busy_percent, Missing::sentinel_value);
  tree.Write("gpu_busy_percent", "101\n");
  ExpectNull(ReadOnce(tree).clocks.busy_percent, Missing::unit_suspect);
  tree.Write("gpu_busy_percent", "98\n");
  tree.Write("hwmon/hwmon3/power1_average", "118016\n");  // milliwatts, at 98 % busy
  ExpectNull(ReadOnce(tree).clocks.power_w, Missing::unit_suspect);
  tree.Write("hwmon/hwmon3/power1_average", "not a number\n");
  ExpectNull(ReadOnce(tree).clocks.power_w, Missing::error);
  tree.Write("hwmon/hwmon3/temp1_input", "71000000\n");
  ExpectNull(ReadOnce(tree).clocks.temp_c, Missing::unit_suspect);
  tree.Write("pp_dpm_mclk", "0: 65535Mhz *\n");
  ExpectNull(ReadOnce(tree).clocks.mclk_mhz, Missing::sentinel_value);
}

TEST(BoardReader, MoreThanAKilowattOnAnApuIsAnotherUnit) {
  const FakeTree tree("strix-halo-steady");
  tree.Write("hwmon/hwmon3/power1_average", "118016000000\n");
  const BoardSample s = ReadOnce(tree);
  EXPECT_EQ(s.clocks.power_w.source, Source::gpu_metrics);  // the next source is in its unit
  EXPECT_EQ(s.clocks.power_w.value, 118.016);
}

TEST(BoardReader, ASuspendedBoardIsNotWoken) {
  const FakeTree tree("strix-halo-steady");
  tree.Write("power/runtime_status", "suspended\n");
  StubLibrary library("0000:c5:00.0");
  library.reading.sclk.mhz = Value(2111.0, Source::rocm_smi);
  BoardSample s = ReadOnce(tree, &library);
  EXPECT_TRUE(s.suspended);
  ExpectNull(s.clocks.sclk_mhz, Missing::empty);
  ExpectNull(s.clocks.power_w, Missing::empty);
  EXPECT_FALSE(s.clocks.throttle.value);
  tree.Write("power/runtime_status", "active\n");
  EXPECT_EQ(ReadOnce(tree, &library).clocks.sclk_mhz.value, 2111);
}

TEST(BoardReader, ResidencyThatRoseIsThrottling) {
  const FakeTree tree("strix-halo-steady");
  tree.Set("gpu0.throttle=0x20");  // thm_gfx, before the reader looks for the first time
  const std::vector<SysfsBoard> boards = FindBoards(tree.Sys());
  BoardReader reader(boards.at(0), nullptr, tree.Sys());
  EXPECT_THAT(reader.Read(1).clocks.throttle.value->active, ::testing::IsEmpty());
  tree.Set("gpu0.throttle=0x22");  // and fppt
  const BoardSample s = reader.Read(2);
  EXPECT_THAT(s.clocks.throttle.value->active, ::testing::ElementsAre("fppt"));
  EXPECT_TRUE(s.clocks.throttle.value->power_cap);
  EXPECT_FALSE(s.clocks.throttle.value->thermal);
  tree.Set("gpu0.throttle=0");
  EXPECT_THAT(reader.Read(3).clocks.throttle.value->active, ::testing::IsEmpty());
  tree.Set("gpu0.throttle=0x20");
  EXPECT_TRUE(reader.Read(4).clocks.throttle.value->thermal);
}

TEST(BoardReader, AnyBytesInAnyFile) {
  const FakeTree tree("rx7900xtx-steady");
  const std::string noise("\xff\x00\n:*S: 0xMhz\n-1\n", 16);
  for (const char* file :
       {"pp_dpm_sclk", "pp_dpm_mclk", "pp_dpm_fclk", "gpu_busy_percent", "gpu_metrics",
        "hwmon/hwmon3/power1_average", "hwmon/hwmon3/temp1_input", "hwmon/hwmon3/temp1_label",
        "hwmon/hwmon3/freq1_input", "hwmon/hwmon3/power1_cap"}) {
    tree.Write(file, noise);
  }
  const BoardSample s = ReadOnce(tree);
  EXPECT_FALSE(s.clocks.sclk_mhz.value);
  EXPECT_FALSE(s.clocks.power_w.value);
  tree.Remove("pp_dpm_sclk");
  std::filesystem::create_directory(tree.Gpu() / "pp_dpm_sclk");  // a folder where a file should be
  ExpectNull(ReadOnce(tree).clocks.sclk_mhz, Missing::error);
}

TEST(Sample, SurvivesThePipe) {
  const FakeTree tree("rx7900xtx-steady");
  tree.Write("pp_dpm_mclk", "0: 96Mhz\n");
  tree.Write("hwmon/hwmon3/freq2_label", "other\n");
  tree.Write("gpu_metrics", "");
  BoardSample s = ReadOnce(tree);
  s.sampler_cpu_ns = 12345;
  const std::optional<BoardSample> back = ParseSample(record::Json::parse(SampleJson(s).dump()));
  ASSERT_TRUE(back);
  EXPECT_EQ(SampleJson(*back).dump(), SampleJson(s).dump());
  EXPECT_EQ(back->clocks.mclk_mhz.missing, Missing::no_current_level);
  EXPECT_FALSE(ParseSample(
      record::Json::parse(R"({"t_ns":1,"pci":"x","cpu_ns":1,"fields":{"sclk_mhz":5},"more":{}})")));
  EXPECT_FALSE(ParseSample(record::Json::parse("[]")));
  EXPECT_FALSE(ParseSample(record::Json::parse("{}")));
}

TEST(Sysfs, PciAddressesHaveOneSpelling) {
  EXPECT_EQ(NormalisePci("0000:C5:00.0"), "0000:c5:00.0");
  EXPECT_EQ(NormalisePci("c5:00.0"), "0000:c5:00.0");
  EXPECT_EQ(NormalisePci("pci:10000:e1:1f.7"), "10000:e1:1f.7");
  for (const char* bad : {"", "rocm:0", "0", "c5:00", "0000:c5:20.0", "0000:c5:00.8", "0000:100:00.0",
                          "0000:c5:00.0 ", "x:0000:c5:00.0", "::."}) {
    EXPECT_FALSE(NormalisePci(bad)) << bad;
  }
}

TEST(Sysfs, BoardsByAddressWhateverTheCardNumber) {
  const FakeTree tree("two-gpus");
  const std::vector<SysfsBoard> boards = FindBoards(tree.Sys());
  ASSERT_EQ(boards.size(), 2U);
  EXPECT_EQ(boards[0].pci, "0000:03:00.0");
  EXPECT_EQ(boards[1].pci, "0000:c5:00.0");
  EXPECT_EQ(boards[1].card, 1);
  EXPECT_EQ(boards[1].render_minor, 129);
  tree.Write("vendor", "0x10de\n");
  EXPECT_EQ(FindBoards(tree.Sys()).size(), 1U);
  EXPECT_TRUE(FindBoards(tree.Sys() + "/nowhere").empty());
}

}  // namespace
}  // namespace warmleg::telemetry
