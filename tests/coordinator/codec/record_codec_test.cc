#include "coordinator/codec/record_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "tests/coordinator/codec/filled.h"

namespace tactus::codec {
namespace {

using nlohmann::json;

std::string Cbor(const json& value) {
  std::string bytes;
  json::to_cbor(value, bytes);
  return bytes;
}

// The record as bytes, its spec included.
std::string Whole(const auto& record) { return Pack(Writer::Encode(record)); }

TEST(RecordCodecTest, EveryFieldOfAJobButTheSpecComesBack) {
  job::JobRecord expected = Filled<job::JobRecord>();

  const absl::StatusOr<job::JobRecord> found = DecodeJob(EncodeJob(expected));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->spec, "");
  expected.spec.clear();
  EXPECT_EQ(Whole(*found), Whole(expected));
}

TEST(RecordCodecTest, DefaultsAndAbsentValuesComeBack) {
  const absl::StatusOr<job::JobRecord> found = DecodeJob(EncodeJob(job::JobRecord{}));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Whole(*found), Whole(job::JobRecord{}));
}

TEST(RecordCodecTest, EveryFieldOfARoundComesBack) {
  const auto expected = Filled<job::RoundRecord>();

  const absl::StatusOr<job::RoundRecord> found = DecodeRound(EncodeRound(expected));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Whole(*found), Whole(expected));
}

TEST(RecordCodecTest, EveryFieldOfADecisionComesBack) {
  const auto expected = Filled<job::DecisionRecord>();

  const absl::StatusOr<job::DecisionRecord> found = DecodeDecision(EncodeDecision(expected));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Whole(*found), Whole(expected));
}

TEST(RecordCodecTest, TheBatchAxisOfTheFirstEncodingIsTakenOver) {
  const std::string bytes = Cbor({{"encoding", 1},
                                  {"settings",
                                   {{"workers_min", 3},
                                    {"batch_policy", "fixed"},
                                    {"batch_per_worker", 17},
                                    {"batch_min", 2},
                                    {"batch_max", 99}}}});

  const absl::StatusOr<job::JobRecord> found = DecodeJob(bytes);

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->settings.workers_min, 3u);
  const policies::PlannerOptions& adapt = found->settings.adapt;
  EXPECT_EQ(adapt.batch_policy, "fixed");
  EXPECT_EQ(adapt.batch.per_worker, 17u);
  EXPECT_EQ(adapt.batch.batch_min, 2u);
  EXPECT_EQ(adapt.batch.batch_max, 99u);
  EXPECT_EQ(adapt.base_batch, 17u);
  EXPECT_EQ(adapt.synchronization.policy, "every_step");
}

TEST(RecordCodecTest, NonFiniteLossesAndLargeNumbersComeBack) {
  auto round = Filled<job::RoundRecord>();
  round.loss = std::numeric_limits<double>::quiet_NaN();
  round.seconds = std::numeric_limits<double>::infinity();
  round.samples = std::numeric_limits<std::uint64_t>::max();

  const absl::StatusOr<job::RoundRecord> found = DecodeRound(EncodeRound(round));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(std::isnan(found->loss));
  EXPECT_EQ(found->seconds, round.seconds);
  EXPECT_EQ(found->samples, round.samples);
}

TEST(RecordCodecTest, AFieldThatIsMissingKeepsItsDefaultAndAnUnknownOneIsIgnored) {
  const std::string bytes = Cbor({{"encoding", 1}, {"name", "a-1"}, {"from_the_future", {1, 2}}});

  const absl::StatusOr<job::JobRecord> found = DecodeJob(bytes);

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name, "a-1");
  EXPECT_EQ(found->settings.workers_min, 1u);
}

TEST(RecordCodecTest, ANewerEncodingIsRefused) {
  EXPECT_EQ(DecodeJob(Cbor({{"encoding", 3}})).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RecordCodecTest, DamagedRecordsAreDataLoss) {
  const std::string cases[] = {
      "",
      "garbage",
      Cbor(json::array({1, 2})),
      Cbor(json::object()),
      Cbor({{"encoding", "one"}}),
      Cbor({{"encoding", 1}, {"name", 5}}),
      Cbor({{"encoding", 1}, {"state", 99}}),
      Cbor({{"encoding", 1}, {"settings", "none"}}),
      Cbor({{"encoding", 1}, {"settings", {{"batch_policy", 5}}}}),
      Cbor({{"encoding", 1}, {"state", -1}}),
      Cbor({{"encoding", 1}, {"progress", {{"plan", "none"}}}}),
      Cbor({{"encoding", 1}, {"members", {{{"worker", "x"}}}}}),
      EncodeJob(Filled<job::JobRecord>()).substr(0, 200),
      EncodeJob(Filled<job::JobRecord>()) + "x",
  };
  for (const std::string& bytes : cases) {
    EXPECT_EQ(DecodeJob(bytes).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
}

TEST(RecordCodecPropertyTest, AFlippedByteNeverStopsTheProcess) {
  const std::string whole = EncodeJob(Filled<job::JobRecord>());
  Rng rng(1);
  int refused = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string bytes = whole;
    bytes[rng.Below(bytes.size())] ^= static_cast<char>(1 + rng.Below(255));

    const absl::StatusOr<job::JobRecord> found = DecodeJob(bytes);

    if (!found.ok()) ++refused;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tactus::codec
