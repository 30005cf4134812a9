// The rules of `adapt` and of what belongs to it: the optimizers and the stop rule in base steps.

#include "coordinator/spec/adapt_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "coordinator/spec/engine_options.h"
#include "coordinator/spec/spec_validation.h"
#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

v1::SynchronizationAxis& When(v1::JobSpec& spec, v1::SynchronizationPolicy policy) {
  v1::SynchronizationAxis& axis = *spec.mutable_adapt()->mutable_synchronization();
  axis.set_policy(policy);
  if (policy == v1::SYNCHRONIZATION_POLICY_PERIODIC) axis.set_period(8);
  return axis;
}

v1::Schedule& ScheduleOf(v1::JobSpec& spec) {
  return *spec.mutable_adapt()->mutable_learning_rate()->mutable_schedule();
}

class AdaptRuleTest : public testing::TestWithParam<Rule> {};

// Each rule, broken alone, gives exactly one violation, of the right field.
TEST_P(AdaptRuleTest, ABrokenRuleIsReportedAtItsField) { ExpectReportedAtItsField(GetParam()); }

constexpr auto kEveryStep = v1::SYNCHRONIZATION_POLICY_EVERY_STEP;
constexpr auto kPeriodic = v1::SYNCHRONIZATION_POLICY_PERIODIC;
constexpr auto kLsgd = v1::SYNCHRONIZATION_POLICY_LSGD;
constexpr auto kDecentlam = v1::SYNCHRONIZATION_POLICY_DECENTLAM;
constexpr auto kPostLocal = v1::SYNCHRONIZATION_POLICY_POST_LOCAL;
constexpr auto kAdacomm = v1::SYNCHRONIZATION_POLICY_ADACOMM;
constexpr auto kDelayed = v1::SYNCHRONIZATION_POLICY_DELAYED;
constexpr auto kAuto = v1::SYNCHRONIZATION_POLICY_AUTO;

// What is not said is auto's, or none's.
const Rule kUnsaidRules[] = {
    {"PeriodOfTheDefaultPolicy",
     [](auto& s) { s.mutable_adapt()->mutable_synchronization()->set_period(4); },
     "adapt.synchronization.period", "does not apply to policy auto"},
    {"PeriodOfNone",
     [](auto& s) {
       s.mutable_adapt()->set_policy(v1::ADAPT_POLICY_NONE);
       s.mutable_adapt()->mutable_synchronization()->set_period(4);
     },
     "adapt.synchronization.period", "does not apply to policy every_step"},
    {"IntervalOfAuto",
     [](auto& s) {
       s.mutable_adapt()->mutable_synchronization()->mutable_interval()->set_seconds(60);
     },
     "adapt.synchronization.interval", "does not apply to policy auto"},
};

const Rule kSynchronizationRules[] = {
    {"PeriodMissing", [](auto& s) { When(s, kPeriodic).clear_period(); },
     "adapt.synchronization.period", "is missing"},
    {"PeriodZero", [](auto& s) { When(s, kPeriodic).set_period(0); },
     "adapt.synchronization.period", "found 0, allowed is 1 to 65536"},
    {"PeriodTooLong", [](auto& s) { When(s, kPeriodic).set_period(65537); },
     "adapt.synchronization.period", "found 65537"},
    {"PeriodOfAnotherPolicy", [](auto& s) { When(s, kEveryStep).set_period(4); },
     "adapt.synchronization.period", "does not apply to policy every_step; it is for periodic"},
    {"PeriodOfAdacomm", [](auto& s) { When(s, kAdacomm).set_period(4); },
     "adapt.synchronization.period", "does not apply to policy adacomm"},
    {"PeriodTooLongForTheBatch",
     [](auto& s) {
       s.mutable_adapt()->mutable_batch()->set_per_worker(1024);
       When(s, kPeriodic).set_period(20000);
     },
     "adapt.synchronization.period", "at most 16777216 samples"},
    {"InitialPeriodAboveTheLongest",
     [](auto& s) {
       When(s, kAdacomm).set_period_max(16);
       When(s, kAdacomm).set_initial_period(17);
     },
     "adapt.synchronization.initial_period", "found 17, allowed is 1 to 16"},
    {"InitialPeriodOfPeriodic", [](auto& s) { When(s, kPeriodic).set_initial_period(4); },
     "adapt.synchronization.initial_period", "it is for adacomm"},
    {"PeriodMaxZero", [](auto& s) { When(s, kAuto).set_period_max(0); },
     "adapt.synchronization.period_max", "found 0"},
    {"PeriodMaxOfDelayed", [](auto& s) { When(s, kDelayed).set_period_max(9); },
     "adapt.synchronization.period_max", "it is for adacomm or auto"},
    {"IntervalZero", [](auto& s) { When(s, kAdacomm).mutable_interval()->set_seconds(0); },
     "adapt.synchronization.interval", "above 0"},
    {"IntervalOfPeriodic", [](auto& s) { When(s, kPeriodic).mutable_interval()->set_seconds(5); },
     "adapt.synchronization.interval", "does not apply to policy periodic"},
    {"LossFloorInfinite",
     [](auto& s) { When(s, kAdacomm).set_loss_floor(std::numeric_limits<double>::infinity()); },
     "adapt.synchronization.loss_floor", "a finite number"},
    {"StepsMaxZero", [](auto& s) { When(s, kDelayed).set_steps_max(0); },
     "adapt.synchronization.steps_max", "found 0"},
    {"StepsMaxOfPeriodic", [](auto& s) { When(s, kPeriodic).set_steps_max(5); },
     "adapt.synchronization.steps_max", "it is for delayed or auto"},
    {"BlockMomentumOne", [](auto& s) { When(s, kPeriodic).set_block_momentum(1); },
     "adapt.synchronization.block_momentum", "0 to below 1"},
    {"BlockMomentumOfEveryStep", [](auto& s) { When(s, kEveryStep).set_block_momentum(0.3); },
     "adapt.synchronization.block_momentum", "does not apply to policy every_step"},
    {"LocalMomentumUnknown",
     [](auto& s) { When(s, kPeriodic).set_local_momentum(static_cast<v1::LocalMomentum>(7)); },
     "adapt.synchronization.local_momentum", "allowed is reset or keep"},
    {"LocalMomentumOfDelayed",
     [](auto& s) { When(s, kDelayed).set_local_momentum(v1::LOCAL_MOMENTUM_KEEP); },
     "adapt.synchronization.local_momentum", "does not apply to policy delayed"},
    {"ElasticOfEveryStep", [](auto& s) { When(s, kEveryStep).set_elastic(true); },
     "adapt.synchronization.elastic", "does not apply to policy every_step"},
    {"LookAheadOfPeriodic", [](auto& s) { When(s, kPeriodic).set_look_ahead(true); },
     "adapt.synchronization.look_ahead", "does not apply to policy periodic"},
    {"LookAheadWithoutMomentum", [](auto& s) { When(s, kDelayed).set_look_ahead(true); },
     "adapt.synchronization.look_ahead", "is the momentum of sgd"},
    {"FallbackOfDelayed",
     [](auto& s) { When(s, kDelayed).set_fallback(v1::ADACOMM_FALLBACK_PUBLISHED); },
     "adapt.synchronization.fallback", "does not apply to policy delayed"},
};

const Rule kLsgdRules[] = {
    {"PeriodMissingOfLsgd", [](auto& s) { When(s, kLsgd); }, "adapt.synchronization.period",
     "policy lsgd needs the local steps"},
    {"NodePeriodThatDoesNotDivide",
     [](auto& s) {
       When(s, kLsgd).set_period(8);
       When(s, kLsgd).set_node_period(3);
     },
     "adapt.synchronization.node_period", "is a multiple of"},
    {"PullOfPeriodic", [](auto& s) { When(s, kPeriodic).set_pull(0.5); },
     "adapt.synchronization.pull", "does not apply to policy periodic"},
    {"PullOfOne",
     [](auto& s) {
       When(s, kLsgd).set_period(8);
       When(s, kLsgd).set_pull(1);
     },
     "adapt.synchronization.pull", "allowed is 0 to below 1"},
    {"ElasticOfLsgd",
     [](auto& s) {
       When(s, kLsgd).set_period(8);
       When(s, kLsgd).set_elastic(true);
     },
     "adapt.synchronization.elastic", "does not apply to policy lsgd"},
    {"LsgdWithAnEncoding",
     [](auto& s) {
       When(s, kLsgd).set_period(8);
       s.mutable_adapt()->mutable_encoding()->set_policy(v1::ENCODING_POLICY_FLOAT16);
     },
     "adapt.synchronization.policy", "found lsgd, which does not go with"},
};

// Of 2 to 16 workers.
v1::SynchronizationAxis& Neighbours(v1::JobSpec& spec, v1::NeighbourGraph graph, double momentum) {
  spec.mutable_workers()->set_min(2);
  spec.mutable_workers()->set_max(16);
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(momentum);
  v1::SynchronizationAxis& axis = When(spec, kDecentlam);
  axis.set_graph(graph);
  return axis;
}

const Rule kDecentlamRules[] = {
    {"DecentlamOfAdam",
     [](auto& s) {
       When(s, kDecentlam);
       s.mutable_optimizer()->mutable_adam();
     },
     "adapt.synchronization.policy", "found decentlam, which does not go with optimizer adam"},
    {"DecentlamWithNesterov",
     [](auto& s) {
       When(s, kDecentlam);
       s.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
       s.mutable_optimizer()->mutable_sgd()->set_nesterov(true);
     },
     "optimizer.sgd.nesterov", "allowed is false"},
    {"DecentlamWithAnEncoding",
     [](auto& s) {
       When(s, kDecentlam);
       s.mutable_adapt()->mutable_encoding()->set_policy(v1::ENCODING_POLICY_DQ);
     },
     "adapt.synchronization.policy", "found decentlam, which does not go with"},
    {"DecentlamWithShards",
     [](auto& s) {
       When(s, kDecentlam);
       s.mutable_optimizer()->set_shard(v1::SHARD_EQUAL);
     },
     "adapt.synchronization.policy", "does not go with optimizer.shard equal"},
    {"GraphOfPeriodic", [](auto& s) { When(s, kPeriodic).set_graph(v1::NEIGHBOUR_GRAPH_RING); },
     "adapt.synchronization.graph", "does not apply to policy periodic"},
    {"PeriodOfDecentlam", [](auto& s) { When(s, kDecentlam).set_period(4); },
     "adapt.synchronization.period", "does not apply to policy decentlam"},
    {"GraphThatIsNotStable",
     [](auto& s) { Neighbours(s, v1::NEIGHBOUR_GRAPH_ONE_PEER_EXPONENTIAL, 0.9); },
     "adapt.synchronization.graph",
     "found one_peer_exponential, with which momentum 0.90 multiplies differences between 16 "
     "workers "
     "by 1.20"},
    {"GraphThatNoneOfTheSizesIsStableOn",
     [](auto& s) { Neighbours(s, v1::NEIGHBOUR_GRAPH_DIRECTED_EXPONENTIAL, 0.9); },
     "adapt.synchronization.graph", "allowed are optimizer.sgd.momentum up to 0.4"},
    {"HypercubeOfTwelve",
     [](auto& s) {
       Neighbours(s, v1::NEIGHBOUR_GRAPH_ONE_PEER_HYPERCUBE, 0.3);
       s.mutable_workers()->set_max(12);
     },
     "adapt.synchronization.graph", "workers.max is 12"},
};

TEST(AdaptChecksTest, AGraphIsAllowedWhereItsMomentumIs) {
  const auto found = [](v1::NeighbourGraph graph, double momentum, bool correct) {
    v1::JobSpec spec = TextSpec();
    Neighbours(spec, graph, momentum).set_correct_bias(correct);
    return SpecViolations(spec);
  };
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_AUTO, 0.95, true), IsEmpty());
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_RING, 0.95, true), IsEmpty());
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_EXPONENTIAL, 0.95, true), IsEmpty());
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_COMPLETE, 0.95, true), IsEmpty());
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_ONE_PEER_EXPONENTIAL, 0.45, true), IsEmpty());
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_ONE_PEER_HYPERCUBE, 0.45, true), IsEmpty());
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_DIRECTED_EXPONENTIAL, 0.35, true), IsEmpty());
  EXPECT_THAT(found(v1::NEIGHBOUR_GRAPH_DIRECTED_EXPONENTIAL, 0.9, false), IsEmpty());
}

const Rule kPostLocalRules[] = {
    {"LocalStepsWithShards",
     [](auto& s) {
       When(s, kPeriodic).set_period(4);
       s.mutable_optimizer()->set_shard(v1::SHARD_EQUAL);
     },
     "adapt.synchronization.policy",
     "found periodic, which does not go with optimizer.shard equal"},
    {"DelayWithShards",
     [](auto& s) {
       When(s, kDelayed);
       s.mutable_optimizer()->set_shard(v1::SHARD_MEMORY);
     },
     "adapt.synchronization.policy", "take every_step, or shard: none"},
    {"PeriodMissingOfPostLocal",
     [](auto& s) {
       When(s, kPostLocal);
       ScheduleOf(s).mutable_step()->add_boundaries(100);
     },
     "adapt.synchronization.period", "policy post_local needs the local steps"},
    {"PostLocalWithoutASchedule", [](auto& s) { When(s, kPostLocal).set_period(8); },
     "adapt.learning_rate.schedule", "waits until it lowers the learning rate"},
    {"PostLocalThatOnlyWarmsUp",
     [](auto& s) {
       When(s, kPostLocal).set_period(8);
       ScheduleOf(s).set_warmup_steps(100);
     },
     "adapt.learning_rate.schedule", "give step or cosine"},
    {"PostLocalWhoseRateFallsTooLittle",
     [](auto& s) {
       When(s, kPostLocal).set_period(8);
       ScheduleOf(s).mutable_step()->add_boundaries(100);
       ScheduleOf(s).mutable_step()->set_factor(0.6);
     },
     "adapt.learning_rate.schedule", "never halves the learning rate"},
    {"PostLocalWhoseCosineEndsTooHigh",
     [](auto& s) {
       When(s, kPostLocal).set_period(8);
       ScheduleOf(s).mutable_cosine()->set_steps(100);
       ScheduleOf(s).mutable_cosine()->set_final_rate(0.06);
     },
     "adapt.learning_rate.schedule", "never halves the learning rate"},
};

const Rule kLearningRateRules[] = {
    {"BaseBatchZero",
     [](auto& s) { s.mutable_adapt()->mutable_learning_rate()->set_base_batch(0); },
     "adapt.learning_rate.base_batch", "1 to 16777216"},
    {"NoBoundaries", [](auto& s) { ScheduleOf(s).mutable_step()->set_factor(0.5); },
     "adapt.learning_rate.schedule.step.boundaries", "is missing"},
    {"BoundariesFall",
     [](auto& s) {
       ScheduleOf(s).mutable_step()->add_boundaries(20);
       ScheduleOf(s).mutable_step()->add_boundaries(20);
     },
     "adapt.learning_rate.schedule.step.boundaries", "rising"},
    {"BoundaryZero", [](auto& s) { ScheduleOf(s).mutable_step()->add_boundaries(0); },
     "adapt.learning_rate.schedule.step.boundaries", "1 or more"},
    {"TooManyBoundaries",
     [](auto& s) {
       for (std::uint64_t i = 1; i <= 65; ++i) ScheduleOf(s).mutable_step()->add_boundaries(i);
     },
     "adapt.learning_rate.schedule.step.boundaries", "found 65"},
    {"FactorZero",
     [](auto& s) {
       ScheduleOf(s).mutable_step()->add_boundaries(9);
       ScheduleOf(s).mutable_step()->set_factor(0);
     },
     "adapt.learning_rate.schedule.step.factor", "above 0 to 1"},
    {"CosineWithoutSteps", [](auto& s) { ScheduleOf(s).mutable_cosine(); },
     "adapt.learning_rate.schedule.cosine.steps", "is missing"},
    {"CosineWithinItsWarmup",
     [](auto& s) {
       ScheduleOf(s).set_warmup_steps(100);
       ScheduleOf(s).mutable_cosine()->set_steps(100);
     },
     "adapt.learning_rate.schedule.cosine.steps", "more than schedule.warmup_steps, 100"},
    {"FinalRateAboveTheFirst",
     [](auto& s) {
       s.mutable_optimizer()->mutable_adamw()->set_learning_rate(0.01);
       ScheduleOf(s).mutable_cosine()->set_steps(100);
       ScheduleOf(s).mutable_cosine()->set_final_rate(0.02);
     },
     "adapt.learning_rate.schedule.cosine.final_rate", "0 to the optimizer's learning_rate"},
    {"StepsZero", [](auto& s) { s.mutable_stop()->set_steps(0); }, "stop.steps", "above 0"},
};

const Rule kLambRules[] = {
    {"LambRate", [](auto& s) { s.mutable_optimizer()->mutable_lamb()->set_learning_rate(0); },
     "optimizer.lamb.learning_rate", "above 0"},
    {"LambBeta", [](auto& s) { s.mutable_optimizer()->mutable_lamb()->set_beta2(1); },
     "optimizer.lamb.beta2", "0 to below 1"},
    {"LambRatioZero", [](auto& s) { s.mutable_optimizer()->mutable_lamb()->set_ratio_min(0); },
     "optimizer.lamb.ratio_min", "above 0"},
    {"LambRatiosCrossed",
     [](auto& s) {
       s.mutable_optimizer()->mutable_lamb()->set_ratio_min(0.5);
       s.mutable_optimizer()->mutable_lamb()->set_ratio_max(0.25);
     },
     "optimizer.lamb.ratio_max", "at least optimizer.lamb.ratio_min"},
    {"LambRatioMaxBelowTheDefaultMin",
     [](auto& s) { s.mutable_optimizer()->mutable_lamb()->set_ratio_max(0.001); },
     "optimizer.lamb.ratio_max", "found 0.001"},
};

const Rule kConflicts[] = {
    {"AdasumWithAdascale",
     [](auto& s) {
       s.mutable_adapt()->mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
       s.mutable_adapt()->mutable_learning_rate()->set_policy(v1::LEARNING_RATE_POLICY_ADASCALE);
     },
     "adapt.learning_rate.policy", "does not go with adapt.aggregation.policy adasum"},
    {"Float16WithAdasum",
     [](auto& s) {
       s.mutable_adapt()->mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
       s.mutable_adapt()->mutable_encoding()->set_policy(v1::ENCODING_POLICY_FLOAT16);
     },
     "adapt.encoding.policy", "found float16, which does not go with adapt.aggregation.policy"},
    {"AdascaleWithLamb",
     [](auto& s) {
       s.mutable_optimizer()->mutable_lamb();
       s.mutable_adapt()->mutable_learning_rate()->set_policy(v1::LEARNING_RATE_POLICY_ADASCALE);
     },
     "adapt.learning_rate.policy", "does not go with optimizer lamb"},
    {"AbsWithoutDelay",
     [](auto& s) {
       s.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_ABS);
       s.mutable_adapt()->mutable_synchronization()->set_policy(kEveryStep);
     },
     "adapt.batch.policy", "take delayed or auto"},
    {"AdacommWithAdam",
     [](auto& s) {
       When(s, kAdacomm);
       s.mutable_optimizer()->mutable_adam();
     },
     "adapt.synchronization.policy", "does not go with optimizer adam"},
};

std::string NameOf(const testing::TestParamInfo<Rule>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Unsaid, AdaptRuleTest, testing::ValuesIn(kUnsaidRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Synchronization, AdaptRuleTest, testing::ValuesIn(kSynchronizationRules),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Lsgd, AdaptRuleTest, testing::ValuesIn(kLsgdRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Decentlam, AdaptRuleTest, testing::ValuesIn(kDecentlamRules), NameOf);
INSTANTIATE_TEST_SUITE_P(PostLocal, AdaptRuleTest, testing::ValuesIn(kPostLocalRules), NameOf);
INSTANTIATE_TEST_SUITE_P(LearningRate, AdaptRuleTest, testing::ValuesIn(kLearningRateRules),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Lamb, AdaptRuleTest, testing::ValuesIn(kLambRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Conflicts, AdaptRuleTest, testing::ValuesIn(kConflicts), NameOf);

TEST(AdaptChecksTest, EveryPolicyByItselfIsAccepted) {
  for (const auto policy : {kEveryStep, kPeriodic, kAdacomm, kDelayed, kDecentlam, kAuto}) {
    v1::JobSpec spec = TextSpec();
    When(spec, policy);
    EXPECT_THAT(SpecViolations(spec), IsEmpty()) << spec.DebugString();
  }
  v1::JobSpec falling = TextSpec();
  When(falling, kPostLocal).set_period(8);
  ScheduleOf(falling).mutable_cosine()->set_steps(1000);
  EXPECT_THAT(SpecViolations(falling), IsEmpty());
  for (const auto policy : {v1::LEARNING_RATE_POLICY_LINEAR, v1::LEARNING_RATE_POLICY_SQRT,
                            v1::LEARNING_RATE_POLICY_ADASCALE, v1::LEARNING_RATE_POLICY_AUTO}) {
    v1::JobSpec spec = TextSpec();
    spec.mutable_adapt()->mutable_learning_rate()->set_policy(policy);
    EXPECT_THAT(SpecViolations(spec), IsEmpty()) << spec.DebugString();
  }
}

TEST(AdaptChecksTest, StopInBaseStepsIsAConditionOfItsOwn) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_stop()->clear_epochs();
  spec.mutable_stop()->set_steps(1500.5);

  EXPECT_THAT(SpecViolations(spec), IsEmpty());
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).stop.steps, 1500.5);
}

TEST(AdaptChecksTest, APeriodTakesItsShareOfTheSamplesOfARound) {
  v1::JobSpec spec = TextSpec();
  When(spec, kPeriodic).set_period(1 << 14);
  EXPECT_EQ(ParseSpec(spec)->workers_max, 32u);

  spec.mutable_workers()->set_min(33);

  const auto violations = SpecViolations(spec);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "workers.min");
  EXPECT_THAT(violations[0].description, HasSubstr("and this period is at most 32"));
}

TEST(PlannerOptionsTest, AreFilledFromEveryField) {
  v1::JobSpec spec = TextSpec();
  v1::Adapt& adapt = *spec.mutable_adapt();
  adapt.mutable_batch()->set_policy(v1::BATCH_POLICY_AUTO);
  adapt.mutable_batch()->set_per_worker(16);
  adapt.mutable_batch()->set_min(8);
  adapt.mutable_batch()->set_max(64);
  v1::SynchronizationAxis& when = When(spec, kAdacomm);
  when.set_initial_period(20);
  when.set_period_max(50);
  when.mutable_interval()->set_seconds(30);
  when.mutable_interval()->set_nanos(500'000'000);
  when.set_loss_floor(0.25);
  adapt.mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
  adapt.mutable_learning_rate()->set_policy(v1::LEARNING_RATE_POLICY_SQRT);
  adapt.mutable_learning_rate()->set_base_batch(128);
  adapt.mutable_encoding()->set_policy(v1::ENCODING_POLICY_DENSE);
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);

  const policies::PlannerOptions options = ParseSpec(spec)->adapt;

  EXPECT_EQ(options.batch_policy, "auto");
  EXPECT_EQ(options.batch.per_worker, 16u);
  EXPECT_EQ(options.batch.batch_min, 8u);
  EXPECT_EQ(options.batch.batch_max, 64u);
  EXPECT_EQ(options.synchronization.policy, "adacomm");
  EXPECT_EQ(options.synchronization.period, 20u);
  EXPECT_EQ(options.synchronization.period_max, 50u);
  EXPECT_EQ(options.synchronization.interval_seconds, 30.5);
  EXPECT_EQ(options.synchronization.loss_floor, 0.25);
  EXPECT_EQ(options.synchronization.steps_max, 1024u);
  EXPECT_EQ(options.aggregation_policy, "adasum");
  EXPECT_EQ(options.learning_rate_policy, "sqrt");
  EXPECT_EQ(options.encoding_policy, "dense");
  EXPECT_EQ(options.base_batch, 128u);
  EXPECT_EQ(options.optimizer, "sgd");
  EXPECT_EQ(options.momentum, 0.9);
}

TEST(PlannerOptionsTest, EveryAxisIsAutoByDefaultAndTheBaseBatchIsThatOfAWorker) {
  v1::JobSpec spec = TextSpec();
  const policies::PlannerOptions options = PlannerOptionsOf(Resolve(spec));
  const policies::PlannerOptions defaults;

  for (const policies::Axis axis : policies::kAxes) {
    EXPECT_EQ(policies::PolicyOf(options, axis), "auto");
  }
  EXPECT_EQ(options.synchronization.period, 0u);
  EXPECT_EQ(options.synchronization.period_max, defaults.synchronization.period_max);
  EXPECT_EQ(options.base_batch, defaults.base_batch);

  spec.mutable_adapt()->mutable_batch()->set_per_worker(100);
  EXPECT_EQ(PlannerOptionsOf(Resolve(spec)).base_batch, 100u);
}

TEST(PlannerOptionsTest, PostLocalIsToldWhereTheRateHasHalved) {
  v1::JobSpec spec = TextSpec();
  When(spec, kPostLocal).set_period(8);
  v1::StepSchedule& step = *ScheduleOf(spec).mutable_step();
  step.set_factor(0.6);
  step.add_boundaries(100);
  step.add_boundaries(250);

  EXPECT_EQ(ParseSpec(spec)->adapt.synchronization.rate_falls_at, 250u);

  When(spec, kPeriodic);
  EXPECT_EQ(ParseSpec(spec)->adapt.synchronization.rate_falls_at, std::nullopt);
}

TEST(PlannerOptionsTest, TheOptimizerIsNamed) {
  v1::JobSpec spec = TextSpec();
  EXPECT_EQ(PlannerOptionsOf(Resolve(spec)).optimizer, "sgd");
  spec.mutable_optimizer()->mutable_adam();
  EXPECT_EQ(PlannerOptionsOf(Resolve(spec)).optimizer, "adam");
  spec.mutable_optimizer()->mutable_adamw();
  EXPECT_EQ(PlannerOptionsOf(Resolve(spec)).optimizer, "adamw");
  spec.mutable_optimizer()->mutable_lamb();
  EXPECT_EQ(PlannerOptionsOf(Resolve(spec)).optimizer, "lamb");
}

TEST(EngineOptionsTest, AdacommMakesUpForTheMomentumThatItResets) {
  v1::JobSpec spec = TextSpec();
  When(spec, kPeriodic).set_period(8);
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum, 0);
  EXPECT_TRUE(EngineOptionsOf(Resolve(spec)).keep_local_momentum);

  When(spec, kAdacomm);
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum, 0.3);
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum_steps, 0u) << "as published";
  EXPECT_FALSE(EngineOptionsOf(Resolve(spec)).keep_local_momentum);

  When(spec, kAdacomm).set_block_momentum(0);
  When(spec, kAdacomm).set_local_momentum(v1::LOCAL_MOMENTUM_KEEP);
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum, 0);
  EXPECT_TRUE(EngineOptionsOf(Resolve(spec)).keep_local_momentum);
}

TEST(EngineOptionsTest, UnderAutoRoundsHaveAMomentumOfTheirOwn) {
  v1::JobSpec spec = TextSpec();
  When(spec, kAuto);

  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum, 0.5);
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum_steps, 0u);
  EXPECT_TRUE(EngineOptionsOf(Resolve(spec)).keep_local_momentum);

  spec.mutable_optimizer()->mutable_adamw();
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum_steps, 256u);
  spec.mutable_adapt()->mutable_synchronization()->set_block_momentum_steps(0);
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).block_momentum_steps, 0u) << "as given";

  v1::JobSpec program;
  program.mutable_program();
  When(program, kAuto);
  EXPECT_EQ(Resolve(program)->adapt().synchronization().block_momentum_steps(), 256u)
      << "its optimizer may be any";
}

TEST(EngineOptionsTest, WindowsAreElasticUnderAutoAndWhereItIsSaid) {
  v1::JobSpec spec = TextSpec();
  When(spec, kPeriodic).set_period(8);
  EXPECT_FALSE(EngineOptionsOf(Resolve(spec)).elastic);
  When(spec, kPeriodic).set_elastic(true);
  EXPECT_TRUE(EngineOptionsOf(Resolve(spec)).elastic);

  spec.mutable_adapt()->clear_synchronization();
  When(spec, v1::SYNCHRONIZATION_POLICY_AUTO);
  EXPECT_TRUE(EngineOptionsOf(Resolve(spec)).elastic);
}

TEST(EngineOptionsTest, AutoLooksAheadAndDelayedWhereItIsSaid) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  When(spec, kDelayed);
  EXPECT_FALSE(EngineOptionsOf(Resolve(spec)).look_ahead);
  When(spec, kDelayed).set_look_ahead(true);
  EXPECT_TRUE(EngineOptionsOf(Resolve(spec)).look_ahead);
  EXPECT_TRUE(PlannerOptionsOf(Resolve(spec)).synchronization.look_ahead);

  spec.mutable_adapt()->clear_synchronization();
  When(spec, v1::SYNCHRONIZATION_POLICY_AUTO);
  EXPECT_TRUE(EngineOptionsOf(Resolve(spec)).look_ahead);
}

TEST(PlannerOptionsTest, AdacommCountsInLogTimeUnlessItIsToBeAsPublished) {
  v1::JobSpec spec = TextSpec();
  When(spec, v1::SYNCHRONIZATION_POLICY_ADACOMM);
  EXPECT_TRUE(PlannerOptionsOf(Resolve(spec)).synchronization.log_time);
  When(spec, v1::SYNCHRONIZATION_POLICY_ADACOMM).set_fallback(v1::ADACOMM_FALLBACK_PUBLISHED);
  EXPECT_FALSE(PlannerOptionsOf(Resolve(spec)).synchronization.log_time);
}

TEST(EngineOptionsTest, TheScheduleBeginsAtTheOptimizersRate) {
  v1::JobSpec spec = TextSpec();
  EXPECT_EQ(EngineOptionsOf(Resolve(spec)).learning_rate.schedule.base, 0.1);

  spec.mutable_optimizer()->mutable_lamb()->set_learning_rate(0.02);
  ScheduleOf(spec).set_warmup_steps(10);
  ScheduleOf(spec).mutable_step()->add_boundaries(100);
  const policies::Schedule schedule = EngineOptionsOf(Resolve(spec)).learning_rate.schedule;

  EXPECT_EQ(schedule.base, 0.02);
  EXPECT_EQ(schedule.shape, policies::Schedule::Shape::kStep);
  EXPECT_EQ(schedule.warmup_steps, 10u);
  EXPECT_EQ(schedule.boundaries, (std::vector<std::uint64_t>{100}));
  EXPECT_EQ(schedule.factor, 0.1);
}

}  // namespace
}  // namespace tactus::spec
