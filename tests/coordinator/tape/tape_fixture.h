// A folder for tapes, removed at the end of the test, and the tape of a small job.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/tape/frames.h"

namespace tactus::tape {

// Header, start, the events of a job of three workers that trains a few rounds, the end; times in
// tenths of a second. `event` counts from 1: it is the frame at index event + 1.
std::vector<Frame> SmallJobFrames();

// The frames as they are, whether or not they make a tape.
std::string Bytes(const std::vector<Frame>& frames);

class TapeTest : public testing::Test {
 protected:
  TapeTest();
  ~TapeTest() override;

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // Writes the bytes to a file and returns its path.
  std::string Write(const std::string& bytes) const;

  // Opens a tape and reads it to its end or first error.
  struct Read {
    absl::Status status{};
    std::vector<Frame> frames{};
  };
  static Read ReadAll(const std::string& path);

  std::string folder_;
};

}  // namespace tactus::tape
