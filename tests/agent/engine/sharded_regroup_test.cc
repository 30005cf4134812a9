// A group whose optimizer's state is cut up is lost at any moment, and those who are left go on as
// if everybody had had all of it; or all of them know that they cannot.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/failing_transport.h"
#include "tests/agent/engine/survivor.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using collective::Transport;
using policies::Plan;

constexpr std::uint64_t kRounds = 8;
constexpr std::size_t kLength = 48;  // 16 of each of three members

EngineOptions Options(std::uint32_t copies) {  // 0: everybody has all
  EngineOptions options{.train_samples = 157,
                        .micro_batch = 2,
                        .optimizer = AdamOptions{.learning_rate = 0.05, .weight_decay = 0.01},
                        .stop = {.rounds = kRounds}};
  if (copies > 0) options.shards = {.by = ShardBy::kEqual, .copies = copies};
  return options;
}

const Plan kOfThree{.batch_sizes = {3, 2, 4}};
const Plan kOfTwo{.version = 5, .batch_sizes = {5, 4}};

std::uint64_t MostRounds(const std::vector<Survivor*>& members) {
  std::uint64_t most = 0;
  for (Survivor* const each : members) most = std::max(most, each->member().rounds);
  return most;
}

void ExpectSameParameters(const std::vector<Survivor*>& members,
                          const std::vector<float>& expected) {
  for (Survivor* const each : members) {
    EXPECT_EQ(each->member().rounds, kRounds) << each->reason();
    EXPECT_EQ(each->parameters(), expected);
  }
}

std::vector<std::unique_ptr<Transport>> FailingGroup(std::size_t size, std::size_t who, int after) {
  std::vector<std::unique_ptr<Transport>> transports = NewGroup(size);
  transports[who] = std::make_unique<FailingTransport>(std::move(transports[who]), after);
  return transports;
}

std::vector<float> Undisturbed() {
  const Members all(Options(0), 3, kLength);
  std::vector<Survivor*> members = all.Everybody();
  Train(members, {.plan = kOfThree, .told_of_rounds = false});
  return members[0]->parameters();
}

// All live on. The group falls apart in each of its collectives, also in those that begin the next
// one, and nothing shows of it.
TEST(ShardedRegroupTest, AGroupMayFallApartInAnyCollective) {
  const std::vector<float> expected = Undisturbed();
  for (const std::uint32_t copies : {1u, 2u}) {
    int lost = 0;
    for (int n = 0; n < 60; ++n) {
      SCOPED_TRACE("copies " + std::to_string(copies) + ", collective " + std::to_string(n));
      const Members all(Options(copies), 3, kLength);
      std::vector<Survivor*> members = all.Everybody();
      TrainOver(FailingGroup(3, static_cast<std::size_t>(n) % 3, n), members,
                {.plan = kOfThree, .told_of_rounds = false});
      ASSERT_EQ(members.size(), 3u);
      if (MostRounds(members) < kRounds) ++lost;
      for (int again = 0; again < 5; ++again) {
        if (std::ranges::all_of(members,
                                [](Survivor* each) { return each->member().rounds == kRounds; })) {
          break;
        }
        auto transports = again < 2 ? FailingGroup(3, 1, (n + 3 * again) % 9) : NewGroup(3);
        TrainOver(std::move(transports), members, {.plan = kOfThree});
      }
      ExpectSameParameters(members, expected);
    }
    EXPECT_GT(lost, 20);
  }
}

// What everybody's having all of it leads to where rank 1 dies with so many rounds applied.
std::vector<float> DyingAfter(std::uint64_t rounds) {
  const Members all(Options(0), 3, kLength);
  std::vector<Survivor*> members = all.Everybody();
  Train(members, {.plan = kOfThree, .before_step = DieIn(rounds, 1), .told_of_rounds = false});
  Train(members, {.plan = kOfTwo});
  return members[0]->parameters();
}

// One dies in each of the collectives. Of what it held another one has a copy.
TEST(ShardedRegroupTest, OneMayDieInAnyCollectiveWhereEachPartIsHeldTwice) {
  int lost = 0;
  for (int n = 8; n < 60; ++n) {
    SCOPED_TRACE("collective " + std::to_string(n));
    const Members all(Options(2), 3, kLength);
    std::vector<Survivor*> members = all.Everybody();
    TrainOver(FailingGroup(3, 1, n), members, {.plan = kOfThree, .told_of_rounds = false});
    members.erase(members.begin() + 1);
    const std::uint64_t rounds = MostRounds(members);
    if (rounds == kRounds) continue;
    ++lost;
    Train(members, {.plan = kOfTwo});

    ExpectSameParameters(members, DyingAfter(rounds));
  }
  EXPECT_GT(lost, 20);
}

TEST(ShardedRegroupTest, WhoAreLeftKnowThatAPartIsGone) {
  const Members all(Options(1), 3, kLength);
  std::vector<Survivor*> members = all.Everybody();
  Train(members, {.plan = kOfThree, .before_step = DieIn(3, 1), .told_of_rounds = false});
  ASSERT_EQ(members.size(), 2u);

  Train(members, {.plan = kOfTwo});

  for (Survivor* const each : members) {
    EXPECT_NE(each->reason().find("16 of 48 parameters is held by no member of this group"),
              std::string::npos)
        << each->reason();
    EXPECT_EQ(each->member().rounds, 3u);
  }
}

// A newcomer has nothing; it gets its part.
TEST(ShardedRegroupTest, AGroupGrowsWithoutAStop) {
  const auto grow = [](std::uint32_t copies) {
    const Members all(Options(copies), 3, kLength);
    std::vector<Survivor*> members = {&all[0], &all[1]};
    Train(members, {.plan = kOfTwo,
                    .before_step =
                        [](RoundEngine& engine, Transport&) {
                          if (engine.rounds() == 3) {
                            engine.RequestStop("one joins", StopKind::kRegroup);
                          }
                          return true;
                        },
                    .told_of_rounds = false});
    members.push_back(&all[2]);
    Train(members, {.plan = {.version = 9, .batch_sizes = {3, 2, 4}}});
    for (Survivor* const each : members) EXPECT_EQ(each->member().rounds, kRounds);
    EXPECT_EQ(members[2]->parameters(), members[0]->parameters());
    return members[0]->parameters();
  };
  const std::vector<float> expected = grow(0);
  EXPECT_EQ(grow(1), expected);
  EXPECT_EQ(grow(2), expected);
}

// One that leaves with a word gives its part to those who stay, once or twice as it is held.
TEST(ShardedRegroupTest, WhoLeavesWithAWordTakesNothingAlong) {
  const auto shrink = [](std::uint32_t copies) {
    const Members all(Options(copies), 3, kLength);
    std::vector<Survivor*> members = all.Everybody();
    Train(members, {.plan = kOfThree,
                    .before_step =
                        [](RoundEngine& engine, Transport& transport) {
                          if (engine.rounds() == 3) {
                            if (transport.rank() == 2) engine.NoteLeaving({1});
                            engine.RequestStop("one leaves", StopKind::kRegroup);
                          }
                          return true;
                        },
                    .told_of_rounds = false});
    if (copies > 0) {
      EXPECT_EQ(members[1]->member().shard->bytes(), 0u);
    }
    members.erase(members.begin() + 1);
    Train(members, {.plan = kOfTwo});
    for (Survivor* const each : members) EXPECT_EQ(each->member().rounds, kRounds);
    EXPECT_EQ(members[1]->parameters(), members[0]->parameters());
    return members[0]->parameters();
  };
  const std::vector<float> expected = shrink(0);
  EXPECT_EQ(shrink(1), expected);
  EXPECT_EQ(shrink(2), expected);
}

// Tells its member of broadcasts from the nth on that they failed, once they are through.
class DeafTransport : public Transport {
 public:
  DeafTransport(std::unique_ptr<Transport> inner, int broadcasts)
      : inner_(std::move(inner)), left_(broadcasts) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    const bool counts = operation.kind == collective::Operation::Kind::kBroadcast;
    if (!counts || left_-- > 0) return inner_->Start(operation);
    return std::make_unique<Deaf>(inner_->Start(operation));
  }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  class Deaf : public collective::Collective {
   public:
    explicit Deaf(std::unique_ptr<collective::Collective> inner) : inner_(std::move(inner)) {}

    collective::Progress Poll() override { return inner_->Poll(); }
    collective::Completion Wait() override {
      collective::Completion completion = inner_->Wait();
      completion.progress = collective::Progress::kFailed;
      completion.reason = "not heard of";
      return completion;
    }

   private:
    const std::unique_ptr<collective::Collective> inner_;
  };

  const std::unique_ptr<Transport> inner_;
  int left_;
};

// The last bytes of a round come to some members only; the others take the step that they were told
// of. The parameters are broadcast once, then three parts in each round.
TEST(ShardedRegroupTest, WhoHasNotHeardOfAStepTakesItLater) {
  const std::vector<float> expected = Undisturbed();
  for (const std::uint32_t copies : {1u, 2u}) {
    for (const std::vector<std::size_t>& deaf :
         std::vector<std::vector<std::size_t>>{{1}, {0, 1}, {2}, {0, 1, 2}}) {
      const Members all(Options(copies), 3, kLength);
      std::vector<Survivor*> members = all.Everybody();
      std::vector<std::unique_ptr<Transport>> transports = NewGroup(3);
      for (const std::size_t rank : deaf) {
        transports[rank] = std::make_unique<DeafTransport>(std::move(transports[rank]), 1 + 3 * 4);
      }
      TrainOver(std::move(transports), members, {.plan = kOfThree, .told_of_rounds = false});
      for (std::size_t rank = 0; rank < 3; ++rank) {
        const bool heard = std::ranges::count(deaf, rank) == 0;
        EXPECT_EQ(members[rank]->member().rounds, heard ? 5u : 4u);
      }
      Train(members, {.plan = kOfThree});
      ExpectSameParameters(members, expected);
    }
  }
}

// The loss of the group ends a trial that led up: what it puts back is no state of before the step
// that one has not heard of.
TEST(ShardedRegroupTest, WhoseTrialEndsTakesNoStepThatItHasNotHeardOf) {
  Plan trial = kOfThree;
  trial.trial = policies::Trial::kBegins;
  const auto rise = [](RoundEngine& engine, Transport&, Survivor& own) {
    own.AddLoss(1000.0 * static_cast<double>(engine.rounds()));
  };
  const auto train = [&](std::uint32_t copies) {
    const Members all(Options(copies), 3, kLength);
    std::vector<Survivor*> members = all.Everybody();
    const Stage stage{.plan = trial,
                      .before_step =
                          [&](RoundEngine& engine, Transport& transport) {
                            rise(engine, transport,
                                 all[static_cast<std::size_t>(transport.rank())]);
                            return true;
                          },
                      .told_of_rounds = false};
    if (copies == 0) {
      TrainTorn(members, stage, {.rounds = 4, .ranks = {false, true, false}});
    } else {
      std::vector<std::unique_ptr<Transport>> transports = NewGroup(3);
      transports[1] = std::make_unique<DeafTransport>(std::move(transports[1]), 1 + 3 * 4);
      TrainOver(std::move(transports), members, stage);
    }
    EXPECT_EQ(members[0]->member().rounds, 5u);
    EXPECT_EQ(members[1]->member().rounds, 4u);
    Train(members, {.plan = kOfThree});
    ExpectSameParameters(members, members[0]->parameters());
    return members[0]->parameters();
  };
  EXPECT_EQ(train(2), train(0));
}

}  // namespace
}  // namespace tactus::engine
