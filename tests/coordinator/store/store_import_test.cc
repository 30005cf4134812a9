// The record of an embedded store, taken over by PostgreSQL.

#include "coordinator/store/store_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/postgres_connection.h"
#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/coordinator/store/whole_store.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kRounds = 3000;

class ImportTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!OnPostgres()) GTEST_SKIP() << "TACTUS_TEST_POSTGRES names no server";
    options_ = SharedOptions(":memory:");
    const std::unique_ptr<Store> store = OpenFileOrDie(path_);
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(store->BeginEpoch(40).ok());
    job::WriteBatch batch{.jobs = {FullJob(), SmallJob(4), SmallJob(5)},
                          .decisions = {DecisionOf(3, 1, policies::Axis::kBatch)},
                          .nodes = {{.name = "a", .cordoned = true}},
                          .memories = {{.job = JobId{3}, .memory = std::string("le\0rned", 7)}}};
    for (std::uint64_t round = 0; round < kRounds; ++round) batch.rounds.push_back(Round(4, round));
    ASSERT_TRUE(store->Write(batch).ok());
    ASSERT_TRUE(store->DeleteJob(JobId{5}).ok());
    identity_ = *store->BeginEpoch(0);
  }

  absl::StatusOr<Imported> Import() { return ImportIntoShared(path_, options_); }

  std::unique_ptr<Store> Lead() {
    absl::StatusOr<Candidacy> candidacy = TryToLead(options_);
    EXPECT_TRUE(candidacy.ok()) << candidacy.status();
    EXPECT_NE(candidacy->store, nullptr);
    return std::move(candidacy->store);
  }

  void Run(const std::string& sql) {
    const absl::StatusOr<PostgresConnection> connection =
        DialPostgres({.address = options_.address});
    ASSERT_TRUE(connection.ok()) << connection.status();
    const absl::Status status = RunText(connection->get(), sql).status();
    EXPECT_TRUE(status.ok()) << status;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("db");
  SharedStoreOptions options_;
  protocol::CoordinatorIdentity identity_;
};

TEST_F(ImportTest, EveryRecordIsThereAndTheRecordGoesOnAsTheSame) {
  const absl::StatusOr<Imported> imported = Import();

  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->jobs, 2u);
  EXPECT_EQ(imported->rounds, kRounds);
  EXPECT_GT(imported->rows, imported->jobs + imported->rounds);
  const std::unique_ptr<Store> store = Lead();
  store::ExpectEqual(*store->FindJob("shakespeare-3"), FullJob());
  EXPECT_EQ(store->ListRounds(JobId{4}, 10000, "")->items.size(), kRounds);
  EXPECT_TRUE(store->FindDecision(JobId{3}, {1, policies::Axis::kBatch}).ok());
  EXPECT_TRUE(store->Nodes()->front().cordoned);
  EXPECT_EQ(store->Memories()->front().memory, std::string("le\0rned", 7));
  EXPECT_EQ(*store->LastJobId(), 5u);  // of one that is gone
  EXPECT_EQ(*store->CheckIntegrity(), std::vector<std::string>{});
  const absl::StatusOr<protocol::CoordinatorIdentity> next = store->BeginEpoch(0);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->server, identity_.server);
  EXPECT_GT(next->epoch, identity_.epoch);
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(6)}}).ok());

  // And the way back: what an embedded store of before has, that of the copy has.
  ASSERT_TRUE(CopyWhole(*store, folder_.File("back")).ok());
  const std::unique_ptr<Store> back = OpenFileOrDie(folder_.File("back"));
  store::ExpectEqual(*back->FindJob("shakespeare-3"), FullJob());
  EXPECT_EQ(back->ListRounds(JobId{4}, 10000, "")->items.size(), kRounds);
}

TEST_F(ImportTest, ADatabaseThatHasRecordsIsRefusedAndLeftAsItIs) {
  ASSERT_TRUE(Lead()->Write({.jobs = {SmallJob(9)}}).ok());

  const absl::Status refused = Import().status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has records already (table jobs)"));
  const std::unique_ptr<Store> store = Lead();
  EXPECT_TRUE(store->FindJob("job-9").ok());
  EXPECT_FALSE(store->FindJob("job-4").ok());
}

TEST_F(ImportTest, OneThatWasLedAndHadNoJobIsEmpty) {
  ASSERT_TRUE(Lead()->KeepRetentionTime(7).ok());

  ASSERT_TRUE(Import().ok());
  EXPECT_EQ(Import().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ImportTest, WhileSomebodyLeadsNothingIsImported) {
  const std::unique_ptr<Store> leads = Lead();

  const absl::Status refused = Import().status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("127.0.0.1:7070 leads"));
}

TEST_F(ImportTest, WhatDoesNotGoInLeavesNothing) {
  Lead().reset();
  Run("ALTER TABLE rounds ADD CHECK (round < 2000)");

  EXPECT_FALSE(Import().ok());

  Run("ALTER TABLE rounds DROP CONSTRAINT rounds_round_check");
  EXPECT_TRUE(Import().ok()) << "it is empty still, and nobody leads";
}

// As a database would that changes what it is given.
TEST_F(ImportTest, WhatIsReadBackAndDiffersIsNotTaken) {
  Lead().reset();
  Run("CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " IF NEW.round = 1234 THEN NEW.record := 'x'; END IF; RETURN NEW; END $$;"
      "CREATE TRIGGER other BEFORE INSERT ON rounds FOR EACH ROW EXECUTE FUNCTION other()");

  const absl::Status refused = Import().status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("row 1235 of rounds is another one"));
  EXPECT_EQ(Lead()->UnfinishedJobs()->size(), 0u);
}

TEST_F(ImportTest, AStoreThatACoordinatorHasOpenIsNotCopied) {
  const std::unique_ptr<Store> open = OpenFileOrDie(path_);
  EXPECT_TRUE(absl::IsUnavailable(CopyEmbedded(path_, folder_.File("copy"))));
}

TEST_F(ImportTest, ACopyHasWhatIsInTheLogAlone) {
  ASSERT_TRUE(CopyEmbedded(path_, folder_.File("copy")).ok());
  EXPECT_TRUE(OpenFileOrDie(folder_.File("copy"))->FindJob("job-4").ok());
  EXPECT_TRUE(absl::IsNotFound(CopyEmbedded(folder_.File("none"), folder_.File("copy2"))));
}

}  // namespace
}  // namespace tactus::store
