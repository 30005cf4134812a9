#include "agent/engine/momentum_correction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/engine/combine/adacomp_talk.h"
#include "agent/engine/member.h"
#include "agent/engine/optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"

namespace tactus::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int kMembers = 3;
constexpr std::size_t kMomentum = 2;  // of residuals
constexpr float kRate = 0.1f;

cuda::SegmentTable Tensors() {
  return {{.name = "a", .length = 3000, .shape = {30, 100}},
          {.name = "bias", .length = 10, .shape = {10}},
          {.name = "b", .length = 2000, .shape = {20, 100}}};
}

EncodedGroup GroupOf(policies::Encoding kind, bool carries) {
  EncodingOptions options;
  options.carries_momentum = carries;
  return EncodedGroup({.members = kMembers,
                       .kind = kind,
                       .segments = Tensors(),
                       .options = std::move(options),
                       .pieces = 2});
}

// One optimizer's run on the host, which stands for those of all members.
struct Trained {
  Trained(const SgdOptions& options, const EncodedGroup& group)
      : sgd(options), segments(group.segments()), parameters(cuda::FlatLength(segments), 0.5f) {}

  CarriedMomentum Carried() {
    return {.momentum = optimizer.State().front(),
            .parameters = parameters,
            .beta = sgd.momentum,
            .nesterov = sgd.nesterov,
            .weight_decay = sgd.weight_decay,
            .samples = kMembers,
            .own_samples = 1};
  }
  void Step(std::vector<float> sum) {
    sum.resize(parameters.size());
    optimizer.Step(sum, {.gradient = 1.0 / kMembers, .learning_rate = kRate}, parameters);
  }

  const SgdOptions sgd;
  const cuda::SegmentTable segments;
  std::vector<float> parameters;
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  Optimizer optimizer{sgd, *device, segments};
};

// What members' momentum should come to, by an encoding that knows of none and an optimizer that
// has none, but for what travels densely.
class Reference {
 public:
  Reference(policies::Encoding kind, const SgdOptions& sgd)
      : group_(GroupOf(kind, false)),
        masks_(kind == policies::Encoding::kSketch),
        sgd_(sgd),
        parameters_(cuda::FlatLength(group_.segments()), 0.5f),
        dense_(parameters_.size()),
        own_(kMembers, std::vector<float>(parameters_.size())),
        left_(own_) {}

  void Step(const std::vector<std::vector<float>>& gradients, std::uint64_t round) {
    std::vector<std::vector<float>> in = gradients;
    ForCoded([&](std::size_t i) {
      for (std::size_t rank = 0; rank < kMembers; ++rank) in[rank][i] = PutIn(in[rank][i], rank, i);
    });
    const std::vector<float> out = group_.Sum(in, {.number = round, .samples = kMembers})[0];
    group_.Settle(true);
    for (std::size_t rank = 0; rank < kMembers; ++rank) {
      const std::vector<float> left = group_.LeftOver(static_cast<int>(rank));
      ForCoded([&](std::size_t i) {
        const bool sent = left[i] != left_[rank][i] + in[rank][i];
        if (sent && masks_) own_[rank][i] = 0;
      });
      left_[rank] = left;
    }
    const std::vector<float> before = parameters_;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto beta = static_cast<float>(sgd_.momentum);
      const float gradient = out[i] / kMembers + static_cast<float>(sgd_.weight_decay) * before[i];
      dense_[i] = beta * dense_[i] + gradient;
      parameters_[i] -= kRate * (sgd_.nesterov ? gradient + beta * dense_[i] : dense_[i]);
    }
    ForCoded([&](std::size_t i) { parameters_[i] = before[i] - kRate * out[i] / kMembers; });
  }

  const std::vector<float>& parameters() const { return parameters_; }

 private:
  template <typename Use>
  void ForCoded(const Use& use) const {
    for (const cuda::Segment& segment : group_.segments()) {
      for (std::size_t i = 0; segment.shape.size() > 1 && i < segment.length; ++i) {
        use(segment.offset + i);
      }
    }
  }
  float PutIn(float gradient, std::size_t rank, std::size_t i) {
    const auto beta = static_cast<float>(sgd_.momentum);
    gradient += static_cast<float>(sgd_.weight_decay) * parameters_[i];
    own_[rank][i] = beta * own_[rank][i] + gradient;
    return sgd_.nesterov ? gradient + beta * own_[rank][i] : own_[rank][i];
  }

  EncodedGroup group_;
  const bool masks_;
  const SgdOptions sgd_;
  std::vector<float> parameters_;
  std::vector<float> dense_;              // the optimizer's momentum
  std::vector<std::vector<float>> own_;   // members' momentum
  std::vector<std::vector<float>> left_;  // members' residuals
};

class MomentumCorrectionTest
    : public ::testing::TestWithParam<std::tuple<policies::Encoding, bool, double>> {
 protected:
  const policies::Encoding kind_ = std::get<0>(GetParam());
  const SgdOptions sgd_ = {.momentum = 0.9,
                           .weight_decay = std::get<2>(GetParam()),
                           .nesterov = std::get<1>(GetParam())};
};

// Rounding: some 20 operations a round on numbers up to 10, each right to 6e-8 of them, twenty
// rounds long and stretched by momentum to ten times that.
TEST_P(MomentumCorrectionTest, AnOrdinaryStepIsThatOfMomentumBeforeTheEncoding) {
  EncodedGroup group = GroupOf(kind_, true);
  Trained trained(sgd_, group);
  Reference reference(kind_, sgd_);

  for (std::uint64_t round = 0; round < 20; ++round) {
    const auto gradients = NormalBuffers(group, kMembers, round + 1);
    const auto sums =
        group.Sum(gradients, {.number = round, .samples = kMembers}, {}, trained.Carried());
    group.Settle(true);
    EXPECT_TRUE(AllAlike(sums));
    trained.Step(sums[0]);
    reference.Step(gradients, round);
  }

  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    ASSERT_NEAR(trained.parameters[i], reference.parameters()[i], 2e-3f) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, MomentumCorrectionTest,
                         ::testing::Combine(::testing::Values(policies::Encoding::kAdacomp,
                                                              policies::Encoding::kSketch),
                                            ::testing::Bool(), ::testing::Values(0.0, 0.01)),
                         [](const auto& test) {
                           return std::string(policies::NameOf(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) ? "_nesterov" : "") +
                                  (std::get<2>(test.param) > 0 ? "_decay" : "");
                         });

class CarriedMomentumTest : public ::testing::TestWithParam<policies::Encoding> {
 protected:
  // One round of nothing new, in units of a sample.
  void Round(std::uint64_t number, double samples = kMembers, bool applied = true) {
    const std::vector<std::vector<float>> nothing(kMembers, std::vector<float>(group_.length()));
    CarriedMomentum carried = trained_.Carried();
    carried.samples = samples;
    group_.Sum(nothing, {.number = number, .samples = samples}, {}, carried);
    group_.Settle(applied);
  }
  // Of every second element so little that it is not sent.
  void SetMomentum() {
    const std::span<float> momentum = trained_.optimizer.State().front();
    for (std::size_t i = 0; i < momentum.size(); ++i) momentum[i] = i % 2 == 0 ? 1 : 1.0f / 64;
  }
  // Of member 1, those.
  std::vector<float> LittleLeft() {
    const std::vector<float> left = group_.LeftOver(1, kMomentum);
    std::vector<float> little;
    for (const cuda::Segment& segment : group_.segments()) {
      for (std::size_t i = 1; segment.shape.size() > 1 && i < segment.length; i += 2) {
        little.push_back(left[segment.offset + i]);
      }
    }
    return little;
  }
  void BeginDense() {
    for (int rank = 0; rank < kMembers; ++rank) {
      group_.encodings(rank).For(policies::Encoding::kDense);
    }
  }

  EncodedGroup group_ = GroupOf(GetParam(), true);
  Trained trained_{SgdOptions{.momentum = 0.5}, group_};
};

// Momentum that gradients gathered before is each member's share of it, and stays with what is not
// sent.
TEST_P(CarriedMomentumTest, BeginsAsTheOptimizersWhereAnotherEncodingGivesWay) {
  SetMomentum();
  BeginDense();

  Round(0);

  EXPECT_THAT(LittleLeft(), Each(1.0f / 128));  // beta n_r m
}

// The others' is what it was, in a group that goes on; what the optimizer has is what came out.
TEST_P(CarriedMomentumTest, BeginsAtZeroInANewMember) {
  SetMomentum();

  Round(0);

  EXPECT_THAT(group_.LeftOver(1, kMomentum), Each(0));
}

TEST_P(CarriedMomentumTest, CountsInUpdates) {
  SetMomentum();
  BeginDense();
  Round(0);

  Round(1, 2 * kMembers, false);

  EXPECT_THAT(LittleLeft(), Each(1.0f / 64));
}

// As in a group of one, whose rounds are the optimizer's alone.
TEST_P(CarriedMomentumTest, BeginsAnewAsTheOptimizersBehindRoundsThatWereNotEncoded) {
  Round(0);
  SetMomentum();
  group_.Settle(true);

  Round(2);

  EXPECT_THAT(LittleLeft(), Each(1.0f / 128));
}

TEST_P(CarriedMomentumTest, IsGoneWhereNoneIsCarriedAnyMore) {
  SetMomentum();
  BeginDense();
  Round(0);

  const std::vector<std::vector<float>> nothing(kMembers, std::vector<float>(group_.length()));
  const auto sums = group_.Sum(nothing, {.number = 1, .samples = kMembers});
  group_.Settle(true);

  EXPECT_THAT(sums[0], Each(0));
  EXPECT_THAT(group_.LeftOver(1, kMomentum), Each(0));
}

INSTANTIATE_TEST_SUITE_P(Encodings, CarriedMomentumTest,
                         ::testing::Values(policies::Encoding::kAdacomp,
                                           policies::Encoding::kSketch),
                         [](const auto& test) {
                           return std::string(policies::NameOf(test.param));
                         });

// All of a gradient's worth is handed over: what momentum would still make of it, 1 / (1 - beta)
// times, is what was left.
TEST(HandedOverMomentumTest, WithNesterovIsWorthARoundLess) {
  AdacompTalk talk({});
  const std::vector<float> left = {0};
  const std::vector<float> momentum = {8};
  std::vector<float> still_left = {0};
  std::vector<float> next_momentum = {0};
  std::vector<float> values = {0};
  talk.SetLeft({.left = left,
                .still_left = still_left,
                .momentum = momentum,
                .next_momentum = next_momentum,
                .beta = 0.75f,
                .nesterov = true});

  talk.HandOver(values);

  EXPECT_THAT(values, ElementsAre(0.75f * 0.75f * 8));
}

TEST(HandedOverMomentumTest, IsWorthWhatItWould) {
  AdacompTalk talk({});
  const std::vector<float> left = {4};
  const std::vector<float> momentum = {8};
  std::vector<float> still_left = {1};
  std::vector<float> next_momentum = {1};
  std::vector<float> values = {2};
  talk.SetLeft({.left = left,
                .still_left = still_left,
                .momentum = momentum,
                .next_momentum = next_momentum,
                .beta = 0.75f,
                .nesterov = false});

  talk.HandOver(values);

  EXPECT_THAT(values, ElementsAre(2 + 0.25f * 4 + 0.75f * 8));
  EXPECT_THAT(still_left, ElementsAre(0));
  EXPECT_THAT(next_momentum, ElementsAre(0));
}

// ---- Whose momentum

EngineOptions Sgd() { return {.optimizer = SgdOptions{.momentum = 0.9}}; }

TEST(CarriesMomentumTest, OfSgdWhoseStepIsLinearInWhatTravels) {
  EXPECT_TRUE(CarriesMomentum(Sgd()));

  EngineOptions without = Sgd();
  without.optimizer = SgdOptions{};
  EXPECT_FALSE(CarriesMomentum(without));
  without.optimizer = AdamOptions{};
  EXPECT_FALSE(CarriesMomentum(without));
  EngineOptions cut = Sgd();
  cut.clip_norm = 1;
  EXPECT_FALSE(CarriesMomentum(cut));
  EngineOptions sharded = Sgd();
  sharded.shards.by = ShardBy::kEqual;
  EXPECT_FALSE(CarriesMomentum(sharded));
  EngineOptions in_parts = Sgd();
  in_parts.replica_members = 2;
  EXPECT_FALSE(CarriesMomentum(in_parts));
}

TEST(CarriesMomentumTest, InRoundsThatAreOneStepByOneSum) {
  cuda::SegmentTable segments = Tensors();
  cuda::AssignOffsets(segments);
  std::vector<float> parameters(cuda::FlatLength(segments));
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  Member member(Sgd(), *device, segments, parameters);
  const auto carried = [&](policies::Synchronization synchronization,
                           policies::Aggregation aggregation) {
    policies::Plan plan;
    plan.synchronization = synchronization;
    plan.aggregation = aggregation;
    return !CarriedBy(member, plan).momentum.empty();
  };

  EXPECT_TRUE(carried(policies::Synchronization::kEveryStep, policies::Aggregation::kAverage));
  EXPECT_FALSE(carried(policies::Synchronization::kEveryStep, policies::Aggregation::kAdasum));
  EXPECT_FALSE(carried(policies::Synchronization::kPeriodic, policies::Aggregation::kAverage));
  EXPECT_FALSE(carried(policies::Synchronization::kDelayed, policies::Aggregation::kAverage));
}

}  // namespace
}  // namespace tactus::engine
