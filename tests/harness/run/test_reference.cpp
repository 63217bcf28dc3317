// The cache of the plain reference: used only when it is whole and of the same key.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "harness/run/reference.h"

namespace warmleg::run {
namespace {

namespace fs = std::filesystem;

class ReferenceCache : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "warmleg-reference-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    key_.weights = "abc";
    key_.prompts = {{1, 2}, {3}};
    key_.max_new_tokens = 4;
    key_.device = "cpu";
    key_.build = "one";
    reference_.outputs = {{{7, 8}, {0.5F, 0.25F}}, {{9}, {1.0F}}};
    ASSERT_EQ(WriteCached(folder_, key_, reference_), std::nullopt);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string folder_;
  ReferenceKey key_;
  Reference reference_;
};

TEST_F(ReferenceCache, ComesBack) {
  const auto back = ReadCached(folder_, key_);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->outputs, reference_.outputs);
  EXPECT_EQ(back->source, "cache");
}

TEST_F(ReferenceCache, AnotherKeyFindsNothing) {
  const auto changed = [&](auto change) {
    ReferenceKey key = key_;
    change(key);
    return ReadCached(folder_, key).has_value();
  };
  EXPECT_FALSE(changed([](ReferenceKey& k) { k.weights = "abd"; }));
  EXPECT_FALSE(changed([](ReferenceKey& k) { k.prompts = {{1}, {2, 3}}; }));
  EXPECT_FALSE(changed([](ReferenceKey& k) { k.max_new_tokens = 5; }));
  EXPECT_FALSE(changed([](ReferenceKey& k) { k.ignore_eos = true; }));
  EXPECT_FALSE(changed([](ReferenceKey& k) { k.precision = "bf16"; }));
  EXPECT_FALSE(changed([](ReferenceKey& k) { k.device = "rocm:0"; }));
  EXPECT_FALSE(changed([](ReferenceKey& k) { k.build = "two"; }));
}

TEST_F(ReferenceCache, ATornOrAlteredFileIsNotUsed) {
  const fs::path file = fs::directory_iterator(folder_)->path();
  std::ifstream in(file);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  in.close();
  const auto used = [&](const std::string& text) {
    std::ofstream(file, std::ios::trunc) << text;
    return ReadCached(folder_, key_).has_value();
  };
  EXPECT_TRUE(used(whole));
  for (size_t length = 0; length + 2 < whole.size(); length += 7) EXPECT_FALSE(used(whole.substr(0, length)));
  std::string altered = whole;
  altered.replace(altered.find("[7,8]"), 5, "[7,9]");
  EXPECT_FALSE(used(altered));
}

TEST_F(ReferenceCache, AFolderThatCannotBeMadeIsNoError) {
  EXPECT_NE(WriteCached("/proc/none", key_, reference_), std::nullopt);
  EXPECT_NE(WriteCached("", key_, reference_), std::nullopt);
  EXPECT_FALSE(ReadCached("", key_).has_value());
}

TEST(Reference, TheBuildIsKnown) { EXPECT_EQ(BuildFingerprint().size(), 64U); }

}  // namespace
}  // namespace warmleg::run
