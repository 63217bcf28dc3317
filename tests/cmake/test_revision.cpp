#include <string>

#include "gtest/gtest.h"
#include "warmleg_revision.h"

namespace {

TEST(Revision, NamesVersionRevisionAndCompiler) {
  EXPECT_FALSE(std::string(warmleg::kVersion).empty());
  EXPECT_NE(std::string(warmleg::kVersion).find('.'), std::string::npos);
  EXPECT_FALSE(std::string(warmleg::kGitRevision).empty());
  const std::string compiler = warmleg::kCompiler;
  EXPECT_TRUE(compiler.starts_with("GNU ") || compiler.starts_with("Clang ")) << compiler;
  EXPECT_FALSE(std::string(warmleg::kBuildType).empty());
}

}  // namespace
