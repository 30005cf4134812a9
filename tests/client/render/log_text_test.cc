#include "client/render/log_text.h"

#include <gtest/gtest.h>

#include <string>

namespace tactus::client {
namespace {

v1::LogEntry Entry(std::uint32_t rank, const std::string& text) {
  v1::LogEntry entry;
  entry.set_rank(rank);
  entry.set_text(text);
  return entry;
}

TEST(LogTextTest, LinesBeginWithTheirRank) {
  LogText text(true);

  EXPECT_EQ(text.Show(Entry(0, "a\nb\n")), "[0] a\n[0] b\n");
  EXPECT_EQ(text.Show(Entry(12, "c\n")), "[12] c\n");
}

TEST(LogTextTest, LinesInPiecesStayTogetherUnlessAnotherRankSpeaks) {
  LogText text(true);

  EXPECT_EQ(text.Show(Entry(0, "half")), "[0] half");
  EXPECT_EQ(text.Show(Entry(0, " whole\n")), " whole\n");
  EXPECT_EQ(text.Show(Entry(0, "half")), "[0] half");
  EXPECT_EQ(text.Show(Entry(1, "x\n")), "\n[1] x\n");
}

TEST(LogTextTest, OneRankIsShownAsItIsButCannotSteerTheTerminal) {
  LogText text(false);

  EXPECT_EQ(text.Show(Entry(3, "\x1b[31mred\ttab\r\n")), " [31mred\ttab \n");
}

}  // namespace
}  // namespace tactus::client
