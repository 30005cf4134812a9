#include "client/text/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::client {
namespace {

TEST(TextTest, CountsHaveThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
}

TEST(TextTest, NounsFollowTheirCounts) {
  EXPECT_EQ(CountOf(0, "job"), "0 jobs");
  EXPECT_EQ(CountOf(1, "job"), "1 job");
  EXPECT_EQ(CountOf(2000, "blob"), "2,000 blobs");
}

TEST(TextTest, RatesHaveThreeDigitsAtLeast) {
  EXPECT_EQ(FormatRate(0), "0.00");
  EXPECT_EQ(FormatRate(3.07), "3.07");
  EXPECT_EQ(FormatRate(86.42), "86.4");
  EXPECT_EQ(FormatRate(1204.4), "1,204");
  EXPECT_EQ(FormatRate(std::nan("")), "-");
  EXPECT_EQ(FormatRate(INFINITY), "-");
}

TEST(TextTest, RatiosArePercent) {
  EXPECT_EQ(FormatPercent(0.4512), "45.1 %");
  EXPECT_EQ(FormatPercent(std::nan("")), "-");
}

TEST(TextTest, SpansUseTheLargestTwoUnits) {
  EXPECT_EQ(FormatSpan(Seconds(0.84)), "0.8s");
  EXPECT_EQ(FormatSpan(Seconds(12)), "12s");
  EXPECT_EQ(FormatSpan(Seconds(59.7)), "1m 00s");
  EXPECT_EQ(FormatSpan(Seconds(125)), "2m 05s");
  EXPECT_EQ(FormatSpan(Seconds(3725)), "1h 02m");
  EXPECT_EQ(FormatSpan(Seconds(273600)), "3d 04h");
  EXPECT_EQ(FormatSpan(Seconds(-1)), "0.0s");
}

TEST(TextTest, BytesUseBinaryUnits) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1258291), "1.2 MiB");
  EXPECT_EQ(FormatBytes(~std::uint64_t{0}), "16384.0 PiB");
}

TEST(TextTest, WidthsCountCharactersNotBytes) {
  EXPECT_EQ(PadRight("\xe2\x86\x92", 3), "\xe2\x86\x92  ");
  EXPECT_EQ(PadLeft("ab", 4), "  ab");
  EXPECT_EQ(PadLeft("abcde", 4), "abcde");
  EXPECT_EQ(Cut("a\xe2\x86\x92"
                "bc",
                2),
            "a\xe2\x86\x92");
  EXPECT_EQ(Cut("abc", 5), "abc");
}

TEST(TextTest, TextOfOthersCannotSteerTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[31mb\nc"), "a [31mb c");
}

TEST(TextTest, TablesAlignAndHaveNoTrailingBlanks) {
  EXPECT_EQ(FormatTable({{"NAME", "STATE"}, {"a-long-name", "x"}, {"b"}}),
            "NAME         STATE\n"
            "a-long-name  x\n"
            "b\n");
  EXPECT_EQ(FormatTable({}), "");
}

TEST(TextTest, ATableGivesUpColumnsInAnOrderUntilItFits) {
  const std::vector<std::vector<std::string>> rows = {{"A", "B", "C"}, {"1", "→→", "333"}};
  const std::vector<std::string_view> dispensable = {"B", "none", "C"};
  const auto fitted = [&](std::size_t columns) {
    return FormatTable(FitTable(rows, dispensable, columns));
  };

  EXPECT_EQ(fitted(10), "A  B   C\n1  →→  333\n");
  EXPECT_EQ(fitted(9), "A  C\n1  333\n");
  EXPECT_EQ(fitted(5), "A\n1\n");
  EXPECT_EQ(fitted(0), "A\n1\n");
}

TEST(TextTest, ParagraphsAreBrokenAtBlanksAndCountCharacters) {
  EXPECT_EQ(Wrap("", 10), "\n");
  EXPECT_EQ(Wrap("one two  three", 7), "one two\nthree\n");
  EXPECT_EQ(Wrap("one two", 6), "one\ntwo\n");
  EXPECT_EQ(Wrap("a muchtoolongword b", 5), "a\nmuchtoolongword\nb\n");
  EXPECT_EQ(Wrap("ää → öö", 7), "ää → öö\n");
  EXPECT_EQ(Wrap("was 5.0 % more", 9), "was 5.0 %\nmore\n");
  EXPECT_EQ(Wrap("was 5.0 % more", 8), "was\n5.0 %\nmore\n");
  EXPECT_EQ(Wrap("was 5.0 %", 7), "was\n5.0 %\n");
}

TEST(TextTest, ShortNamesAreTheLastPart) {
  EXPECT_EQ(ShortName("projects/default/jobs/demo-1"), "demo-1");
  EXPECT_EQ(ShortName("demo-1"), "demo-1");
}

TEST(TextTest, NumbersAreJoinedByCommas) {
  EXPECT_EQ(JoinNumbers(std::vector<int>{47, 46}), "47,46");
  EXPECT_EQ(JoinNumbers(std::vector<int>{}), "");
}

}  // namespace
}  // namespace tactus::client
