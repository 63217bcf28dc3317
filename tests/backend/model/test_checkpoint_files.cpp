// What is refused about the files themselves, before any tensor is matched.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "backend/model/checkpoint.h"
#include "tests/support/checkpoint_fixture.h"

namespace warmleg::model {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using warmleg::testing::CheckpointFixture;
using warmleg::testing::kFlatTarget;
using warmleg::testing::ReadFile;
using warmleg::testing::SafetensorsBytes;
using warmleg::testing::TempDir;
using warmleg::testing::WithHeader;
using warmleg::testing::WriteFile;
namespace fs = std::filesystem;

using Lines = std::vector<std::string>;

// What one file of these bytes is refused for.
Lines WrongWith(std::string_view bytes) {
  const TempDir dir;
  WriteFile(dir / "model.safetensors", bytes);
  Lines wrong;
  SafetensorsFile::Open(dir / "model.safetensors", "model.safetensors", &wrong);
  return wrong;
}

const std::string kOne = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";

TEST(Safetensors, AWholeFileIsAccepted) {
  EXPECT_THAT(WrongWith(WithHeader(kOne, "1234")), IsEmpty());
  EXPECT_THAT(WrongWith(WithHeader(kOne + "     ", "1234")), IsEmpty());
  EXPECT_THAT(WrongWith(WithHeader("{}", "")), IsEmpty());
  for (const size_t header : {99994u, 99999u, 100000u})
    EXPECT_THAT(WrongWith(SafetensorsBytes({{"a", "F32", {1}, "1234"}}, header)), IsEmpty());
}

TEST(Safetensors, WhatIsNoFileAtAllIsNamed) {
  std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:";
  pointer += std::string(64, 'a') + "\nsize 12345\n";
  EXPECT_THAT(WrongWith(pointer), ElementsAre(HasSubstr("git-lfs pointer")));
  EXPECT_THAT(WrongWith("<!DOCTYPE html><html></html>"), ElementsAre(HasSubstr("HTML, not weights")));
  EXPECT_THAT(WrongWith("\n <html>"), ElementsAre(HasSubstr("HTML, not weights")));
  for (size_t n = 0; n < 8; ++n)
    EXPECT_THAT(WrongWith(std::string(n, '\1')), ElementsAre(HasSubstr(std::to_string(n) + " bytes")));
}

TEST(Safetensors, TheLengthPrefixIsCheckedBeforeAnythingIsAllocated) {
  EXPECT_THAT(WrongWith(std::string("\x40\x9d\xdf\x07\0\0\0\0", 8) + std::string(100, ' ')),
              ElementsAre(HasSubstr("132095296")));
  EXPECT_THAT(WrongWith(std::string(8, '\xff') + "{}"), ElementsAre(HasSubstr("18446744073709551615")));
  EXPECT_THAT(WrongWith(std::string("\x0a\0\0\0\0\0\0\0{}", 10)), ElementsAre(HasSubstr("short by 8 bytes")));
  EXPECT_THAT(WrongWith(std::string(8, '\0')), ElementsAre(HasSubstr("does not start with '{'")));
  EXPECT_THAT(WrongWith(WithHeader(" " + kOne, "1234")), ElementsAre(HasSubstr("does not start with '{'")));
}

TEST(Safetensors, ShortAndLongFilesSayByHowMuch) {
  EXPECT_THAT(WrongWith(WithHeader(kOne, "1")), ElementsAre(HasSubstr("short by 3 bytes")));
  EXPECT_THAT(WrongWith(WithHeader(kOne, "1234567")), ElementsAre(HasSubstr("3 trailing bytes")));
}

TEST(Safetensors, HeadersThatDoNotAddUp) {
  const auto with = [](const std::string& tensors) {
    return WrongWith(WithHeader("{" + tensors + "}", "12345678"));
  };
  EXPECT_THAT(
      with(
          R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
      ElementsAre(HasSubstr("a is [2] F32 = 8 bytes")));
  EXPECT_THAT(
      with(
          R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]})"),
      Contains(HasSubstr("inside the tensor before it")));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
              ElementsAre(HasSubstr("hole of 4 bytes")));
  EXPECT_THAT(with(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]})"),
              ElementsAre(HasSubstr("backwards")));
  EXPECT_THAT(with(R"("a":{"dtype":"F33","shape":[1],"data_offsets":[0,8]})"), ElementsAre(HasSubstr("F33")));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","shape":[4294967296,4294967296,2],"data_offsets":[0,8]})"),
              ElementsAre(HasSubstr("no byte count")));
  EXPECT_THAT(with(R"("a":{"dtype":"F4","shape":[3],"data_offsets":[0,8]})"),
              ElementsAre(HasSubstr("no byte count")));
  EXPECT_THAT(
      with(
          R"("a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})"),
      ElementsAre(HasSubstr("\"a\" stands in the header twice")));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","dtype":"F64","shape":[1],"data_offsets":[0,8]})"),
              ElementsAre(HasSubstr("dtype twice")));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","shape":[-1],"data_offsets":[0,8]})"),
              ElementsAre(HasSubstr("a has a negative number")));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","shape":[1.5],"data_offsets":[0,8]})"), SizeIs(1));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","shape":[1],"data_offsets":[0,99999999999999999999]})"), SizeIs(1));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","shape":[1],"data_offsets":[0]})"),
              ElementsAre(HasSubstr("data_offsets")));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","shape":[1]})"), SizeIs(1));
  EXPECT_THAT(with(R"("a":5)"), SizeIs(1));
  EXPECT_THAT(with(R"("a":{"dtype":"F64","shape":[[1]],"data_offsets":[0,8]})"), SizeIs(1));
  EXPECT_THAT(with(R"("__metadata__":{"x":1},"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})"),
              ElementsAre(HasSubstr("__metadata__")));
  EXPECT_THAT(WrongWith(WithHeader("{\"a\":", "")), ElementsAre(HasSubstr("not valid JSON")));
}

class Folder : public ::testing::Test {
 protected:
  CheckpointFixture f_ = CheckpointFixture::Read(kFlatTarget);
  TempDir dir_;

  Findings Check() const { return CheckTarget(dir_.path()).findings; }
  static std::string Shard(int i) { return "model-0000" + std::to_string(i) + "-of-00003.safetensors"; }
  void EditIndex(const std::function<void(json&)>& edit) const {
    json index = json::parse(ReadFile(dir_ / "model.safetensors.index.json"));
    edit(index);
    WriteFile(dir_ / "model.safetensors.index.json", index.dump());
  }
};

TEST_F(Folder, EveryShardIsCheckedAndATruncatedOneIsOneLine) {
  f_.Write(dir_.path(), 3);
  EXPECT_THAT(Check().wrong, IsEmpty());
  const std::string bytes = ReadFile(dir_ / Shard(3));
  WriteFile(dir_ / Shard(3), bytes.substr(0, bytes.size() - 24));
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("target: " + Shard(3) + ": short by 24 bytes")));
  WriteFile(dir_ / Shard(1), "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("git-lfs pointer"), HasSubstr("short by 24 bytes")));
}

TEST_F(Folder, AMissingShardIsNamed) {
  f_.Write(dir_.path(), 3);
  fs::remove(dir_ / Shard(2));
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("shard " + Shard(2) + " is not there")));
}

TEST_F(Folder, TheIndexAndTheShardsMustAgree) {
  f_.Write(dir_.path(), 3);
  const std::string first = f_.tensors.front().name;
  EditIndex([&](json& index) { index["weight_map"][first] = Shard(2); });
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr(first + " should be in " + Shard(2))));
  EditIndex([&](json& index) { index["weight_map"].erase(first); });
  EXPECT_THAT(Check().wrong,
              Contains(HasSubstr(first + " is in " + Shard(1) + ", but the index does not list it")));
}

TEST_F(Folder, ATensorInTwoShardsIsRefusedWhenItIsNeeded) {
  f_.tensors.push_back({"mtp.norm.weight", "BF16", {2}, "abcd"});
  f_.Write(dir_.path(), 3);
  std::vector<warmleg::testing::TensorSpec> last;
  for (size_t i = 0; i < f_.tensors.size(); ++i)
    if (i * 3 / f_.tensors.size() == 2) last.push_back(f_.tensors[i]);
  auto twice = last;
  twice.push_back(f_.At("model.embed_tokens.weight"));
  WriteFile(dir_ / Shard(3), SafetensorsBytes(twice));
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("model.embed_tokens.weight is in more than one shard: " +
                                                   Shard(1) + ", " + Shard(3))));
  twice.back() = {"mtp.other.weight", "BF16", {2}, "abcd"};
  WriteFile(dir_ / Shard(3), SafetensorsBytes(twice));
  const Findings unlisted = Check();
  EXPECT_THAT(unlisted.wrong, IsEmpty());
  EXPECT_THAT(unlisted.shown, Contains(HasSubstr("1 tensors in the shards are not in the index")));
}

TEST_F(Folder, IndexValuesStayInTheFolder) {
  f_.Write(dir_.path(), 3);
  for (const std::string value : {"../x.safetensors", "/tmp/x.safetensors", "a/../../x", "..", ""}) {
    EditIndex([&](json& index) { index["weight_map"]["model.norm.weight"] = value; });
    EXPECT_THAT(Check().wrong, Contains(HasSubstr("not a file name beside the index"))) << value;
  }
}

TEST_F(Folder, WhatIsIgnoredIsShown) {
  f_.Write(dir_.path(), 3);
  f_.Write(dir_.path(), 1);
  WriteFile(dir_ / "stray.safetensors", "junk");
  WriteFile(dir_ / "blob.incomplete", "");
  EditIndex([](json& index) { index["metadata"]["total_size"] = 7; });
  const Findings found = Check();
  EXPECT_THAT(found.wrong, IsEmpty());
  for (const std::string line :
       {"stray.safetensors is ignored", "model.safetensors is ignored", "total_size is 7", "blob.incomplete"})
    EXPECT_THAT(found.shown, Contains(HasSubstr(line)));
}

TEST_F(Folder, ACacheLoadsThroughItsLinks) {
  const fs::path blobs = dir_.path() / "blobs", snapshot = dir_.path() / "snapshots" / "abc";
  f_.Write(dir_.path() / "real");
  fs::create_directories(blobs);
  fs::create_directories(snapshot);
  int n = 0;
  for (const auto& entry : fs::directory_iterator(dir_.path() / "real")) {
    const std::string blob = "blob" + std::to_string(n++);
    fs::rename(entry.path(), blobs / blob);
    fs::create_symlink("../../blobs/" + blob, snapshot / entry.path().filename());
  }
  WriteFile(blobs / "part.incomplete", "x");
  const Findings found = CheckTarget(snapshot).findings;
  EXPECT_THAT(found.wrong, IsEmpty());
  EXPECT_THAT(found.shown, Contains(HasSubstr("model.safetensors is a link to blob")));
  EXPECT_THAT(found.shown, Contains(HasSubstr("part.incomplete")));

  const std::string target = fs::read_symlink(snapshot / "model.safetensors").string();
  fs::remove(snapshot / target);
  EXPECT_THAT(
      CheckTarget(snapshot).findings.wrong,
      ElementsAre(AllOf(HasSubstr("model.safetensors"), HasSubstr("dangling link"), HasSubstr(target))));
  fs::remove(snapshot / "model.safetensors");
  fs::create_symlink("model.safetensors", snapshot / "model.safetensors");
  EXPECT_THAT(CheckTarget(snapshot).findings.wrong, ElementsAre(HasSubstr("link loop")));
}

TEST_F(Folder, ConfigsThatAreNoFiles) {
  f_.Write(dir_.path());
  WriteFile(dir_ / "config.json", "");
  EXPECT_THAT(Check().wrong, ElementsAre(AllOf(HasSubstr("config.json"), HasSubstr("0 bytes"))));
  WriteFile(dir_ / "config.json", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("git-lfs pointer")));
  WriteFile(dir_ / "config.json", R"({"hidden_size":1,"hidden_size":2})");
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("twice")));
  WriteFile(dir_ / "config.json", std::string(100000, '['));
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("nested deeper")));
  fs::remove(dir_ / "config.json");
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("config.json is not there")));
  ASSERT_EQ(::mkfifo((dir_ / "config.json").c_str(), 0600), 0);
  EXPECT_THAT(Check().wrong, ElementsAre(HasSubstr("not a regular file")));
}

TEST_F(Folder, AnEmptyFolderSaysWhatIsExpected) {
  EXPECT_THAT(Check().wrong,
              ElementsAre(HasSubstr("config.json is not there"), HasSubstr("neither model.safetensors nor")));
}

}  // namespace
}  // namespace warmleg::model
