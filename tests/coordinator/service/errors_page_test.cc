// docs/errors.md has a section for each reason that the sources give, and for no other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace tactus::service {
namespace {

std::string Content(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void Collect(const std::string& text, const std::regex& pattern, std::set<std::string>& found) {
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
}

TEST(ErrorsPageTest, EveryReasonHasItsSectionAndEverySectionItsReason) {
  const char* const root = std::getenv("TACTUS_SOURCE");
  ASSERT_NE(root, nullptr);
  std::set<std::string> given;
  const std::regex reason(R"re(\.reason = "([A-Z][A-Z0-9_]+)")re");
  for (const std::string folder : {"coordinator", "runtime", "agent/daemon"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(root) / folder)) {
      if (entry.path().extension() == ".cc" || entry.path().extension() == ".h") {
        Collect(Content(entry.path()), reason, given);
      }
    }
  }
  std::set<std::string> explained;
  Collect(Content(std::filesystem::path(root) / "docs/errors.md"),
          std::regex("(?:^|\n)## ([A-Z][A-Z0-9_]+)\n"), explained);

  EXPECT_TRUE(given.contains("JOB_NOT_FOUND"));
  EXPECT_THAT(explained, testing::ContainerEq(given));
}

}  // namespace
}  // namespace tactus::service
