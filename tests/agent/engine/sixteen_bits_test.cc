#include "agent/engine/combine/sixteen_bits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"
#include "tests/agent/engine/encodings.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using Kind = policies::Encoding;

const cuda::SegmentTable kTwoTensors = {{.name = "a", .length = 1003, .shape = {17, 59}},
                                        {.name = "b", .length = 37, .shape = {37}}};

float ErrorOf(Kind kind) { return kind == Kind::kFloat16 ? 0x1p-11f : 0x1p-8f; }

TEST(Float16FactorTest, TheLargestComesToWhereNothingOverflows) {
  for (const float largest : {1.0f, 1.99999f, 65504.0f, 3e38f, 1e-30f, 0x1p-112f}) {
    const std::vector<float> values = {0, -largest, largest / 2};
    const float factor = Float16Factor(values);

    EXPECT_GE(largest * factor, 0x1p14f) << largest;
    EXPECT_LT(largest * factor, 0x1p15f) << largest;
    EXPECT_EQ(std::ilogb(factor), std::log2(factor));  // a power of two
    EXPECT_TRUE(std::isnormal(1 / factor));
  }
}

TEST(Float16FactorTest, NothingIsFoundWhereThereIsNothing) {
  EXPECT_EQ(Float16Factor({}), 1);
  EXPECT_EQ(Float16Factor(std::vector<float>{0, -0.0f}), 1);
  EXPECT_EQ(Float16Factor(std::vector<float>{std::numeric_limits<float>::denorm_min()}), 0x1p126f);
}

TEST(Float16FactorTest, WhatIsNotFiniteDoesNotCount) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Float16Factor(std::vector<float>{infinity, 1, std::nanf("")}), 0x1p14f);
}

struct SixteenBitCase {
  Kind kind = Kind::kFloat16;
  int members = 2;
  Meeting meeting = Meeting::kInProcess;
};

std::string CaseName(const ::testing::TestParamInfo<SixteenBitCase>& test) {
  return std::string(policies::NameOf(test.param.kind)) + std::to_string(test.param.members) +
         (test.param.meeting == Meeting::kTcp ? "Tcp" : "");
}

std::vector<SixteenBitCase> SixteenBitCases() {
  std::vector<SixteenBitCase> cases;
  for (const Kind kind : {Kind::kFloat16, Kind::kBfloat16}) {
    for (int members = 1; members <= 17; ++members) cases.push_back({kind, members});
    for (const int members : {2, 3, 5}) cases.push_back({kind, members, Meeting::kTcp});
  }
  return cases;
}

class SixteenBitTest : public ::testing::TestWithParam<SixteenBitCase> {
 protected:
  EncodedGroup Group(cuda::SegmentTable segments, std::size_t pieces = 1) const {
    return EncodedGroup({.members = GetParam().members,
                         .kind = GetParam().kind,
                         .segments = std::move(segments),
                         .meeting = GetParam().meeting,
                         .pieces = pieces});
  }
};

TEST_P(SixteenBitTest, TheSumIsOneOfRoundedValuesAndTheSameOnAll) {
  for (const std::size_t pieces : {1, 2}) {
    EncodedGroup group = Group(kTwoTensors, pieces);
    for (const float scale : {1e-30f, 1e-3f, 1e5f, 1e30f}) {
      const auto buffers = NormalBuffers(group, GetParam().members, 7, scale);
      const std::vector<float> dense = DenseSum(buffers);

      const auto sums = group.Sum(buffers);

      EXPECT_TRUE(AllAlike(sums));
      for (std::size_t i = 0; i < dense.size() - EncodedGroup::kLanes; ++i) {
        // Every part and the sum are rounded once. What is subnormal in float16 errs by 2^-39 of
        // its slice's largest, which is below 5, and below 20 of the sum.
        float parts = std::abs(dense[i]);
        for (const auto& buffer : buffers) parts += std::abs(buffer[i]);
        const float bound = 1.01f * ErrorOf(GetParam().kind) * parts + scale * 0x1p-32f;
        EXPECT_LE(std::abs(sums[0][i] - dense[i]), bound) << i;
      }
    }
  }
}

TEST_P(SixteenBitTest, LanesAreThoseOfAnAllReduceToTheBit) {
  EncodedGroup group = Group(kTwoTensors, 2);
  const auto buffers = NormalBuffers(group, GetParam().members, 3);
  const std::vector<float> dense = DenseSum(buffers);

  const std::vector<float> sum = group.Sum(buffers)[0];

  EXPECT_TRUE(
      std::equal(sum.end() - EncodedGroup::kLanes, sum.end(), dense.end() - EncodedGroup::kLanes));
}

TEST_P(SixteenBitTest, WhatIsNotFiniteStaysSoOnAll) {
  EncodedGroup group = Group(kTwoTensors);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto buffers = NormalBuffers(group, GetParam().members, 5);
    buffers.back()[500] = bad;

    const auto sums = group.Sum(buffers);

    EXPECT_TRUE(AllAlike(sums));
    EXPECT_FALSE(std::isfinite(sums[0][500]));
    EXPECT_TRUE(std::isfinite(sums[0][499]));
  }
}

TEST_P(SixteenBitTest, ZerosOneValueAndNoValues) {
  EncodedGroup group = Group({{.name = "none", .length = 0, .shape = {0}},
                              {.name = "one", .length = 1, .shape = {1}},
                              {.name = "zeros", .length = 40, .shape = {40}}});
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(GetParam().members),
                                          std::vector<float>(group.length()));
  for (auto& buffer : buffers) buffer[0] = 0.75f;

  const auto sums = group.Sum(buffers);

  EXPECT_TRUE(AllAlike(sums));
  EXPECT_EQ(sums[0][0], 0.75f * static_cast<float>(GetParam().members));
  EXPECT_EQ(sums[0][1], 0);
}

TEST_P(SixteenBitTest, LanesAloneTravelToo) {
  EncodedGroup group = Group({{.name = "none", .length = 0, .shape = {0}}});
  const auto buffers = NormalBuffers(group, GetParam().members, 9);

  EXPECT_EQ(group.Sum(buffers)[0], DenseSum(buffers));
}

TEST_P(SixteenBitTest, HalfTheBytesUnlessAlone) {
  EncodedGroup group = Group(kTwoTensors);
  group.Sum(NormalBuffers(group, GetParam().members, 1));

  const std::size_t element = GetParam().members == 1 ? 4 : 2;
  EXPECT_EQ(group.bytes(0),
            element * cuda::FlatLength(group.segments()) + EncodedGroup::kLanes * sizeof(float));
}

INSTANTIATE_TEST_SUITE_P(Every, SixteenBitTest, ::testing::ValuesIn(SixteenBitCases()), CaseName);

// Through the engine: what is trained is the same on all, and close to what dense values train.
class SixteenBitTrainingTest
    : public ::testing::TestWithParam<std::tuple<Kind, policies::Synchronization>> {
 protected:
  GroupRun Run(Kind kind) const {
    const auto synchronization = std::get<1>(GetParam());
    GroupRun run{
        .options = {.train_samples = 500,
                    .optimizer = SgdOptions{.learning_rate = 0.05, .momentum = 0.5},
                    .stop = {.rounds = 30},
                    .bucket_bytes = 4},
        .plan = {.version = 1,
                 .synchronization = synchronization,
                 .period = synchronization == policies::Synchronization::kPeriodic ? 3u : 1u,
                 .batch_sizes = {5, 3, 4}}};
    if (kind != Kind::kDense) {
      run.options.encoding.dense =
          SixteenBits(kind == Kind::kFloat16 ? kFloat16Format : kBfloat16Format);
    }
    return run;
  }
};

TEST_P(SixteenBitTrainingTest, TrainsAsDenseValuesDo) {
  const Kind kind = std::get<0>(GetParam());
  const std::vector<MemberRun> dense = Train(Run(Kind::kDense));

  const std::vector<MemberRun> encoded = Train(Run(kind));

  EXPECT_EQ(encoded[0].outcome, Outcome::kFinished);
  EXPECT_EQ(encoded[1].parameters, encoded[0].parameters);
  EXPECT_EQ(encoded[2].parameters, encoded[0].parameters);
  EXPECT_NE(encoded[0].parameters, dense[0].parameters);
  const double loss = dense[0].reports.back().loss_mean_global;
  EXPECT_NEAR(encoded[0].reports.back().loss_mean_global, loss, 0.02 * loss);
  EXPECT_LT(encoded[0].reports.back().bytes_sent, dense[0].reports.back().bytes_sent);
}

TEST_P(SixteenBitTrainingTest, ARoundThatIsNotFiniteIsSkippedByAll) {
  GroupRun run = Run(std::get<0>(GetParam()));
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round == 4) gradients[3] = std::numeric_limits<float>::infinity();
  };

  const std::vector<MemberRun> members = Train(run);

  EXPECT_EQ(members[0].reports[4].nonfinite_members, 1u);
  EXPECT_EQ(members[0].trace[4], members[0].trace[3]);
  EXPECT_EQ(members[1].parameters, members[0].parameters);
  EXPECT_TRUE(std::isfinite(members[0].parameters[0]));
}

INSTANTIATE_TEST_SUITE_P(
    Every, SixteenBitTrainingTest,
    ::testing::Combine(::testing::Values(Kind::kFloat16, Kind::kBfloat16),
                       ::testing::Values(policies::Synchronization::kEveryStep,
                                         policies::Synchronization::kPeriodic)));

}  // namespace
}  // namespace tactus::engine
