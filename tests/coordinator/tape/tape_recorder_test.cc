#include "coordinator/tape/tape_recorder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "coordinator/tape/tape_folder.h"
#include "tests/coordinator/tape/tape_fixture.h"

namespace tactus::tape {
namespace {

class TapeRecorderTest : public TapeTest {
 protected:
  ~TapeRecorderTest() override {
    storage_.Stop();
    control_.Stop();
    timer_.reset();
  }

  void Begin(TapeRecorder::Options options) {
    options.gather = Duration::zero();
    timer_.emplace(control_);
    recorder_.emplace(options, Header{.program_version = "1.2.3"},
                      TapeRecorder::Threads{.control = control_, .storage = storage_});
  }
  void Add(const Frame& frame) {
    control_.RunAndWait([&] { recorder_->Add(frame); });
  }
  // Waits until all that was added is on the file or given up: the timers of writes are due at
  // once.
  void Settle() {
    for (int i = 0; i < 4; ++i) {
      std::promise<void> passed;
      control_.RunAndWait([&] { timer_->After(Duration::zero(), [&] { passed.set_value(); }); });
      passed.get_future().wait();
      storage_.RunAndWait([] {});
      control_.RunAndWait([] {});
    }
  }
  void Finish() {
    control_.RunAndWait([this] { recorder_->Finish(); });
    storage_.RunAndWait([] {});
  }
  bool recording() {
    bool is = false;
    control_.RunAndWait([&] { is = recorder_->recording(); });
    return is;
  }
  Read Tape() const { return ReadAll(*NewestTape(Path("tapes"))); }

  std::optional<TapeRecorder> recorder_;  // ends after its threads
  runtime::ControlThread control_;
  runtime::ControlThread storage_;
  std::optional<runtime::Timer> timer_;
};

TEST_F(TapeRecorderTest, WhatIsAddedIsOnTheTapeInOrder) {
  Begin({.folder = Path("tapes")});
  Add(Start{});
  for (int i = 0; i < 100; ++i) Add(Step{.time = Instant(Duration(i))});
  Finish();

  const Read read = Tape();

  ASSERT_TRUE(read.status.ok()) << read.status;
  ASSERT_EQ(read.frames.size(), 103u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(std::get<Step>(read.frames[2u + static_cast<std::size_t>(i)]).time,
              Instant(Duration(i)));
  }
  EXPECT_EQ(std::get<End>(read.frames.back()).reason, EndReason::kClean);
}

TEST_F(TapeRecorderTest, WhatWasAddedIsThereWithoutTheEnd) {
  Begin({.folder = Path("tapes")});
  Add(Start{});
  Add(Step{});
  Settle();

  const Read read = Tape();

  EXPECT_EQ(read.status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(read.frames.size(), 3u);
}

TEST_F(TapeRecorderTest, NothingIsWrittenWhenOff) {
  Begin({.folder = Path("tapes"), .bytes_max = 0});
  EXPECT_FALSE(recording());
  Add(Start{});
  Finish();

  EXPECT_FALSE(std::filesystem::exists(Path("tapes")));
}

TEST_F(TapeRecorderTest, NothingIsWrittenBeforeTheStart) {
  Begin({.folder = Path("tapes")});
  Finish();

  EXPECT_FALSE(std::filesystem::exists(Path("tapes")));
}

TEST_F(TapeRecorderTest, ATapeThatCannotBeWrittenIsGivenUp) {
  Begin({.folder = "/proc/nowhere"});
  Add(Start{});
  Settle();

  EXPECT_FALSE(recording());
  Add(Step{});
  Finish();
}

TEST_F(TapeRecorderTest, AFullTapeIsEnded) {
  Begin({.folder = Path("tapes"), .bytes_max = TapeWriter::kBytesMin});
  Add(Start{});
  for (int i = 0; i < 100; ++i) Add(Step{});
  Settle();

  EXPECT_FALSE(recording());
  const Read read = Tape();
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(std::get<End>(read.frames.back()).reason, EndReason::kFull);
}

TEST_F(TapeRecorderTest, AWriterThatFallsBehindEndsTheTapeWithWhatItHas) {
  constexpr std::size_t kLarge = 1u << 20;
  constexpr std::size_t kTaken = TapeRecorder::kPendingBytesMax / kLarge;
  Begin({.folder = Path("tapes")});
  std::promise<void> free;
  storage_.Post([&] { free.get_future().wait(); });
  control_.RunAndWait([this] {
    recorder_->Add(Start{});
    const Step large = {.event = job::NodeLost{.reason = std::string(kLarge, 'x')}};
    for (std::size_t i = 0; i <= kTaken; ++i) recorder_->Add(large);
  });
  EXPECT_FALSE(recording());
  free.set_value();
  Settle();

  const Read read = Tape();
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.frames.size(), 2u + kTaken + 1u);
  EXPECT_EQ(std::get<End>(read.frames.back()).reason, EndReason::kFull);
}

}  // namespace
}  // namespace tactus::tape
