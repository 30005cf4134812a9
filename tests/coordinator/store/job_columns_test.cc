#include "coordinator/store/job_columns.h"

#include <gtest/gtest.h>

#include "tests/coordinator/store/sample_records.h"

namespace tactus::store {
namespace {

TEST(JobColumnsTest, ALabelIsFoundByItsKey) {
  const std::string long_value(70000, 'x');
  const std::string packed = PackLabels({{"team", "a"}, {"", "empty"}, {"te", long_value}});

  EXPECT_EQ(FindLabel(packed, "team"), "a");
  EXPECT_EQ(FindLabel(packed, ""), "empty");
  EXPECT_EQ(FindLabel(packed, "te"), long_value);
  EXPECT_EQ(FindLabel(packed, "a"), std::nullopt);
  EXPECT_EQ(FindLabel("", "team"), std::nullopt);
}

TEST(JobColumnsTest, DamagedLabelsHaveNoKeys) {
  const std::string packed = PackLabels({{"team", "a"}});
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_EQ(FindLabel(packed.substr(0, size), "team"), std::nullopt) << size;
  }
  EXPECT_EQ(FindLabel("\xff\xff\xff\xff", "team"), std::nullopt);
}

TEST(JobColumnsTest, EveryBlobOfARecordIsNamedOnce) {
  job::JobRecord record = FullJob();  // 0: snapshot, a: checkpoint, b: result, c: ending
  record.result->artifacts.push_back({.path = "again", .sha256 = HashOf('a')});
  record.spec = "\x01sha256:" + HashOf('d') + "sha256:" + HashOf('e') +
                " sha256:" + std::string(63, 'f') + " sha256:" + HashOf('G') + "sha256:";

  EXPECT_EQ(BlobsOf(record), (std::vector<std::string>{HashOf('0'), HashOf('a'), HashOf('b'),
                                                       HashOf('c'), HashOf('d'), HashOf('e')}));
  EXPECT_EQ(BlobsOf(SmallJob(1)), std::vector<std::string>{});
}

TEST(JobColumnsTest, TheEndIsThatOfTheRecordOrItsLastUpdate) {
  job::JobRecord record = FullJob();
  EXPECT_EQ(EndTimeOf(record), record.end_time);
  record.end_time = 0;
  EXPECT_EQ(EndTimeOf(record), record.update_time);
  record.state = job::JobState::kPaused;
  EXPECT_EQ(EndTimeOf(record), 0);
}

}  // namespace
}  // namespace tactus::store
