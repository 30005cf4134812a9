#include "coordinator/tape/tape_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/tape/tape_fixture.h"

namespace tactus::tape {
namespace {

const Header kHeader{.program_version = "1.2.3", .wall_offset = 5};

class TapeWriterTest : public TapeTest {
 protected:
  TapeWriter Create(std::uint64_t bytes_max = TapeWriter::kBytesDefault) const {
    absl::StatusOr<TapeWriter> tape = TapeWriter::Create(Path("it"), kHeader, bytes_max);
    EXPECT_TRUE(tape.ok()) << tape.status();
    return *std::move(tape);
  }
};

TEST_F(TapeWriterTest, WhatIsAddedIsRead) {
  const std::vector<Frame> frames = SmallJobFrames();
  TapeWriter tape = Create();
  for (std::size_t i = 1; i + 1 < frames.size(); ++i) ASSERT_TRUE(tape.Add(frames[i]).ok());
  ASSERT_TRUE(tape.Close().ok());

  const Read read = ReadAll(Path("it"));

  ASSERT_TRUE(read.status.ok()) << read.status;
  std::vector<Frame> expected = frames;
  expected.front() = kHeader;
  EXPECT_EQ(Bytes(read.frames), Bytes(expected));
}

TEST_F(TapeWriterTest, WhatIsFlushedOutlivesTheWriter) {
  {
    TapeWriter tape = Create();
    ASSERT_TRUE(tape.Add(Start{}).ok());
    ASSERT_TRUE(tape.Add(Step{}).ok());
    ASSERT_TRUE(tape.Flush().ok());
    ASSERT_TRUE(tape.Add(Step{}).ok());
  }
  const Read read = ReadAll(Path("it"));

  EXPECT_EQ(read.status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(read.frames.size(), 3u);
}

TEST_F(TapeWriterTest, AFullTapeEndsWithItsMarkBelowTheBound) {
  for (const std::uint64_t bytes_max : {std::uint64_t{4096}, std::uint64_t{1'000'000}}) {
    TapeWriter tape = Create(bytes_max);
    ASSERT_TRUE(tape.Add(Start{}).ok());
    int added = 0;
    while (!tape.ended()) {
      ASSERT_TRUE(tape.Add(Step{}).ok());
      ++added;
    }
    ASSERT_TRUE(tape.Add(Step{}).ok());
    ASSERT_TRUE(tape.Close().ok());

    const std::uint64_t step_bytes = EncodeFrame(Step{}).size();
    EXPECT_LE(std::filesystem::file_size(Path("it")), bytes_max);
    EXPECT_GT(std::filesystem::file_size(Path("it")) + 2 * step_bytes, bytes_max);
    const Read read = ReadAll(Path("it"));
    ASSERT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.frames.size(), 2u + static_cast<std::size_t>(added - 1) + 1u);
    EXPECT_EQ(std::get<End>(read.frames.back()).reason, EndReason::kFull);
  }
}

TEST_F(TapeWriterTest, AFrameThatIsTooLargeEndsTheTape) {
  TapeWriter tape = Create(std::uint64_t{1} << 40);
  ASSERT_TRUE(tape.Add(Start{}).ok());
  const std::string large(kPayloadBytesMax + 1, 'x');

  ASSERT_TRUE(tape.Add(Step{.event = job::NodeLost{.node = "a", .reason = large}}).ok());

  EXPECT_TRUE(tape.ended());
  EXPECT_TRUE(ReadAll(Path("it")).status.ok());
}

TEST_F(TapeWriterTest, AFileThatCannotBeWrittenIsSaidOnce) {
  EXPECT_FALSE(TapeWriter::Create(Path("no/such/folder"), kHeader).ok());
  absl::StatusOr<TapeWriter> full = TapeWriter::Create("/dev/full", kHeader);
  ASSERT_TRUE(full.ok());

  EXPECT_EQ(full->Flush().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(full->ended());
  EXPECT_TRUE(full->Close().ok());
}

}  // namespace
}  // namespace tactus::tape
