#include "coordinator/page/static_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace tactus::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StaticFilesTest, TheBinaryHasTheFilesAsTheyLieInTheTree) {
  const std::string folder = std::string(std::getenv("TACTUS_SOURCE")) + "/coordinator/page/static";
  ASSERT_FALSE(StaticFiles().empty());
  for (const StaticFile& file : StaticFiles()) {
    std::ifstream stream(folder + file.path);
    std::stringstream content;
    content << stream.rdbuf();
    EXPECT_EQ(file.content, content.str()) << file.path;
  }
}

// What the policy of the server's answers forbids would not run; and nothing is to be asked for.
TEST(StaticFilesTest, NothingIsInlineOrFromElsewhere) {
  for (const StaticFile& file : StaticFiles()) {
    EXPECT_THAT(file.content, Not(HasSubstr("innerHTML"))) << file.path;
    EXPECT_THAT(file.content, Not(HasSubstr("style=\""))) << file.path;
    EXPECT_THAT(file.content, Not(HasSubstr("https://"))) << file.path;
    EXPECT_THAT(file.content, Not(HasSubstr("eval("))) << file.path;
    EXPECT_THAT(file.content, Not(HasSubstr("method:"))) << file.path;
  }
}

}  // namespace
}  // namespace tactus::page
