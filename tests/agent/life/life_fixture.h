// A worker's life in a scripted world, as a list of what happened.

#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "agent/life/life.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/life/scripted_world.h"

namespace tactus::life {

inline const char* const kAgentIsGone = "says failed the agent is gone, transient";

inline const std::vector<std::string> kBefore = {"load", "says ready", "meet",
                                                 "says endpoint here of 3", "begin"};

class LifeTest : public testing::Test {
 protected:
  // What happened behind `before`, which it began with.
  std::vector<std::string> Run(std::vector<std::string> before = kBefore) {
    failed_ = Life(world_, world_).Run();
    const std::vector<std::string>& log = world_.log;
    const std::size_t shared = std::min(before.size(), log.size());
    const auto begun = log.begin() + static_cast<std::ptrdiff_t>(shared);
    EXPECT_THAT(std::vector<std::string>(log.begin(), begun), testing::ElementsAreArray(before));
    return {begun, log.end()};
  }

  static std::vector<std::string> Round(int round) {
    const std::string number = std::to_string(round);
    return {"step " + number, "complete " + number, "says report " + number, "reported " + number};
  }

  // All of the rounds first, then `ending`.
  static auto AfterRounds(int rounds, const std::vector<std::string>& ending) {
    std::vector<std::string> expected;
    for (int round = 0; round < rounds; ++round) {
      const std::vector<std::string> one = Round(round);
      expected.insert(expected.end(), one.begin(), one.end());
    }
    expected.insert(expected.end(), ending.begin(), ending.end());
    return testing::ElementsAreArray(expected);
  }

  // Said while the first round is computed, so that it ends with that round.
  void Stop(const protocol::StopMessage& stop) {
    world_.options.stop.rounds = 100;
    world_.in_training = {stop};
  }

  ScriptedWorld world_;
  std::optional<protocol::FailedMessage> failed_;
};

}  // namespace tactus::life
