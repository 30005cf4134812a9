#include "client/cli/man_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/cli/command_line_parser.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '-' ? "\\-" : std::string(1, c);
  return out;
}

// Every word of `verb` is on the page, as it is in --help.
void ExpectOnPage(const VerbWords& verb, std::vector<std::string> path, const std::string& page) {
  path.push_back(verb.name);
  std::vector<std::string> words = path;
  words.emplace_back("--help");
  const std::string help = ParseCommandLine(words).help;
  EXPECT_NE(help, "") << verb.name;
  for (const OptionWords& option : verb.options) {
    ASSERT_FALSE(option.names.empty());
    for (const std::string& name : option.names) {
      EXPECT_THAT(page, HasSubstr(Escaped(name)));
      EXPECT_THAT(help, HasSubstr(name));
    }
  }
  for (const OperandWords& operand : verb.operands) EXPECT_THAT(help, HasSubstr(operand.name));
  for (const VerbWords& below : verb.verbs) {
    EXPECT_THAT(page, HasSubstr(Escaped(below.name)));
    EXPECT_THAT(help, HasSubstr(below.name));
    ExpectOnPage(below, path, page);
  }
}

TEST(ManPagesTest, EveryVerbHasAPageWithAllItsOptions) {
  const VerbWords program = CommandTree();
  const std::vector<ManPage> pages = ManPages(program);

  ASSERT_EQ(pages.size(), program.verbs.size() + 1);
  EXPECT_EQ(pages[0].file, "tactus.1");
  EXPECT_THAT(pages[0].text, HasSubstr("130 interrupted"));
  for (const OptionWords& option : program.options) {
    EXPECT_THAT(pages[0].text, HasSubstr(Escaped(option.names.back())));
  }
  for (std::size_t i = 0; i < program.verbs.size(); ++i) {
    EXPECT_EQ(pages[i + 1].file, "tactus-" + program.verbs[i].name + ".1");
    EXPECT_THAT(pages[0].text, HasSubstr(Escaped("tactus-" + program.verbs[i].name)));
    ExpectOnPage(program.verbs[i], {}, pages[i + 1].text);
    EXPECT_THAT(pages[i + 1].text, HasSubstr(".SH EXAMPLES\n.nf\ntactus " + program.verbs[i].name));
  }
}

TEST(ManPagesTest, FlagsHaveNoValueAndOptionsHaveOne) {
  const VerbWords program = CommandTree();
  const auto cancel = std::ranges::find(program.verbs, "cancel", &VerbWords::name);
  ASSERT_NE(cancel, program.verbs.end());
  for (const OptionWords& option : cancel->options) {
    if (option.names.back() == "--discard") {
      EXPECT_EQ(option.value, "");
    }
    if (option.names.back() == "--grace") {
      EXPECT_EQ(option.value, "DURATION");
    }
  }
}

TEST(ManPagesTest, GroffRendersThemWithoutAWord) {
  if (std::system("command -v groff >/dev/null") != 0) GTEST_SKIP() << "groff is not installed";
  const TemporaryFolder folder;
  const auto paths = WriteManPages(CommandTree(), folder.path() + "/man1");
  ASSERT_TRUE(paths.ok()) << paths.status();
  const std::string said = folder.path() + "/said";

  for (const std::string& path : *paths) {
    const std::string command = "groff -man -ww -Tutf8 -z " + path + " >> " + said + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << path;
  }

  std::ifstream in(said);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), IsEmpty());
}

}  // namespace
}  // namespace tactus::client
