#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <fstream>
#include <locale>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/store/store.h"
#include "tests/harness/record/full_result.h"

namespace warmleg::store {
namespace {

namespace fs = std::filesystem;
using record::Json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "warmleg-store-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path File(const char* name) const { return folder_ / name; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    return names;
  }
  void Put(const char* name, const std::string& text) const {
    std::ofstream(File(name), std::ios::binary) << text;
  }
  std::string ReadError(const std::string& text) const {
    Put("bad.json", text);
    try {
      ReadResult(File("bad.json"));
    } catch (const vt::InputError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(StoreTest, RoundTrip) {
  WriteResult(File("r.json"), record::FullResult(), false);
  EXPECT_EQ(record::ToJson(ReadResult(File("r.json"))), record::ToJson(record::FullResult()));
  EXPECT_EQ(ReadBytes(File("r.json")).back(), '\n');
  EXPECT_THAT(Names(), ::testing::ElementsAre("r.json"));
}

TEST_F(StoreTest, HashOfTheBytes) {
  Put("abc", "abc");
  EXPECT_EQ(FileSha256(File("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_THROW(FileSha256(File("none")), vt::InputError);
}

TEST_F(StoreTest, ReaderRefusesInOneLine) {
  const std::string good = record::Dump(record::ToJson(record::FullResult()));
  // wherever it was cut: between tokens, in a string, in a literal, in a number
  for (size_t size = 1; size < good.size() - 1; size += 61) {
    EXPECT_THAT(ReadError(good.substr(0, size)), HasSubstr("torn or unfinished")) << size << " bytes";
  }
  EXPECT_THAT(ReadError(good.substr(0, good.size() - 2)), HasSubstr("torn or unfinished"));
  EXPECT_THAT(ReadError(""), HasSubstr("bad.json: line 1: "));
  EXPECT_THAT(ReadError("{\"schema\": \"warmleg.result/1\",\n \"complete\": true,\n \"complete\": false}"),
              HasSubstr("line 3: key \"complete\" stands twice"));
  EXPECT_THAT(ReadError("{}"), HasSubstr("no schema field"));
  EXPECT_THAT(ReadError("[]"), HasSubstr("no schema field"));
  EXPECT_THAT(ReadError("{\"schema\": \"warmleg.result/2\"}"),
              HasSubstr("not one this build reads (warmleg.result/1)"));
  EXPECT_THAT(ReadError("{\"schema\": \"warmleg.trace/1\"}"), HasSubstr("expected warmleg.result/1"));
  EXPECT_THAT(ReadError("{\"schema\": \"warmleg.result/1\"}"),
              HasSubstr("created is missing; complete is missing"));
  for (const char* number : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    std::string text = good;
    const std::string field = "\"load_s\": 1.5";
    text.replace(text.find(field), field.size(), std::string("\"load_s\": ") + number);
    EXPECT_THAT(ReadError(text), ::testing::ContainsRegex("line [0-9]+: ")) << number;
  }
  EXPECT_THROW(ReadResult(File("none.json")), vt::InputError);
  EXPECT_THROW(ReadResult(folder_), vt::InputError);
}

TEST_F(StoreTest, ByteOrderMarkIsDropped) {
  Put("bom.json", "\xEF\xBB\xBF" + record::Dump(record::ToJson(record::FullResult())));
  EXPECT_EQ(ReadResult(File("bom.json")).created, "2026-11-30T15:11:00Z");
}

TEST_F(StoreTest, ExistingFileNeedsForce) {
  WriteAtomically(File("r"), "old", false);
  EXPECT_THROW(WriteAtomically(File("r"), "new", false), vt::InputError);
  EXPECT_EQ(ReadBytes(File("r")), "old");
  WriteAtomically(File("r"), "new", true);
  EXPECT_EQ(ReadBytes(File("r")), "new");
  EXPECT_THAT(Names(), ::testing::ElementsAre("r"));
}

TEST_F(StoreTest, TargetsThatCannotBeWritten) {
  fs::create_directory(File("dir"));
  EXPECT_THROW(WriteAtomically(File("dir"), "x", true), vt::EnvironmentError);
  EXPECT_THROW(WriteAtomically(File("none/r"), "x", false), vt::EnvironmentError);
  Put("file", "x");
  EXPECT_THROW(WriteAtomically(File("file/r"), "x", false), vt::EnvironmentError);
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAre("dir", "file"));
  EXPECT_TRUE(fs::is_empty(File("dir")));
}

TEST_F(StoreTest, ReadOnlyFolder) {
  if (geteuid() == 0) {
    // Root writes anywhere; /proc refuses new files whoever asks.
    EXPECT_THROW(WriteAtomically("/proc/warmleg-test", "x", false), vt::EnvironmentError);
    return;
  }
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(WriteAtomically(File("r"), "x", false), vt::EnvironmentError);
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_TRUE(fs::is_empty(folder_));
}

// A file size limit makes write() fail half way, as a full disk does.
TEST_F(StoreTest, FullDiskLeavesTheOldFile) {
  WriteAtomically(File("r"), "old", false);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      WriteAtomically(File("r"), std::string(1 << 20, 'x'), true);
    } catch (const vt::EnvironmentError&) {
      _exit(7);
    } catch (...) {
      _exit(8);
    }
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(ReadBytes(File("r")), "old");
  EXPECT_THAT(Names(), ::testing::ElementsAre("r"));
}

// Each writer's document is one letter throughout: a mix or a torn file shows at once.
TEST_F(StoreTest, TwoWritersNeverMix) {
  std::vector<pid_t> children;
  for (const char letter : {'a', 'b'}) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        for (int i = 0; i < 100; ++i)
          WriteAtomically(File("r"), std::string(static_cast<size_t>(20000 + i), letter), true);
      } catch (...) {
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (int i = 0; i < 200; ++i) {
    std::error_code none;
    if (!fs::exists(File("r"), none)) continue;
    const std::string text = ReadBytes(File("r"));
    ASSERT_GE(text.size(), 20000U);
    ASSERT_EQ(text.find_first_not_of(text[0]), std::string::npos);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(Names(), ::testing::ElementsAre("r"));
}

TEST_F(StoreTest, OnlyOneOfManyWritersWithoutForceWins) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      try {
        WriteAtomically(File("r"), std::string(1000, static_cast<char>('a' + i)), false);
      } catch (const vt::InputError&) {
        _exit(2);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  int winners = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    winners += WEXITSTATUS(status) == 0;
  }
  EXPECT_EQ(winners, 1);
  EXPECT_THAT(Names(), ::testing::ElementsAre("r"));
}

TEST_F(StoreTest, KilledWriterLeavesOldOrNew) {
  WriteAtomically(File("r"), "old", false);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      while (true) WriteAtomically(File("r"), std::string(100000, 'n'), true);
    }
    usleep(static_cast<useconds_t>(500 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string text = ReadBytes(File("r"));
    ASSERT_TRUE(text == "old" || text == std::string(100000, 'n'));
  }
}

// A left-over of a killed writer with the very name the next one would take is passed over, not fatal.
TEST_F(StoreTest, LeftOverTemporaryFileIsPassedOver) {
  for (int i = 0; i < 60; ++i)
    Put((".r." + std::to_string(getpid()) + "." + std::to_string(i) + ".tmp").c_str(), "junk");
  WriteAtomically(File("r"), "new", false);
  EXPECT_EQ(ReadBytes(File("r")), "new");
}

struct CommaPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_F(StoreTest, SameBytesUnderAnyLocale) {
  record::Result result = record::FullResult();
  result.legs[0].times.decode_s = 1234567.5;
  result.legs[0].counters.committed = 1234567;
  const std::string expected = record::Dump(record::ToJson(result));
  EXPECT_THAT(expected, HasSubstr("1234567.5"));

  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", ""})
    if (setlocale(LC_ALL, name)) break;
  EXPECT_EQ(record::Dump(record::ToJson(result)), expected);
  WriteResult(File("r.json"), result, false);
  EXPECT_EQ(ReadBytes(File("r.json")), expected);
  EXPECT_EQ(ReadResult(File("r.json")).legs[0].times.decode_s, 1234567.5);
  EXPECT_EQ(record::ParseStrict("1.5", "x").get<double>(), 1.5);
  std::locale::global(before);
  setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace warmleg::store
