#include "client/ask/simulated_tape.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "coordinator/tape/replay.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

class SimulatedTapeTest : public testing::Test {
 protected:
  // Lets a coordinator begin so many times and tick so often in each of its lives.
  void Live(SimulatedTape* tape, int lives, int ticks) const {
    simulator::Scenario scenario;
    tape->Attach(&scenario);
    for (int life = 0; life < lives; ++life) {
      scenario.on_start({}, Instant{}, {});
      for (int i = 0; i < ticks; ++i) scenario.on_step(job::Ticked{}, Instant{}, {});
    }
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/it.tape";
};

TEST_F(SimulatedTapeTest, EveryLifeHasItsFile) {
  SimulatedTape tape(path_);
  Live(&tape, 3, 5);

  ASSERT_TRUE(tape.Close().ok());

  EXPECT_FALSE(tape.full());
  for (const std::string suffix : {"", ".2", ".3"}) {
    const auto replayed = tape::Replay(path_ + suffix, {});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(replayed->events, 5u);
    EXPECT_EQ(replayed->end, tape::EndReason::kClean);
  }
}

TEST_F(SimulatedTapeTest, LivesOfAnEarlierSimulationAreRemoved) {
  SimulatedTape earlier(path_);
  Live(&earlier, 4, 1);
  ASSERT_TRUE(earlier.Close().ok());
  SimulatedTape tape(path_);
  Live(&tape, 2, 1);

  ASSERT_TRUE(tape.Close().ok());

  EXPECT_TRUE(std::filesystem::exists(path_ + ".2"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".4"));
}

TEST_F(SimulatedTapeTest, AFileThatIsNoTapeIsLeftAlone) {
  std::ofstream(path_ + ".2") << "notes";
  SimulatedTape tape(path_);
  Live(&tape, 1, 1);

  ASSERT_TRUE(tape.Close().ok());

  EXPECT_TRUE(std::filesystem::exists(path_ + ".2"));
}

TEST_F(SimulatedTapeTest, ALifeThatDoesMoreThanItsFileHoldsIsFull) {
  SimulatedTape tape(path_, tape::TapeWriter::kBytesMin);
  Live(&tape, 1, 1000);

  ASSERT_TRUE(tape.Close().ok());

  EXPECT_TRUE(tape.full());
  const auto replayed = tape::Replay(path_, {});
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_EQ(replayed->end, tape::EndReason::kFull);
}

TEST_F(SimulatedTapeTest, AFileThatCannotBeWrittenIsSaid) {
  SimulatedTape tape(folder_.path() + "/none/it.tape");
  Live(&tape, 2, 1);

  EXPECT_EQ(tape.Close().message(),
            folder_.path() + "/none/it.tape: cannot be made: No such file or directory");
}

}  // namespace
}  // namespace tactus::client
