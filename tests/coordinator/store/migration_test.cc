// Files as former versions of the program wrote them, opened by this one. They were written by
// those versions: store_schema_1.db has encoding 1 and no decisions, store_schema_2.db encoding 2.
// Both hold FullJob, as far as its fields were known then, and job-4.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>

#include "coordinator/store/schema.h"
#include "coordinator/store/store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

struct Golden {
  int schema = 0;
  std::size_t decisions = 0;  // of each job
};

class MigrationTest : public testing::TestWithParam<Golden> {
 protected:
  MigrationTest() : path_(folder_.File("db")) {
    const char* source = std::getenv("TACTUS_SOURCE");
    const std::string root = source == nullptr ? "." : source;
    std::filesystem::copy_file(root + "/tests/golden/coordinator/store_schema_" +
                                   std::to_string(GetParam().schema) + ".db",
                               path_);
  }

  std::unique_ptr<Store> Open() const {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path_);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::int64_t QueryInt(const std::string& sql) const {
    sqlite3* opened = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &opened), SQLITE_OK);
    const Connection connection(opened);
    absl::StatusOr<SqliteStatement> query = SqliteStatement::Prepare(opened, sql);
    EXPECT_TRUE(query.ok()) << query.status();
    const absl::StatusOr<bool> row = query->Step();
    EXPECT_TRUE(row.ok() && *row);
    return query->ColumnInt(0);
  }

  const TemporaryFolder folder_;
  const std::string path_;
};

// FullJob without what that version did not know.
job::JobRecord FullJobOf(int schema) {
  job::JobRecord record = FullJob();
  record.progress.validation = {};
  record.result->validation_rounds = 0;
  record.snapshots.clear();
  record.settings.selector.clear();
  record.settings.tolerations.clear();
  record.settings.priority = 0;
  record.settings.kind.clear();
  record.settings.adapt.frozen.clear();
  record.settings.adapt.encoding_policy = "dense";
  record.cancel_grace.reset();
  record.ending = {};
  record.suspension.reset();
  record.checkpoint.reset();
  record.elapsed_before_seconds = 0;
  record.group_start_time = 0;
  record.suspensions = 0;
  for (job::ArtifactRecord& artifact : record.result->artifacts) artifact.sha256.clear();
  if (schema == 1) {
    record.settings.adapt = {};
    record.settings.adapt.batch_policy = "fixed";
    record.settings.adapt.batch = {.per_worker = 17, .batch_min = 3, .batch_max = 4096};
    record.settings.adapt.base_batch = 17;
  }
  return record;
}

job::RoundRecord RoundOf(int schema, std::uint64_t job, std::uint64_t round) {
  job::RoundRecord record = Round(job, round);
  record.worker_update_seconds.clear();
  if (schema == 1) {
    record.steps = 0;
    record.learning_rate = 0;
    record.gain = 1;
    record.progress = 0;
    record.orthogonality = 0;
    record.transfer_seconds = 0;
  }
  return record;
}

TEST_P(MigrationTest, TheFileIsOfThatVersion) {
  EXPECT_EQ(QueryInt("PRAGMA user_version"), GetParam().schema);
}

TEST_P(MigrationTest, EveryJobRoundAndDecisionIsReadRight) {
  const std::unique_ptr<Store> store = Open();

  const absl::StatusOr<job::JobRecord> full = store->FindJobByRequest(FullJob().request_id);
  ASSERT_TRUE(full.ok()) << full.status();
  ExpectEqual(*full, FullJobOf(GetParam().schema));
  const auto unfinished = store->UnfinishedJobs();
  ASSERT_EQ(unfinished->size(), 1u);
  EXPECT_EQ(unfinished->front().name, "job-4");
  EXPECT_EQ(unfinished->front().state, job::JobState::kRunning);
  EXPECT_EQ(*store->LastJobId(), 4u);
  // Jobs that were deleted then may have had any name up to -4.
  EXPECT_EQ(store->Numbers()->floor, 4u);
  const auto rounds = store->ListRounds(JobId{3}, 10, "");
  ASSERT_EQ(rounds->items.size(), 3u);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ExpectEqual(rounds->items[i], RoundOf(GetParam().schema, 3, i));
  }
  ASSERT_EQ(store->ListRounds(JobId{4}, 10, "")->items.size(), 1u);
  const auto decisions = store->ListDecisions(JobId{3}, 10, "");
  ASSERT_EQ(decisions->items.size(), GetParam().decisions);
  if (GetParam().decisions > 0) {
    EXPECT_EQ(decisions->items[0].decision,
              DecisionOf(3, 2, policies::Axis::kSynchronization).decision);
  }
}

TEST_P(MigrationTest, TheNewColumnsAreFilled) {
  const std::unique_ptr<Store> store = Open();
  const auto names = [&](const JobQuery& query) {
    std::vector<std::string> found;
    const auto page = store->ListJobs(query);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const job::JobRecord& record : page->items) found.push_back(record.name);
    return found;
  };
  using Names = std::vector<std::string>;

  EXPECT_EQ(names({}), (Names{"job-4", "shakespeare-3"}));
  EXPECT_EQ(names({.filter = "labels.team=a"}), Names{"shakespeare-3"});
  EXPECT_EQ(names({.filter = "labels.team=b AND priority=0 AND state=RUNNING"}), Names{"job-4"});
  EXPECT_EQ(store->CheckIntegrity()->size(), 0u);
  std::vector<GoneJob> gone;
  const job::WallTime last = FullJob().update_time;
  while (*store->Prune({.age = Duration(10)}, last + 10, gone)) {
  }
  EXPECT_TRUE(gone.empty());
  while (*store->Prune({.age = Duration(10)}, last + 11, gone)) {
  }
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].name, "shakespeare-3");
}

TEST_P(MigrationTest, TheFileTakesWhatIsNewAndIsOpenedAgain) {
  {
    const std::unique_ptr<Store> store = Open();
    const absl::Status status =
        store->Write({.jobs = {SmallJob(9)},
                      .rounds = {Round(9, 1)},
                      .decisions = {DecisionOf(4, 9, policies::Axis::kBatch)},
                      .nodes = {{.name = "a", .cordoned = true}}});
    ASSERT_TRUE(status.ok()) << status;
  }

  const std::unique_ptr<Store> store = Open();

  EXPECT_TRUE(store->FindJob("job-9").ok());
  EXPECT_TRUE(store->FindJob("shakespeare-3").ok());
  EXPECT_EQ(store->ListDecisions(JobId{4}, 10, "")->items.size(), GetParam().decisions + 1);
  EXPECT_EQ(store->Nodes()->size(), 1u);
}

TEST_P(MigrationTest, TheFileCanShrinkAfterwards) {
  Open().reset();

  EXPECT_EQ(QueryInt("PRAGMA user_version"), static_cast<std::int64_t>(SchemaSteps().size()));
  EXPECT_EQ(QueryInt("PRAGMA auto_vacuum"), 2);
}

INSTANTIATE_TEST_SUITE_P(OldFiles, MigrationTest,
                         testing::Values(Golden{.schema = 1, .decisions = 0},
                                         Golden{.schema = 2, .decisions = 1}),
                         [](const auto& file) {
                           return "Schema" + std::to_string(file.param.schema);
                         });

}  // namespace
}  // namespace tactus::store
