#include "client/cli/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "client/cli/command_line_parser.h"
#include "client/cli/command_tree.h"

namespace tactus::client {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// As a shell does it, with no more than the examples use: quotes, and > FILE at the end.
std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words = {""};
  bool quoted = false;
  for (const char c : line.substr(0, line.find(" > "))) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  EXPECT_FALSE(quoted) << line;
  return words;
}

std::string HelpOf(const std::vector<std::string>& verb) {
  std::vector<std::string> words = verb;
  words.emplace_back("--help");
  return ParseCommandLine(words).help;
}

TEST(ExamplesTest, EveryExampleIsACommandLine) {
  for (const Example& example : AllExamples()) {
    std::vector<std::string> words = WordsOf(example.line);
    ASSERT_EQ(words.front(), "tactus") << example.line;
    words.erase(words.begin());

    const ParsedCommandLine parsed = ParseCommandLine(words);

    EXPECT_EQ(parsed.error, "") << example.line;
    EXPECT_NE(parsed.verb, nullptr) << example.line;
  }
}

TEST(ExamplesTest, EveryVerbsHelpEndsWithOneToThree) {
  for (const VerbWords& verb : CommandTree().verbs) {
    const auto lines = std::count(verb.examples.begin(), verb.examples.end(), '\n');
    EXPECT_GE(lines, 1) << verb.name;
    EXPECT_LE(lines, 3) << verb.name;
    const std::string help = HelpOf({verb.name});
    const std::size_t examples = help.find("Examples:\n  tactus " + verb.name);
    ASSERT_NE(examples, std::string::npos) << verb.name;
    EXPECT_EQ(std::count(help.begin() + static_cast<std::ptrdiff_t>(examples), help.end(), '\n'),
              lines + 2)
        << help;
  }
  EXPECT_THAT(HelpOf({}), Not(HasSubstr("Examples:")));
}

TEST(ExamplesTest, ANounHasItsOwnOrThoseOfItsVerb) {
  EXPECT_EQ(ExamplesOf("get validations"),
            "tactus get validations shakespeare-1  # the curve of the validation loss\n");
  EXPECT_EQ(ExamplesOf("get rounds"), ExamplesOf("get"));
  EXPECT_THAT(ExamplesOf("delete"), HasSubstr("delete shakespeare-1"));
  EXPECT_THAT(ExamplesOf("delete"), HasSubstr("tactus delete node node-3"));
  EXPECT_THAT(HelpOf({"describe", "node"}),
              EndsWith("Examples:\n  tactus describe node node-3\n\n"));
}

}  // namespace
}  // namespace tactus::client
