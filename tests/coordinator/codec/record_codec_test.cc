#include "coordinator/codec/record_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "coordinator/codec/document.h"
#include "coordinator/job/record_fields.h"
#include "tests/support/filled.h"

namespace tactus::codec {
namespace {

using nlohmann::json;

std::string Cbor(const json& value) {
  std::string bytes;
  json::to_cbor(value, bytes);
  return bytes;
}

// The record as bytes, its spec included.
std::string Whole(const auto& record) { return Pack(Document(record)); }

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

TEST(RecordCodecTest, EveryFieldOfANodeComesBack) {
  const auto expected = Filled<job::NodeRecord>();

  const absl::StatusOr<job::NodeRecord> found = DecodeNode(EncodeNode(expected));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Whole(*found), Whole(expected));
}

TEST(RecordCodecTest, ARecordThatWasMadeAsADocumentIsReadAlike) {
  job::JobRecord expected = Filled<job::JobRecord>();
  expected.spec.clear();
  json document = Document(expected);
  document["encoding"] = 2;

  const absl::StatusOr<job::JobRecord> found = DecodeJob(Cbor(document));

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Whole(*found), Whole(expected));
  EXPECT_EQ(json::from_cbor(EncodeJob(*found)).size(), document.size() - 1);  // all but the spec
}

TEST(RecordCodecTest, ARecordOfBeforeTheNewestFieldsKeepsTheirDefaults) {
  job::JobRecord expected = Filled<job::JobRecord>();
  expected.spec.clear();
  json document = Document(expected);
  document["encoding"] = 2;
  for (const char* field : {"ending", "suspension", "checkpoint", "elapsed_before_seconds",
                            "group_start_time", "suspensions"}) {
    ASSERT_EQ(document.erase(field), 1u) << field;
  }
  for (const char* field : {"selector", "tolerations", "priority"}) {
    ASSERT_EQ(document["settings"].erase(field), 1u) << field;
  }

  const absl::StatusOr<job::JobRecord> found = DecodeJob(Cbor(document));

  ASSERT_TRUE(found.ok()) << found.status();
  const job::JobRecord defaults;
  expected.ending = defaults.ending;
  expected.suspension = defaults.suspension;
  expected.checkpoint = defaults.checkpoint;
  expected.elapsed_before_seconds = defaults.elapsed_before_seconds;
  expected.group_start_time = defaults.group_start_time;
  expected.suspensions = defaults.suspensions;
  expected.settings.selector = defaults.settings.selector;
  expected.settings.tolerations = defaults.settings.tolerations;
  expected.settings.priority = defaults.settings.priority;
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

TEST(RecordCodecTest, NumbersOfEveryWidthComeBack) {
  auto round = Filled<job::RoundRecord>();
  job::JobRecord record;
  for (int bits = 0; bits < 64; ++bits) {
    for (const std::uint64_t number : {1ull << bits, (1ull << bits) - 1}) {
      round.samples = number;
      round.loss = std::ldexp(1.1, bits);
      record.create_time = -static_cast<std::int64_t>(number);
      record.settings.priority = static_cast<std::int32_t>(number >> 33) - (1 << 30);

      EXPECT_EQ(DecodeRound(EncodeRound(round))->samples, number);
      EXPECT_EQ(DecodeRound(EncodeRound(round))->loss, round.loss);
      EXPECT_EQ(DecodeJob(EncodeJob(record))->create_time, record.create_time);
      EXPECT_EQ(DecodeJob(EncodeJob(record))->settings.priority, record.settings.priority);
    }
  }
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
      Cbor({{"encoding", 2}, {"name", 5}}),
      Cbor({{"encoding", 2}, {"state", 9}}),
      Cbor({{"encoding", 2}, {"settings", "none"}}),
      Cbor({{"encoding", 2}, {"labels", {{"a", 5}}}}),
      Cbor({{"encoding", 2}, {"discard", 1}}),
      Cbor({{"encoding", 2}, {"members", {{{"worker", "x"}}}}}),
      EncodeJob(Filled<job::JobRecord>()).substr(0, 200),
      EncodeJob(Filled<job::JobRecord>()) + "x",
  };
  for (const std::string& bytes : cases) {
    EXPECT_EQ(DecodeJob(bytes).status().code(), absl::StatusCode::kDataLoss) << bytes;
  }
}

TEST(RecordCodecPropertyTest, ACutRecordIsDataLossAtEveryLength) {
  const std::string whole = EncodeJob(Filled<job::JobRecord>());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(DecodeJob(whole.substr(0, size)).status().code(), absl::StatusCode::kDataLoss)
        << size;
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
