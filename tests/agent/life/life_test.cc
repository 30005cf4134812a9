// What a worker does and says, in which order, in each of its endings.

#include "agent/life/life.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/life/life_fixture.h"

namespace tactus::life {
namespace {

using protocol::StopMessage;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(LifeTest, FinishedItEvaluatesKeepsTheResultAndSaysSoLast) {
  world_.disk = ScriptedWorld::Disk::kSlow;

  EXPECT_THAT(Run(),
              AfterRounds(2, {"agree over 8", "copy 2", "validate", "keep result", "discard",
                              "says evaluated", "says finished model.pt (2 rounds completed)"}));
  EXPECT_FALSE(failed_);
}

TEST_F(LifeTest, ItsWorldLearnsOfEachEdgeButTheLastAndOfTheEnd) {
  Run();
  EXPECT_EQ(world_.edges, 1);
  EXPECT_EQ(world_.endings, 1);
}

TEST_F(LifeTest, FinishedAnyOtherRankWritesNothing) {
  world_.mail = {world_.Group(1), world_.Peers()};

  EXPECT_THAT(Run(),
              AfterRounds(2, {"agree over 8", "validate", "says finished (2 rounds completed)"}));
}

TEST_F(LifeTest, WithNothingToValidateWithNothingIsSaidOfIt) {
  world_.validation_samples = 0;

  EXPECT_THAT(Run(), Not(Contains("says evaluated")));
}

TEST_F(LifeTest, AskedForItsResultItLeavesACheckpointToo) {
  Stop({.reason = "cancelled"});

  EXPECT_THAT(Run(), AllOf(Contains("validate"), Not(Contains(StartsWith("copy"))),
                           Contains("says finished model.pt checkpoint.safetensors (cancelled)")));
}

TEST_F(LifeTest, SuspendedItKeepsACheckpointAndEvaluatesNothing) {
  Stop({.reason = "paused", .suspend = true});
  const std::vector<std::string> done = Run();

  EXPECT_THAT(done, AllOf(Not(Contains("validate")), Not(Contains("keep result"))));
  ASSERT_GE(done.size(), 4u);
  EXPECT_THAT(std::vector<std::string>(done.end() - 4, done.end()),
              ElementsAre("abandon", StartsWith("agree over "), "keep checkpoint",
                          "says suspended checkpoint.safetensors (paused)"));
}

TEST_F(LifeTest, SuspendedAnyOtherRankWritesNothing) {
  world_.mail = {world_.Group(1), world_.Peers()};
  Stop({.reason = "paused", .suspend = true});

  EXPECT_THAT(Run(), AllOf(Not(Contains("keep checkpoint")), Contains("says suspended (paused)")));
}

TEST_F(LifeTest, WhatComesWhileARoundIsComputedIsVotedForInIt) {
  Stop({.reason = "enough", .discard = true});

  EXPECT_THAT(Run(), AfterRounds(1, {"abandon", "says finished (enough)"}));
}

TEST_F(LifeTest, ASignalOfAnybodysSuspends) {
  world_.options.stop.rounds = 100;
  world_.asked_to_end = true;

  EXPECT_THAT(Run(), Contains("says suspended checkpoint.safetensors (SIGTERM to a worker)"));
}

TEST_F(LifeTest, DiscardedItSaysSoAndDoesNothing) {
  Stop({.reason = "enough", .discard = true});
  const std::vector<std::string> done = Run();

  EXPECT_EQ(done.back(), "says finished (enough)");
  EXPECT_THAT(done, AllOf(Not(Contains(StartsWith("agree"))), Not(Contains("validate")),
                          Not(Contains(StartsWith("keep")))));
}

// ---- Validations

class ValidatingLifeTest : public LifeTest {
 protected:
  ValidatingLifeTest() {
    world_.options.stop.rounds = 4;
    world_.options.validation = {
        .policy = engine::ValidationPolicy::kAuto, .rounds = 2, .samples = 10};
  }
};

TEST_F(ValidatingLifeTest, OneIsMadeBetweenTwoRoundsAndOneAtTheEnd) {
  world_.validation_losses = {0.5, 0.25};
  world_.disk = ScriptedWorld::Disk::kSlow;
  const std::vector<std::string> done = Run();

  std::vector<std::string> expected;
  for (int round = 0; round < 4; ++round) {
    const std::vector<std::string> one = Round(round);
    expected.insert(expected.end(), one.begin(), one.end());
    if (round != 1) continue;
    expected.insert(expected.end(), {"validate at an edge", "says validated after 2, best after 2",
                                     "draw validation 2"});
  }
  expected.insert(expected.end(),
                  {"agree over 16", "copy 4", "validate", "says validated after 4, best after 4",
                   "draw validation 4", "keep result", "discard", "says evaluated",
                   "says finished model.pt (4 rounds completed)"});
  EXPECT_THAT(done, ElementsAreArray(expected));
}

TEST_F(ValidatingLifeTest, AnyOtherRankSaysNothingOfIt) {
  world_.mail = {world_.Group(1), world_.Peers()};

  EXPECT_THAT(Run(),
              AllOf(Contains("validate at an edge"), Not(Contains(StartsWith("says validated"))),
                    Not(Contains(StartsWith("draw")))));
}

// As of programs, which use it for themselves.
TEST_F(ValidatingLifeTest, AStandstillWithoutSamplesIsOverAndNotTold) {
  world_.validation_samples = 0;
  world_.validation_losses = {std::numeric_limits<double>::quiet_NaN()};
  world_.options.stop.patience = 1;
  const std::vector<std::string> done = Run();

  EXPECT_EQ(std::ranges::count(done, "validate at an edge"), 1);
  EXPECT_THAT(done, Not(Contains(testing::AnyOf(StartsWith("says validated"), StartsWith("draw"),
                                                StartsWith("keep best")))));
  EXPECT_EQ(done.back(), "says finished model.pt (4 rounds completed)");
}

TEST_F(ValidatingLifeTest, TheEdgeThatEndsTrainingIsNotEvaluatedAgain) {
  world_.options.stop.validation_loss = 0.5;
  const std::vector<std::string> done = Run();

  EXPECT_THAT(done, AllOf(Contains("validate at an edge"), Not(Contains("validate")),
                          Contains("says evaluated")));
  EXPECT_EQ(done.back(), "says finished model.pt (validation_loss 0.5 reached 0.5)");
}

TEST_F(ValidatingLifeTest, TheBestIsTheResultWhereItIsWanted) {
  world_.keeps_best = true;
  world_.validation_losses = {0.25, 0.5};

  EXPECT_THAT(Run(), testing::IsSupersetOf({"keep best", "take best", "keep result",
                                            "says validated after 4, best after 2"}));
}

TEST_F(ValidatingLifeTest, WhatTrainingEndsWithIsTheResultWhereNothingWasBetter) {
  world_.keeps_best = true;
  world_.validation_losses = {0.5, 0.25};

  EXPECT_THAT(Run(), AllOf(Contains("keep best"), Not(Contains("take best"))));
}

TEST_F(ValidatingLifeTest, NobodyKeepsTheBestWhereTheLastIsTheResult) {
  world_.validation_losses = {0.25, 0.5};

  EXPECT_THAT(Run(), AllOf(Not(Contains("keep best")), Not(Contains("take best"))));
}

TEST_F(ValidatingLifeTest, TheCheckpointOfACancelledJobIsOfItsEnd) {
  world_.keeps_best = true;
  world_.options.stop.rounds = 100;
  world_.validation_losses = {0.25, 0.5};
  world_.on_report = [this](const policies::Report& report) {
    if (report.round == 2) world_.in_training = {StopMessage{.reason = "cancelled"}};
  };
  const std::vector<std::string> done = Run();

  const auto place = [&](const char* what) { return std::ranges::find(done, what) - done.begin(); };
  EXPECT_LT(place("keep checkpoint"), place("take best"));
  EXPECT_LT(place("take best"), place("keep result"));
}

// Of a state that names the end the best, nobody may go on with the best of before.
TEST_F(ValidatingLifeTest, AnEndThatIsTheBestIsKeptBeforeAnyCheckpointHasItsCount) {
  world_.keeps_best = true;
  world_.options.stop.rounds = 100;
  world_.validation_losses = {0.5, 0.25};
  world_.on_report = [this](const policies::Report& report) {
    if (report.round == 2) world_.in_training = {StopMessage{.reason = "cancelled"}};
  };
  const std::vector<std::string> done = Run();

  const auto place = [&](const char* what) { return std::ranges::find(done, what) - done.begin(); };
  const auto kept = std::find(done.rbegin(), done.rend(), "keep best");
  EXPECT_EQ(std::ranges::count(done, "keep best"), 2);
  EXPECT_EQ(done.rend() - kept, place("says validated after 4, best after 4"));
  EXPECT_LT(place("says validated after 4, best after 4"), place("keep checkpoint"));
  EXPECT_THAT(done, Not(Contains("take best")));
}

TEST_F(ValidatingLifeTest, TheCopyOfTheBestIsMadeInTheTimeOfItsValidation) {
  world_.keeps_best = true;
  world_.validation_losses = {0.25, 0.5};
  world_.options.stop.rounds = 6;
  Run();

  // A tick for the evaluation, and one for the copy of what is the best.
  EXPECT_THAT(world_.validation_seconds, ElementsAre(2, 1, 0));
}

TEST_F(ValidatingLifeTest, AGroupThatFallsApartMeanwhileIsLost) {
  world_.validating = Failure{.message = "a peer is gone", .of_group = true};
  const std::vector<std::string> done = Run();

  EXPECT_THAT(done, Contains("says lost 3 after 2: the group was lost: a peer is gone"));
  EXPECT_THAT(done, Contains("abandon"));  // what is written of checkpoints is still told
  EXPECT_EQ(world_.endings, 1);
}

TEST_F(LifeTest, WhatCannotBeLoadedIsItsOwnFailure) {
  world_.loading = Failure{.field = "data.text", .message = "not found"};

  EXPECT_THAT(Run({}), ElementsAre("load", "says failed data.text: not found"));
  EXPECT_TRUE(failed_);
}

TEST_F(LifeTest, AGroupThatCannotMeetIsLost) {
  world_.meeting = Failure{.message = "connection refused", .of_group = true};

  EXPECT_THAT(Run({}), ElementsAre("load", "says ready", "meet", "says endpoint here of 3", "leave",
                                   "says lost 3 after 0: the group could not be formed: "
                                   "connection refused",
                                   kAgentIsGone));
}

TEST_F(LifeTest, WhoCanBeInNoSuchGroupFails) {
  world_.meeting = Failure{.message = "no GPU"};

  EXPECT_EQ(Run({}).back(), "says failed the group could not be formed: no GPU");
}

TEST_F(LifeTest, APlanOfAnotherSizeIsRefused) {
  protocol::GroupMessage group = world_.Group();
  group.plan.batch_sizes = {4};
  world_.mail = {group, world_.Peers()};

  EXPECT_THAT(Run({}), ElementsAre("load", "says ready",
                                   "says failed the group's plan does not fit its size"));
}

TEST_F(LifeTest, AskedToLeaveWhileItLoadsItGoesWithoutAWord) {
  world_.in_loading = {StopMessage{.reason = "enough", .discard = true}};

  EXPECT_THAT(Run({}), ElementsAre("load"));
  EXPECT_FALSE(failed_);
}

TEST_F(LifeTest, AskedToLeaveBeforeThereIsAGroupItGoesWithoutAWord) {
  world_.mail = {StopMessage{.reason = "enough"}, world_.Group()};

  EXPECT_THAT(Run({}), ElementsAre("load", "says ready"));
  EXPECT_FALSE(failed_);
}

TEST_F(LifeTest, AskedToLeaveWhileItWaitsForEndpointsItGoesWithoutAWord) {
  world_.mail = {world_.Group(), StopMessage{.reason = "enough"}, world_.Peers()};

  EXPECT_THAT(Run({}), ElementsAre("load", "says ready", "meet", "says endpoint here of 3"));
  EXPECT_FALSE(failed_);
}

TEST_F(LifeTest, AskedToLeaveWhileItConnectsItGoesWithoutAWord) {
  world_.in_meeting = {StopMessage{.reason = "enough"}, policies::Plan{.version = 2}};

  EXPECT_THAT(Run({}), ElementsAre("load", "says ready", "meet", "says endpoint here of 3"));
  EXPECT_FALSE(failed_);
}

TEST_F(LifeTest, EndpointsOfAFormerGenerationAreLeftUnread) {
  world_.mail = {world_.Group(), protocol::PeersMessage{.generation = 2, .endpoints = {}},
                 world_.Peers()};

  EXPECT_THAT(Run(), Contains("says evaluated"));
}

TEST_F(LifeTest, AnAgentThatIsGoneBeforeTheGroupHasMetEndsIt) {
  world_.mail = {};
  EXPECT_EQ(Run({}).back(), kAgentIsGone);

  world_.mail = {world_.Group()};
  EXPECT_EQ(Run({}).back(), kAgentIsGone);
}

TEST_F(LifeTest, AGroupThatIsLostInTrainingIsSaidToBe) {
  world_.on_compute = [this](const engine::Batch& batch) {
    if (batch.round == 1) world_.transport().Abort("peer 1 is gone");
  };

  EXPECT_THAT(Run(), AfterRounds(1, {"step 1", "abandon", "leave",
                                     "says lost 3 after 1: the group was lost: rank 0: peer 1 is "
                                     "gone",
                                     kAgentIsGone}));
}

TEST_F(LifeTest, AGroupThatIsLostBeforeTheFirstRoundIsSaidToBe) {
  world_.transport().Abort("peer 1 is gone");

  EXPECT_THAT(Run(), ElementsAre("abandon", "leave",
                                 "says lost 3 after 0: the group was lost: rank 0: peer 1 is gone",
                                 kAgentIsGone));
}

TEST_F(LifeTest, AGroupThatIsLostInTheEvaluationIsSaidToBe) {
  world_.validating = Failure{.message = "peer 1 is gone", .of_group = true};

  EXPECT_THAT(Run(), Contains("says lost 3 after 2: the group was lost: peer 1 is gone"));
}

TEST_F(LifeTest, AnEvaluationThatFailsByItselfLosesNoGroup) {
  world_.validating = Failure{.message = "out of memory"};

  EXPECT_EQ(Run().back(), "says failed out of memory");
}

TEST_F(LifeTest, AGroupThatIsLostOverItsBuffersIsSaidToBe) {
  world_.agreeing = Failure{.message = "peer 1 is gone", .of_group = true};

  EXPECT_THAT(Run(), AfterRounds(2, {"agree over 8", "abandon", "leave",
                                     "says lost 3 after 2: the group was lost: peer 1 is gone",
                                     kAgentIsGone}));
}

TEST_F(LifeTest, AStagedGroupThatIsLostWhileItAgreesOnParametersIsSaidToBe) {
  protocol::GroupMessage group = world_.Group();
  group.transport = protocol::TransportKind::kStaged;
  world_.mail = {group, world_.Peers()};
  EXPECT_THAT(Run(), Contains("says evaluated"));

  ScriptedWorld lost;
  lost.mail = {group, lost.Peers()};
  lost.on_report = [&lost](const policies::Report& report) {
    if (report.round == 1) lost.transport().Abort("peer 1 is gone");
  };
  Life(lost, lost).Run();
  EXPECT_THAT(lost.log,
              Contains("says lost 3 after 2: the group was lost: rank 0: peer 1 is gone"));
  EXPECT_THAT(lost.log, Not(Contains(StartsWith("agree over"))));
}

TEST_F(LifeTest, DivergenceIsTheJobsOwnFailure) {
  world_.on_compute = [this](const engine::Batch&) { world_.SpoilGradients(); };
  const std::vector<std::string> done = Run();

  EXPECT_THAT(done.back(),
              StartsWith("says failed training diverged: the gradient was not finite"));
  EXPECT_EQ(failed_->lost_generation, 0u);
  EXPECT_FALSE(failed_->transient);
}

TEST_F(LifeTest, OutOfMemoryIsTheWorkersOwnFailure) {
  world_.computing = Failure{.message = "out of memory: 41 samples"};

  EXPECT_THAT(Run(), ElementsAre("says failed out of memory: 41 samples"));
}

TEST_F(LifeTest, AResultThatCannotBeWrittenIsNotSaidToBeThere) {
  world_.writing = Failure{.message = "no space left on device", .transient = true};
  const std::vector<std::string> done = Run();

  EXPECT_EQ(done.back(), "says failed no space left on device, transient");
  EXPECT_THAT(done, Not(Contains("says evaluated")));
}

TEST_F(LifeTest, ASuspensionWithoutItsCheckpointIsNone) {
  Stop({.reason = "paused", .suspend = true});
  world_.writing = Failure{.message = "no space left on device", .transient = true};

  EXPECT_EQ(Run().back(), "says failed no space left on device, transient");
}

// ---- Checkpoints while it trains

TEST_F(LifeTest, ACheckpointIsToldOfAtTheFirstEdgeAfterItIsWritten) {
  world_.checkpoints_every = Seconds(1);
  world_.options.stop.rounds = 3;

  std::vector<std::string> done = Run();

  std::erase_if(done, [](const std::string& line) {
    return !line.starts_with("copy") && !line.starts_with("says");
  });
  EXPECT_THAT(done, ElementsAre("says report 0", "copy 1", "says report 1",
                                "says checkpoint checkpoints/3-1.safetensors", "copy 2",
                                "says report 2", "says checkpoint checkpoints/3-2.safetensors",
                                "copy 3", "says checkpoint checkpoints/3-3.safetensors",
                                "says evaluated", "says finished model.pt (3 rounds completed)"));
}

TEST_F(LifeTest, OneAtATimeIsWritten) {
  world_.checkpoints_every = Seconds(1);
  world_.disk = ScriptedWorld::Disk::kSlow;
  world_.options.stop.rounds = 5;
  const std::vector<std::string> done = Run();

  EXPECT_THAT(done, Contains(StartsWith("copy")).Times(1));
  EXPECT_THAT(done, Not(Contains(StartsWith("says checkpoint"))));
}

TEST_F(LifeTest, OneThatComesToNothingIsTriedAgainAnIntervalLater) {
  world_.checkpoints_every = Seconds(2);
  world_.disk = ScriptedWorld::Disk::kFull;
  world_.options.stop.rounds = 5;
  const std::vector<std::string> done = Run();

  EXPECT_THAT(done, AllOf(Contains("copy 2"), Contains("copy 4"), Contains("copy 5")));
  EXPECT_THAT(done, Not(Contains(StartsWith("says checkpoint"))));
  EXPECT_FALSE(failed_);
}

TEST_F(LifeTest, ThatOfTheEndIsCopiedAsSoonAsTheFormerOneIsWritten) {
  world_.checkpoints_every = Seconds(1);
  world_.disk = ScriptedWorld::Disk::kSlow;
  world_.on_validate = [this] { world_.disk = ScriptedWorld::Disk::kQuick; };
  const std::vector<std::string> done = Run();

  const std::vector<std::string> rest(std::find(done.begin(), done.end(), "validate"), done.end());
  EXPECT_THAT(rest,
              ElementsAre("validate", "says checkpoint checkpoints/3-1.safetensors", "copy 2",
                          "says checkpoint checkpoints/3-2.safetensors", "keep result", "discard",
                          "says evaluated", "says finished model.pt (2 rounds completed)"));
}

TEST_F(LifeTest, WhereNobodyWantsThemThereAreNone) {
  protocol::GroupMessage group = world_.Group();
  group.loss_seconds = 0;
  world_.mail = {group, world_.Peers()};
  world_.checkpoints_every = Seconds(1);

  EXPECT_THAT(Run(), Not(Contains(StartsWith("copy"))));
}

// ---- Subsets

class ChoosingLifeTest : public LifeTest {
 protected:
  ChoosingLifeTest() {
    world_.options.train_samples = 4;
    world_.options.subset = {.kind = engine::SubsetKind::kCraig, .epochs = 1};
    world_.subsets = {{1, 3, 5, 7}, {0, 2, 4, 6}};
  }
};

TEST_F(ChoosingLifeTest, OneIsChosenBeforeTheFirstRoundAndAfterEachEpochButTheLast) {
  std::vector<std::uint64_t> used;
  world_.on_compute = [&](const engine::Batch& batch) {
    used.insert(used.end(), batch.indices.begin(), batch.indices.end());
  };

  const std::vector<std::string> done = Run();

  EXPECT_EQ(std::ranges::count(done, "choose"), 2);
  EXPECT_EQ(done[0], "choose");
  EXPECT_EQ(done[1], "says selected 1 after 0, stood: as the test says");
  EXPECT_THAT(done, Contains("says selected 2 after 1, stood: as the test says"));
  std::sort(used.begin(), used.begin() + 4);
  std::sort(used.begin() + 4, used.end());
  EXPECT_THAT(used, ElementsAre(1, 3, 5, 7, 0, 2, 4, 6));
}

TEST_F(ChoosingLifeTest, AnyOtherRankSaysNothingOfIt) {
  world_.mail = {world_.Group(1), world_.Peers()};

  EXPECT_THAT(Run(), AllOf(Contains("choose"), Not(Contains(StartsWith("says selected")))));
}

TEST_F(ChoosingLifeTest, WhereThereIsNoneTheJobFails) {
  world_.choosing = Failure{.field = "data.subset.craig", .message = "it cannot be"};

  EXPECT_EQ(Run().back(), "says failed data.subset.craig: it cannot be");
}

}  // namespace
}  // namespace tactus::life
