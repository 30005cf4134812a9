#include "agent/daemon/log_pieces.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "runtime/utf8.h"

namespace tactus::agent {
namespace {

Instant At(double seconds) { return Instant(Seconds(100 + seconds)); }

std::string Joined(const std::vector<LogPieces::Piece>& pieces) {
  std::string text;
  for (const LogPieces::Piece& piece : pieces) text += piece.text;
  return text;
}

TEST(LogPiecesTest, WholeLinesGoAndTheRestWaits) {
  LogPieces pieces;
  pieces.Append("one\ntwo\nthr");
  const auto first = pieces.Take(At(0));
  pieces.Append("ee\n");
  const auto second = pieces.Take(At(0));

  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].text, "one\ntwo\n");
  EXPECT_EQ(first[0].offset, 0u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].text, "three\n");
  EXPECT_EQ(second[0].offset, 8u);
}

TEST(LogPiecesTest, TheEndTakesAlsoALineThatIsNotEnded) {
  LogPieces pieces;
  pieces.Append("one\ntw");
  EXPECT_TRUE(pieces.waiting());

  EXPECT_EQ(Joined(pieces.TakeAll()), "one\ntw");
  EXPECT_TRUE(pieces.TakeAll().empty());
  EXPECT_FALSE(pieces.waiting());
}

TEST(LogPiecesTest, AnUnfinishedLineDoesNotCountAsWaiting) {
  LogPieces pieces;
  pieces.Append("one");

  EXPECT_FALSE(pieces.waiting());
  EXPECT_TRUE(pieces.Take(At(0)).empty());
}

TEST(LogPiecesTest, ALongLineIsCutIntoPieces) {
  LogPieces pieces;
  pieces.Append(std::string(100'000, 'x') + "\n");

  const auto taken = pieces.Take(At(0));

  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].text.size(), LogPieces::kPieceBytesMax);
  EXPECT_EQ(taken[1].offset, LogPieces::kPieceBytesMax);
  EXPECT_EQ(Joined(taken), std::string(100'000, 'x') + "\n");
}

TEST(LogPiecesTest, MoreThanTheRateIsLeftOutAtTheFrontAndShowsAsAGap) {
  LogPieces pieces;
  std::string all;
  for (int i = 0; i < 100'000; ++i) all += "line " + std::to_string(i) + "\n";
  pieces.Append(all);

  const auto taken = pieces.TakeAll();

  ASSERT_FALSE(taken.empty());
  EXPECT_GT(taken[0].offset, 0u);
  EXPECT_EQ(Joined(taken), all.substr(taken[0].offset));
  EXPECT_TRUE(taken[0].text.starts_with("line "));
  EXPECT_LE(Joined(taken).size(), LogPieces::kWaitingBytesMax);
}

TEST(LogPiecesTest, NoMoreThanTheRateGoesHoweverMuchIsWritten) {
  LogPieces pieces;
  std::size_t bytes = 0;
  const std::string chunk(1000, 'y');
  for (int tenth = 0; tenth <= 100; ++tenth) {
    for (int i = 0; i < 200; ++i) pieces.Append(chunk + "\n");
    for (const auto& piece : pieces.Take(At(tenth * 0.1))) bytes += piece.text.size();
  }

  EXPECT_LE(bytes, 11 * LogPieces::kBytesPerSecond);  // ten seconds, and what goes at once
  EXPECT_GE(bytes, 10 * LogPieces::kBytesPerSecond);
}

// Bytes of any kind, in chunks of any size: what goes up is valid UTF-8, in order, the output's own
// as long as the rate is kept.
TEST(LogPiecesPropertyTest, PiecesPutTogetherAreTheOutput) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    LogPieces pieces;
    std::string output;
    std::vector<LogPieces::Piece> all;
    double now = 0;
    for (int i = 0; i < 20; ++i) {
      std::string chunk;
      for (std::uint64_t n = rng.Below(200); n > 0; --n) {
        const char* const kinds[] = {"a", "\n", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
        chunk += rng.Below(20) == 0 ? std::string(1, static_cast<char>(rng.Below(256)))
                                    : kinds[rng.Below(5)];
      }
      output += chunk;
      const std::size_t cut = rng.Below(chunk.size() + 1);
      pieces.Append(std::string_view(chunk).substr(0, cut));
      pieces.Append(std::string_view(chunk).substr(cut));
      for (auto& piece : pieces.Take(At(now += 0.1))) all.push_back(std::move(piece));
    }
    for (auto& piece : pieces.TakeAll()) all.push_back(std::move(piece));

    EXPECT_EQ(Joined(all), runtime::ToUtf8(output)) << "seed " << seed;
    std::uint64_t offset = 0;
    for (const auto& piece : all) {
      EXPECT_EQ(piece.offset, offset) << "seed " << seed;
      EXPECT_EQ(runtime::ToUtf8(piece.text), piece.text) << "seed " << seed;
      offset += piece.text.size();
    }
  }
}

}  // namespace
}  // namespace tactus::agent
