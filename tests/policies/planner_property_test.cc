// What every plan and every decision of the planner keeps, whatever it sees.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/catalogue.h"
#include "policies/compatibility.h"
#include "policies/plan_names.h"
#include "policies/planner.h"
#include "tests/policies/mended_memory.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

constexpr std::uint64_t kSeeds = 1000;

template <typename T>
T Any(Rng& rng, const std::vector<T>& values) {
  return values[rng.Below(values.size())];
}

// Options that a job's validation would let through.
PlannerOptions AnyOptions(Rng& rng) {
  PlannerOptions options;
  do {
    for (const Axis axis : kAxes) PolicyOf(options, axis) = Any(rng, PoliciesOf(axis)).name;
    options.optimizer = Any<std::string>(rng, {"sgd", "sgd", "adam", "adamw", "lamb"});
    options.momentum = Any<double>(rng, {0, 0, 0.5, 0.9});
  } while (!ConflictsOf(options).empty());
  const bool searched = options.synchronization.policy == "adacomm" && rng.Below(2) == 0;
  options.synchronization.period = searched ? 0 : 1 + static_cast<std::uint32_t>(rng.Below(40));
  options.synchronization.period_max = 1 + static_cast<std::uint32_t>(rng.Below(128));
  options.synchronization.interval_seconds = 0.1 + 20 * rng.Uniform();
  options.synchronization.steps_max = 1 + static_cast<std::uint32_t>(rng.Below(1024));
  options.batch.per_worker = 1 + static_cast<std::uint32_t>(rng.Below(256));
  options.batch.batch_min = 1 + static_cast<std::uint32_t>(rng.Below(4));
  options.base_batch = 1 + static_cast<std::uint32_t>(rng.Below(512));
  options.synchronization.look_ahead = rng.Below(2) == 0;
  options.synchronization.log_time = rng.Below(2) == 0;
  return options;
}

// A number that a report may hold: mostly sensible, sometimes extreme or none at all.
double AnyNumber(Rng& rng, double usual) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::uint64_t kind = rng.Below(40);
  if (kind == 0) {
    return Any<double>(rng, {0, -1, 1e-300, 1e300, kInfinity, -kInfinity,
                             std::numeric_limits<double>::quiet_NaN()});
  }
  return usual * std::exp(rng.Normal());
}

Report AnyReport(Rng& rng, const Plan& plan, const Report& of_round) {
  Report report = of_round;
  report.steps = plan.synchronization == Synchronization::kDelayed
                     ? 1 + static_cast<std::uint32_t>(rng.Below(plan.period))
                     : plan.period;
  report.samples = std::uint64_t{plan.batch_sizes[report.rank]} * report.steps;
  report.compute_seconds = AnyNumber(rng, 0.001 * static_cast<double>(report.samples));
  report.blocked_seconds = AnyNumber(rng, 0.1);
  report.transfer_seconds = AnyNumber(rng, 0.1);
  report.round_seconds = AnyNumber(rng, 0.2);
  return report;
}

Report AnyRound(Rng& rng, const Plan& plan, std::uint64_t round) {
  return {.round = round,
          .plan_version = plan.version,
          .gradient_norm2_global = AnyNumber(rng, 1),
          .samples_global = 1 + rng.Below(100'000),
          .loss_mean_global = AnyNumber(rng, 1),
          .nonfinite_members = rng.Below(50) == 0 ? 1u : 0u,
          .contributors = static_cast<std::uint32_t>(plan.batch_sizes.size()),
          .samples_gradient_norm2 = AnyNumber(rng, 1000),
          .gradient_samples = AnyNumber(rng, 1000),
          .orthogonality = rng.Uniform(),
          .learning_rate = AnyNumber(rng, 0.1),
          .gain = AnyNumber(rng, 1)};
}

void ExpectSound(const Revision& revision, std::uint32_t members, const PlannerOptions& options) {
  EXPECT_TRUE(Fits(revision.plan, members));
  EXPECT_TRUE(Allowed(revision.plan, FactsOf(options)));
  EXPECT_FALSE(revision.plan.reason.empty());
  EXPECT_FALSE(revision.decisions.empty());
  std::set<Axis> axes;
  for (const Decision& decision : revision.decisions) {
    EXPECT_TRUE(axes.insert(decision.axis).second) << "two decisions of one axis";
    EXPECT_FALSE(decision.reason.empty());
    EXPECT_NE(decision.from, decision.to) << decision.reason;
    EXPECT_EQ(decision.plan_version, revision.plan.version);
    EXPECT_EQ(decision.to, ValueOf(revision.plan, decision.axis));
    EXPECT_TRUE(std::isfinite(decision.predicted_gain)) << decision.reason;
    EXPECT_TRUE(std::isfinite(decision.seconds));
    for (const Quantity& input : decision.inputs) {
      EXPECT_FALSE(input.name.empty());
      EXPECT_TRUE(std::isfinite(input.value)) << input.name << ": " << decision.reason;
    }
    for (const Alternative& other : decision.alternatives) {
      EXPECT_NE(other.value, decision.to);
      EXPECT_TRUE(std::isfinite(other.predicted_gain)) << other.value;
    }
  }
}

// What is undone, or goes on, was begun.
void ExpectTrialAfter(Trial before, Trial trial) {
  const bool runs = before == Trial::kBegins || before == Trial::kRuns;
  const bool goes_on = trial == Trial::kRuns || trial == Trial::kUndone;
  EXPECT_TRUE(!goes_on || runs) << NameOf(trial);
}

TEST(PlannerPropertyTest, EveryPlanFitsIsAllowedAndExplainedWhateverIsReported) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const PlannerOptions options = AnyOptions(rng);
    std::optional<Planner> planner(options);
    Plan plan;
    std::uint32_t members = 0;

    for (std::uint64_t round = 0; round < 150; ++round) {
      if (round % 90 == 0) {
        members = 1 + static_cast<std::uint32_t>(rng.Below(6));
        const Revision first = planner->Start({.members = members});
        ExpectSound(first, members, options);
        const std::uint64_t version = plan.version + 1;
        plan = first.plan;
        plan.version = version;
      }
      if (round % 90 == 45 && rng.Below(2) == 0) planner.emplace(options).Resume(plan, {});
      Report report = AnyRound(rng, plan, round);
      for (report.rank = 0; report.rank < members; ++report.rank) {
        if (rng.Below(200) > 0) planner->Observe(AnyReport(rng, plan, report));
      }
      const std::optional<Revision> revision = planner->Decide(plan, {});
      if (revision) {
        ExpectSound(*revision, members, options);
        EXPECT_EQ(revision->plan.version, plan.version + 1);
        ExpectTrialAfter(plan.trial, revision->plan.trial);
        EXPECT_NE(revision->plan.batch_sizes.size(), 0u);
        plan = revision->plan;
      }
      for (const Decision& decision : planner->TakeMeasured()) {
        EXPECT_TRUE(decision.measured_gain.has_value());
        EXPECT_FALSE(decision.metric.empty());
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

// A group under whatever plans a planner has for it, and whatever is reported.
class AnyGroup {
 public:
  explicit AnyGroup(Rng& rng) : rng_(rng), members_(1 + static_cast<std::uint32_t>(rng.Below(6))) {}

  void Start(Planner& planner) {
    const std::uint64_t version = plan_.version + 1;
    plan_ = planner.Start({.members = members_}).plan;
    plan_.version = version;
  }

  // A round of reports, of which some do not come; `each` gets them one by one.
  template <typename Each>
  void Round(const Each& each) {
    Report report = AnyRound(rng_, plan_, round_++);
    for (report.rank = 0; report.rank < members_; ++report.rank) {
      if (rng_.Below(200) > 0) each(AnyReport(rng_, plan_, report));
    }
  }
  void Follow(const std::optional<Revision>& revision) {
    if (revision) plan_ = revision->plan;
  }

  const Plan& plan() const { return plan_; }
  std::uint32_t members() const { return members_; }

 private:
  Rng& rng_;
  const std::uint32_t members_;
  Plan plan_;
  std::uint64_t round_ = 0;
};

void ExpectAlike(const std::optional<Revision>& one, const std::optional<Revision>& other) {
  ASSERT_EQ(one.has_value(), other.has_value());
  if (!one) return;
  EXPECT_EQ(one->plan, other->plan);
  EXPECT_EQ(one->decisions, other->decisions);
}

TEST(PlannerPropertyTest, OneMadeOfTheMemoryOfAnotherGoesOnLikeItWhateverIsReported) {
  for (std::uint64_t seed = 1; seed <= kSeeds / 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const PlannerOptions options = AnyOptions(rng);
    AnyGroup group(rng);
    Planner lives(options);
    group.Start(lives);
    std::optional<Planner> other(options);
    ASSERT_EQ(other->Recall(lives.Memory(), group.members()), "");

    for (int round = 0; round < 100; ++round) {
      group.Round([&](const Report& report) {
        lives.Observe(report);
        other->Observe(report);
        if (rng.Below(10) > 0) return;
        const std::string memory = other->Memory();
        other.emplace(options);
        EXPECT_EQ(other->Recall(memory, group.members()), "");
        other->Resume(group.plan(), {});
      });
      const std::optional<Revision> revision = lives.Decide(group.plan(), {});
      ExpectAlike(revision, other->Decide(group.plan(), {}));
      ASSERT_EQ(lives.Memory(), other->Memory());  // with what was measured
      lives.TakeMeasured();
      other->TakeMeasured();
      if (testing::Test::HasFailure()) return;
      group.Follow(revision);
    }
  }
}

// Whoever writes such bytes can write jobs as well; but a coordinator must not fall by them.
TEST(PlannerPropertyTest, AMemoryThatSomebodyChangedIsRefusedOrServesAndEndsNoProcess) {
  int taken = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const PlannerOptions options = AnyOptions(rng);
    AnyGroup group(rng);
    Planner lives(options);
    group.Start(lives);
    for (int round = 0; round < 60; ++round) {
      group.Round([&](const Report& report) { lives.Observe(report); });
      group.Follow(lives.Decide(group.plan(), {}));
    }
    std::string memory = lives.Memory();
    for (std::uint64_t i = 0; i <= rng.Below(3); ++i) {
      const char byte = static_cast<char>(Any<int>(rng, {0, 1, 0x7f, 0x80, 0xf0, 0xff}));
      for (std::uint64_t at = rng.Below(memory.size()), end = at + 1 + rng.Below(8); at < end; ++at)
        if (at < memory.size()) memory[at] = byte;
    }

    Planner other(options);
    taken += other.Recall(Mended(memory), group.members()).empty() ? 1 : 0;
    other.Resume(group.plan(), {});

    for (int round = 0; round < 60; ++round) {
      group.Round([&](const Report& report) { other.Observe(report); });
      group.Follow(other.Decide(group.plan(), {}));
      other.TakeMeasured();
    }
  }
  EXPECT_GT(taken, 100);
}

TEST(PlannerPropertyTest, TheSameReportsGiveTheSamePlans) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const PlannerOptions options = AnyOptions(rng);
    const VirtualJobOptions job{.workers = {{.speed = 100}, {.speed = 50}, {.speed = 25}},
                                .planner = options,
                                .noise = 0.05,
                                .seed = seed};
    VirtualJob one(job);
    VirtualJob other(job);

    one.Run(200);
    other.Run(200);

    ASSERT_EQ(one.plans(), other.plans()) << "seed " << seed;
    ASSERT_EQ(one.decisions(), other.decisions()) << "seed " << seed;
  }
}

// Stationary but for a loss that falls: the speeds, the transfer and their noise stay.
TEST(PlannerPropertyTest, NothingFlapsUnderStationaryNoise) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    VirtualJobOptions options{.workers = {},
                              .planner = AnyOptions(rng),
                              .transfer_seconds = 0.001 * std::exp(7 * rng.Uniform()),
                              .noise = 0.05,
                              .seed = seed};
    options.planner.batch.per_worker = 16 + static_cast<std::uint32_t>(rng.Below(64));
    options.loss.variance = std::exp(8 * rng.Uniform());
    options.loss.sample_noise = 0.3;
    const std::uint64_t members = 2 + rng.Below(5);
    for (std::uint64_t i = 0; i < members; ++i) {
      options.workers.push_back({.speed = 100 * std::exp(2 * rng.Uniform())});
    }
    VirtualJob job(options);

    job.Run(500);
    const std::size_t settled = job.decisions().size();
    job.Run(1500);

    ASSERT_LE(job.DecisionsOf(Axis::kAggregation).size(), 3u) << "seed " << seed;
    ASSERT_LE(job.DecisionsOf(Axis::kBatch).size(), 40u) << "seed " << seed;
    ASSERT_LE(job.DecisionsOf(Axis::kSynchronization).size(), 24u) << "seed " << seed;
    ASSERT_LE(job.decisions().size() - settled, 24u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
