#include "tests/agent/engine/own_parameters.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <mutex>
#include <utility>

#include "tests/agent/engine/survivor.h"

namespace tactus::engine {

void SpoilGradients(GroupRun& run, const Spoilt& spoilt) {
  run.after_gradient = [spoilt](int rank, std::uint64_t round, std::span<float> gradients) {
    if (spoilt.rank.value_or(rank) != rank || round < spoilt.from || round >= spoilt.to) return;
    gradients[0] = std::numeric_limits<float>::quiet_NaN();
  };
}

void ExpectEpochsThatEndWithTheMean(GroupRun run) {
  ASSERT_EQ(run.plan.batch_sizes.size(), 4u);
  run.plan.batch_sizes = {4, 2, 0, 3};
  run.options.train_samples = 157;
  run.options.micro_batch = 3;
  run.options.stop = {.epochs = 3};

  const auto group = Train(run);

  ExpectEverySampleOncePerEpoch(group, 157, 3);
  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    EXPECT_EQ(member.parameters, group[0].parameters) << "training ends with the mean of all";
  }
}

LookedAt TrainAndLook(GroupRun run) {
  run.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 2, .samples = 10};
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<float>> seen;
  run.validate = [&](int, const RoundEngine& engine, std::span<const float> parameters) {
    const std::scoped_lock lock(mutex);
    seen[engine.rounds()].push_back(parameters[0]);
    return 1.0;
  };

  LookedAt looked{.group = Train(run)};

  EXPECT_FALSE(seen.empty());
  for (const auto& [rounds, values] : seen) {
    EXPECT_EQ(values, std::vector<float>(run.plan.batch_sizes.size(), values[0])) << rounds;
    looked.parameters[rounds] = values[0];
  }
  return looked;
}

std::vector<MemberRun> GoOnFromTheMean(GroupRun run, GroupRun next) {
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 1 && engine.rounds() == 3) engine.RequestStop("later", StopKind::kSuspend);
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kSuspended);
    if (!member.state || !group[0].state) {
      ADD_FAILURE() << "a member that is suspended has no state";
      return {};
    }
    EXPECT_EQ(member.parameters, group[0].parameters);
    EXPECT_EQ(member.state->optimizer, group[0].state->optimizer);
  }

  next.from = {.state = *group[0].state, .parameters = group[0].parameters};
  std::vector<MemberRun> end = Train(next);
  for (const MemberRun& member : end) EXPECT_EQ(member.outcome, Outcome::kFinished);
  return end;
}

void ExpectToBecomeAlike(GroupRun run) {
  const std::size_t members = run.plan.batch_sizes.size();
  run.options.stop = {.rounds = 12};
  run.before_step = [sizes = run.plan.batch_sizes](int, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 2) engine.OfferPlan({.version = 1, .batch_sizes = sizes});
  };

  const auto group = Train(run);

  for (std::size_t rank = 1; rank < members; ++rank) {
    ASSERT_EQ(group[rank].trace.size(), 12u);
    EXPECT_NE(group[rank].trace[1], group[0].trace[1]);
    for (std::size_t round = 6; round < 12; ++round) {
      EXPECT_EQ(group[rank].trace[round], group[0].trace[round]) << rank << " in " << round;
    }
  }
}

void ExpectALossToLeaveEachItsOwn(const EngineOptions& options, policies::Plan plan) {
  const std::size_t count = plan.batch_sizes.size();
  const Members all(options, count + 1);
  plan.version = 1;
  std::vector<Survivor*> members = all.Everybody();
  members.pop_back();
  Train(members, {.plan = plan, .before_step = DieIn(4, 1), .told_of_rounds = false});
  ASSERT_EQ(members.size(), count - 1);
  ASSERT_NE(all[0].parameters(), all[2].parameters());
  std::map<const Member*, std::vector<float>> before;
  for (Survivor* const member : members) {
    EXPECT_EQ(member->member().rounds, 4u);
    before[&member->member()] = member->parameters();
  }

  members.push_back(&all[count]);
  plan.version = 10;
  std::map<const Member*, std::vector<float>> begun;
  std::mutex mutex;
  Stage stage{.plan = plan};
  stage.before_step = [&](RoundEngine& engine, collective::Transport& transport) {
    const std::scoped_lock lock(mutex);
    Survivor& own = *members[static_cast<std::size_t>(transport.rank())];
    if (engine.rounds() == 4) begun.try_emplace(&own.member(), own.parameters());
    return true;
  };
  Train(members, stage);

  ASSERT_EQ(begun.size(), count);
  for (const auto& [member, parameters] : before) EXPECT_EQ(begun.at(member), parameters);
  EXPECT_EQ(begun.at(&all[count].member()), before.at(&all[0].member()));
  ExpectAlike(members);
}

}  // namespace tactus::engine
