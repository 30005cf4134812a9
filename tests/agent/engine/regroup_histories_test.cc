// Random histories of groups that are lost, with windows of local steps that go on and others that
// do not: what must hold whatever happens.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "base/rng.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/survivor.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Plan;
using policies::Synchronization;

// Members die, join, fall apart at moments of their own and hear of what others do not; plans
// change with the groups.
class History {
 public:
  // followers: some plans are of members that follow leaders.
  explicit History(std::uint64_t seed, bool followers = false)
      : rng_(seed), followers_(followers), all_(DrawOptions(), 7) {
    const std::size_t first = 2 + rng_.Below(3);
    for (std::size_t i = 0; i < first; ++i) members_.push_back(&all_[i]);
    joined_ = first;
  }

  void Run() {
    bool told = false;
    for (int events = 0; events < 7; ++events) {
      RunGroup(told);
      told = true;
      if (joined_ < 7 && rng_.Below(4) == 0) members_.push_back(&all_[joined_++]);
    }
    Train(members_, {.plan = DrawPlan()});
  }

  void ExpectPromises() {
    ExpectAlike(members_);
    for (const Survivor* const each : members_) EXPECT_EQ(each->reason(), "3 epochs completed");
    EXPECT_EQ(TimesUsed(all_.Everybody(), samples_), std::vector<std::uint64_t>(samples_, 3));
  }

  std::uint64_t went_on() const { return went_on_; }

 private:
  EngineOptions DrawOptions() {
    samples_ = 40 + rng_.Below(200);
    EngineOptions options{.train_samples = samples_,
                          .micro_batch = static_cast<std::uint32_t>(1 + rng_.Below(4)),
                          .optimizer = SgdOptions{.learning_rate = 0.003, .momentum = 0.5},
                          .keep_local_momentum = rng_.Below(2) == 0,
                          .elastic = rng_.Below(2) == 0,
                          .stop = {.epochs = 3}};
    if (rng_.Below(3) == 0) options.optimizer = AdamOptions{.learning_rate = 0.01};
    if (rng_.Below(3) == 0) options.block_momentum = 0.3;
    adasum_ = rng_.Below(4) == 0;
    return options;
  }

  Plan DrawPlan() {
    Plan plan{.version = version_ += 10};
    if (rng_.Below(8) > 0) {
      plan.synchronization = Synchronization::kPeriodic;
      plan.period = static_cast<std::uint32_t>(1 + rng_.Below(5));
    }
    if (followers_ && rng_.Below(3) > 0) {
      plan.synchronization = Synchronization::kLsgd;
      plan.period = static_cast<std::uint32_t>(1 + rng_.Below(5));
    }
    const bool differ = policies::MembersDiffer(plan);
    if (adasum_ && !differ) plan.aggregation = Aggregation::kAdasum;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      plan.batch_sizes.push_back(static_cast<std::uint32_t>(rng_.Below(5)));
    }
    plan.batch_sizes[rng_.Below(members_.size())] = 3;
    return plan;
  }

  // It may come to the end before anything happens.
  void RunGroup(bool told) {
    std::uint64_t rounds = 0;
    for (Survivor* const each : members_) rounds = std::max(rounds, each->member().rounds);
    rounds += rng_.Below(3);
    Batches batches;
    std::vector<bool> torn;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      batches.push_back(rng_.Below(2) == 0 ? kAllBatches : 1 + rng_.Below(6));
      torn.push_back(rng_.Below(4) == 0);
    }
    Stage stage{
        .plan = DrawPlan(), .after_step = LoseAfter(rounds, batches), .told_of_rounds = told};
    const std::size_t rank = rng_.Below(members_.size());
    if (rng_.Below(2) == 0 && members_.size() > 1) {
      stage.before_step = DieIn(rounds, static_cast<int>(rank));
    }
    const std::vector<Survivor*> before = members_;
    TrainTorn(members_, stage, {.rounds = rounds, .ranks = torn});
    ForgetWhatNobodyKnows(before);
    for (Survivor* const each : members_) went_on_ += each->member().window ? 1 : 0;
  }

  // Adasum goes from one to the next: who has all may die when the others have not.
  void ForgetWhatNobodyKnows(const std::vector<Survivor*>& before) {
    std::uint64_t known = 0;
    for (Survivor* const each : members_) known = std::max(known, each->member().rounds);
    for (Survivor* const each : before) {
      if (std::ranges::find(members_, each) == members_.end()) each->ForgetFrom(known);
    }
  }

  Rng rng_;
  const bool followers_;
  std::uint64_t samples_ = 0;
  bool adasum_ = false;
  std::uint64_t version_ = 0;
  Members all_;
  std::vector<Survivor*> members_;
  std::size_t joined_ = 0;
  std::uint64_t went_on_ = 0;  // windows that groups were lost in
};

TEST(RegroupWindowsPropertyTest, EverySampleIsUsedOnceAnEpochAndAllEndAlike) {
  std::uint64_t windows = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    History history(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    history.Run();
    history.ExpectPromises();
    if (testing::Test::HasFailure()) return;
    windows += history.went_on();
  }
  EXPECT_GT(windows, 300u);
}

// Each has parameters of its own under some of the plans, and none in the end.
TEST(RegroupWindowsPropertyTest, MembersThatFollowLeadersEndAlikeToo) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    History history(seed, true);
    SCOPED_TRACE("seed " + std::to_string(seed));
    history.Run();
    history.ExpectPromises();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tactus::engine
