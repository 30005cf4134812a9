#include "coordinator/tape/tape_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/coordinator/tape/tape_fixture.h"

namespace tactus::tape {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TapeReaderTest : public TapeTest {
 protected:
  absl::Status Problem(const std::string& bytes) const { return ReadAll(Write(bytes)).status; }

  const std::string whole_ = Bytes(SmallJobFrames());
};

TEST_F(TapeReaderTest, EveryFrameComesBack) {
  const Read read = ReadAll(Write(whole_));

  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(Bytes(read.frames), whole_);
}

TEST_F(TapeReaderTest, WhatIsNoTapeIsSaid) {
  for (const std::string& bytes : {std::string("name: demo\n"), std::string(100, '\0')}) {
    const absl::Status status = Problem(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              Path("written.tape") + ": found another kind of file, allowed is a tape");
  }
  EXPECT_EQ(TapeReader::Open(folder_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TapeReader::Open(Path("absent")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TapeReaderTest, AnotherFormatVersionIsSaid) {
  std::string bytes = whole_;
  bytes[kPreambleBytes - 4] = 7;
  bytes[kPreambleBytes - 3] = 1;

  const absl::Status status = Problem(bytes);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), Path("written.tape") +
                                  ": found a tape of format version 263, allowed is " +
                                  std::to_string(kFormatVersion));
}

TEST_F(TapeReaderTest, ACutAnywhereIsACutWithWhatIsWholeBeforeIt) {
  const std::string few = Bytes({Header{}, Start{}, Step{}, Step{}, End{}});
  for (std::size_t size = 0; size < few.size(); ++size) {
    const Read read = ReadAll(Write(few.substr(0, size)));

    EXPECT_EQ(read.status.code(), absl::StatusCode::kOutOfRange) << size << " " << read.status;
    EXPECT_THAT(few, StartsWith(size < kPreambleBytes ? "" : Bytes(read.frames)));
  }
  const std::size_t edge = Bytes({Header{}, Start{}, Step{}}).size();
  EXPECT_THAT(std::string(Problem(few.substr(0, edge + 20)).message()),
              HasSubstr("cut short at byte " + std::to_string(edge) + ", after event 1,"));
}

TEST_F(TapeReaderTest, ADamagedByteIsNeverTakenForACut) {
  const std::string few = Bytes({Header{}, Start{}, Step{}, End{}});
  for (std::size_t at = kPreambleBytes; at < few.size(); ++at) {
    std::string bytes = few;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);

    EXPECT_EQ(Problem(bytes).code(), absl::StatusCode::kDataLoss) << at;
  }
}

TEST_F(TapeReaderTest, FramesOutOfOrderAreDamage) {
  const std::vector<Frame> frames = SmallJobFrames();
  const std::vector<std::vector<Frame>> cases = {
      {frames[1], frames[0], End{}},
      {frames[0], frames[2], End{}},
      {frames[0], frames[1], frames[1], End{}},
      {frames[0], End{}},
  };
  for (const std::vector<Frame>& one : cases) {
    EXPECT_EQ(Problem(Bytes(one)).code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(Problem(whole_ + "x").code(), absl::StatusCode::kDataLoss);
}

TEST_F(TapeReaderTest, AMapThatIsNoFrameIsDamage) {
  const absl::StatusOr<Frame> frame = DecodePayload({.payload_bytes = 1, .payload_crc = 0}, "\xa0");
  EXPECT_EQ(frame.status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tactus::tape
