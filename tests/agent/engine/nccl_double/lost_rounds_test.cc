// A group that is lost while the rest of the round is queued behind its collective: the wait ends,
// and the parameters are those of the last round that was applied.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/nccl_double/on_devices.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Synchronization;
using ::testing::HasSubstr;

constexpr std::uint64_t kLostRound = 3;

struct Case {
  std::string name{};
  GroupRun run{};
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

// Equal batches, so that a torn sum of lanes looks like a whole one.
GroupRun RunOf(std::uint32_t period, OptimizerOptions optimizer) {
  GroupRun run{.options = {.train_samples = 500, .optimizer = optimizer, .stop = {.rounds = 8}},
               .plan = {.period = period, .batch_sizes = {6, 6}}};
  if (period > 1) run.plan.synchronization = Synchronization::kPeriodic;
  return run;
}

std::vector<Case> Cases() {
  const SgdOptions sgd{.learning_rate = 0.01};
  const SgdOptions momentum{.learning_rate = 0.01, .momentum = 0.9};
  std::vector<Case> cases = {{"Sgd", RunOf(1, momentum)},       {"Adam", RunOf(1, AdamOptions{})},
                             {"Lamb", RunOf(1, LambOptions{})}, {"Adasum", RunOf(1, sgd)},
                             {"Window", RunOf(3, momentum)},    {"BlockMomentum", RunOf(3, sgd)}};
  cases[3].run.plan.aggregation = Aggregation::kAdasum;
  cases[5].run.options.block_momentum = 0.5;
  return cases;
}

class LostRoundsTest : public OnDevices, public ::testing::WithParamInterface<Case> {
 protected:
  // Trains until the group is lost: from round kLostRound on what `fault` makes of NCCL holds, and
  // once `due` holds all members give the group up.
  std::vector<MemberRun> TrainUntilLost(const std::function<void()>& fault,
                                        const std::function<bool()>& due) {
    GroupRun run = GetParam().run;
    std::atomic<int> arrived = 0;
    run.before_step = [&](int, RoundEngine& engine, StepResult&) {
      if (engine.rounds() != kLostRound || ++arrived > 2) return;
      // Both are there: nothing of the round is under way.
      while (arrived < 2) std::this_thread::yield();
      fault();
    };
    std::thread giving_up;
    const std::vector<MemberRun> members =
        TrainOnDevices(run, [&](const std::vector<collective::Transport*>& transports) {
          giving_up = std::thread([&, transports] {
            EXPECT_TRUE(Eventually([&] { return arrived >= 2 && due(); }));
            for (collective::Transport* const transport : transports) {
              transport->Abort("told to stop");
            }
          });
        });
    giving_up.join();
    return members;
  }

  static void ExpectNothingOfTheRound(const std::vector<MemberRun>& members) {
    for (const MemberRun& member : members) {
      EXPECT_EQ(member.outcome, Outcome::kGroupLost);
      EXPECT_THAT(member.reason, HasSubstr("told to stop"));
      ASSERT_EQ(member.trace.size(), kLostRound);
      std::vector<float> parameters = member.trace.back();
      ASSERT_EQ(parameters.size(), kWeights + 1);
      for (std::size_t i = 0; i < kWeights; ++i) {
        EXPECT_EQ(member.parameters[i], parameters[i]) << i;
      }
    }
  }
};

// The call is not through: there is nothing yet that the device could wait for.
TEST_P(LostRoundsTest, AnAbortBeforeTheCollectiveIsInTheStreamLeavesTheParameters) {
  int before = 0;
  const auto calls = [] {
    return nccl_double::Calls("ncclAllReduce") + nccl_double::Calls("ncclGroupEnd");
  };

  const std::vector<MemberRun> members = TrainUntilLost(
      [&] {
        before = calls();
        nccl_double::SetPolls(1'000'000'000);
      },
      [&] { return calls() > before; });

  ExpectNothingOfTheRound(members);
}

// The step stands behind it on the device, which goes on over a torn buffer.
TEST_P(LostRoundsTest, AnAbortOfACollectiveUnderWayLeavesTheParameters) {
  nccl_double::TearAborted();
  int queries = 0;
  const auto calls = [] { return nccl_double::Calls("ncclCommGetAsyncError"); };

  const std::vector<MemberRun> members = TrainUntilLost(
      [&] {
        nccl_double::StallRank(1);
        queries = calls();
      },
      [&] { return calls() > queries + 500; });

  ExpectNothingOfTheRound(members);
}

// A peer that dies is found by the heartbeat, without anybody's help.
TEST_P(LostRoundsTest, ThePeersOfAMemberThatVanishesKeepTheirParameters) {
  nccl_double::TearAborted();
  GroupRun run = GetParam().run;
  run.vanish = [](int rank, std::uint64_t round) { return rank == 1 && round == kLostRound; };
  std::vector<MemberRun> members;
  std::atomic<bool> over = false;
  std::thread time([&] {
    while (!over) {
      clock_.Advance(Seconds(0.1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });

  members = TrainOnDevices(run);
  over = true;
  time.join();

  EXPECT_EQ(members[0].outcome, Outcome::kGroupLost);
  ASSERT_EQ(members[0].trace.size(), kLostRound);
  for (std::size_t i = 0; i < kWeights; ++i) {
    EXPECT_EQ(members[0].parameters[i], members[0].trace.back()[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, LostRoundsTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tactus::engine
