// Coordinators that share a PostgreSQL: who leads, and that nobody else writes.

#include "coordinator/store/shared_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "coordinator/store/postgres_connection.h"
#include "coordinator/store/postgres_database.h"
#include "coordinator/store/postgres_lease.h"
#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"

namespace tactus::store {
namespace {

using testing::HasSubstr;

class SharedStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!OnPostgres()) GTEST_SKIP() << "TACTUS_TEST_POSTGRES names no server";
    options_ = SharedOptions(":memory:");
  }

  Candidacy Try(const SharedStoreOptions& options) {
    absl::StatusOr<Candidacy> candidacy = TryToLead(options);
    EXPECT_TRUE(candidacy.ok()) << candidacy.status();
    return candidacy.ok() ? *std::move(candidacy) : Candidacy{};
  }

  // Leads as soon as the term before may be ended.
  std::unique_ptr<Store> Lead(const SharedStoreOptions& options) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
      Candidacy candidacy = Try(options);
      if (candidacy.store != nullptr) return std::move(candidacy.store);
      std::this_thread::yield();
    }
    ADD_FAILURE() << "another leads for ever";
    return nullptr;
  }

  PostgresConnection Dial() {
    absl::StatusOr<PostgresConnection> connection = DialPostgres({.address = options_.address});
    EXPECT_TRUE(connection.ok()) << connection.status();
    return *std::move(connection);
  }

  std::string Ask(const std::string& sql) {
    const PostgresConnection connection = Dial();
    const absl::StatusOr<PostgresResult> rows = RunText(connection.get(), sql);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && PQntuples(rows->get()) > 0 ? TextAt(rows->get(), 0, 0) : "";
  }

  // As somebody who is paused: the lease is not renewed.
  SharedStoreOptions Silent() const {
    SharedStoreOptions silent = options_;
    silent.lease = Seconds(0.3);
    silent.renewal = Seconds(1000);
    return silent;
  }

  SharedStoreOptions options_;
};

TEST_F(SharedStoreTest, ASecondIsToldWhoLeadsAndLeadsWhenTheFirstGoes) {
  SharedStoreOptions second = options_;
  second.leader = "b:7070";
  std::unique_ptr<Store> store = Lead(options_);

  for (int i = 0; i < 3; ++i) {
    const Candidacy candidacy = Try(second);
    EXPECT_EQ(candidacy.store, nullptr);
    EXPECT_EQ(candidacy.leader, options_.leader);
  }

  store.reset();
  const Candidacy candidacy = Try(second);
  EXPECT_NE(candidacy.store, nullptr);
  EXPECT_EQ(candidacy.leader, "b:7070");
}

TEST_F(SharedStoreTest, ALeaseThatIsRenewedDoesNotRunOut) {
  SharedStoreOptions quick = options_;
  quick.lease = Seconds(0.5);
  quick.renewal = Seconds(0.05);
  const std::unique_ptr<Store> store = Lead(quick);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);

  while (std::chrono::steady_clock::now() < until) ASSERT_EQ(Try(options_).store, nullptr);

  EXPECT_TRUE(store->Leads());
  EXPECT_TRUE(store->Write({.jobs = {SmallJob(1)}}).ok());
}

TEST_F(SharedStoreTest, WhoeverWasPausedWritesNothingAndIsToldOnce) {
  std::atomic<int> told = 0;
  SharedStoreOptions silent = Silent();
  silent.lost = [&](const absl::Status& status) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    ++told;
  };
  const std::unique_ptr<Store> former = Lead(silent);
  ASSERT_TRUE(former->BeginEpoch(0).ok());
  ASSERT_TRUE(former->Write({.jobs = {SmallJob(1)}}).ok());
  SharedStoreOptions other = options_;
  other.leader = "b:7070";
  const std::unique_ptr<Store> store = Lead(other);
  EXPECT_FALSE(former->Leads());
  EXPECT_TRUE(store->Leads());
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(2)}}).ok());

  const absl::Status written = former->Write({.jobs = {SmallJob(3)}});
  const absl::Status deleted = former->DeleteJob(JobId{2});
  const absl::Status kept = former->KeepRetentionTime(7);
  const absl::Status begun = former->BeginEpoch(0).status();
  std::vector<GoneJob> gone;
  const absl::Status pruned = former->Prune({}, 1, gone).status();

  for (const absl::Status& status : {written, deleted, kept, begun, pruned}) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("b:7070 does, since epoch"));
  }
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(store->FindJob("job-1").ok());
  EXPECT_TRUE(store->FindJob("job-2").ok());
  EXPECT_TRUE(absl::IsNotFound(store->FindJob("job-3").status()));
  EXPECT_TRUE(store->Write({.jobs = {SmallJob(4)}}).ok());
}

TEST_F(SharedStoreTest, OneThatStandsStillWithinATransactionHoldsNobodyUpForLong) {
  Lead(options_).reset();  // the tables
  const Claim claim{.holder = "paused", .address = "a:7070", .lease = Seconds(0.3)};
  absl::StatusOr<PostgresConnection> paused = DialStore({.address = options_.address}, claim.lease);
  ASSERT_TRUE(paused.ok()) << paused.status();
  const absl::StatusOr<Term> term = TakeLead(paused->get(), claim);
  ASSERT_TRUE(term.ok()) << term.status();
  ASSERT_TRUE(BeginWrite(paused->get(), term->epoch).ok());
  ASSERT_TRUE(RunText(paused->get(), "INSERT INTO names VALUES ('late-', 1)").ok());

  const std::unique_ptr<Store> store = Lead(options_);

  ASSERT_NE(store, nullptr);
  EXPECT_FALSE(RunText(paused->get(), "COMMIT").ok());
  EXPECT_EQ(Ask("SELECT count(*) FROM names"), "0");
}

TEST_F(SharedStoreTest, EachTermCountsItsWritesAndNoneWritesOnceTheNextHasBegun) {
  for (int term = 0; term < 3; ++term) {
    const std::unique_ptr<Store> store = Lead(options_);
    ASSERT_TRUE(store->BeginEpoch(0).ok());
    for (std::uint64_t id = 1; id <= 5; ++id) {
      ASSERT_TRUE(store->Write({.jobs = {SmallJob(id)}}).ok());
    }
  }

  EXPECT_EQ(Ask("SELECT count(*) FROM terms WHERE writes >= 5"), "3");
  EXPECT_EQ(Ask("SELECT count(*) FROM terms AS a JOIN terms AS b ON b.epoch > a.epoch"
                "  WHERE a.ended IS NULL OR a.last_write > b.begun OR a.ended > b.begun"),
            "0");
}

TEST_F(SharedStoreTest, AnEpochIsAboveWhatIsAskedFor) {
  const std::unique_ptr<Store> store = Lead(options_);
  const std::uint64_t first = store->BeginEpoch(0)->epoch;

  EXPECT_GT(store->BeginEpoch(0)->epoch, first);
  EXPECT_EQ(store->BeginEpoch(1000)->epoch, 1001u);
  EXPECT_TRUE(store->Write({.jobs = {SmallJob(1)}}).ok());
}

TEST_F(SharedStoreTest, AConnectionThatBreaksIsMadeAnew) {
  std::atomic<int> lost = 0;
  options_.lost = [&](const absl::Status&) { ++lost; };
  const std::unique_ptr<Store> store = Lead(options_);
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(1)}}).ok());
  const auto break_all = [&] {
    EXPECT_NE(Ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                  "  WHERE application_name LIKE 'tactus-coordinator%'"),
              "0");
  };

  break_all();
  EXPECT_TRUE(store->FindJob("job-1").ok());
  break_all();
  EXPECT_TRUE(store->Write({.jobs = {SmallJob(2)}}).ok());
  break_all();
  EXPECT_TRUE(store->BeginEpoch(0).ok() || store->BeginEpoch(0).ok());

  EXPECT_TRUE(store->FindJob("job-2").ok());
  EXPECT_EQ(lost, 0);
}

TEST_F(SharedStoreTest, TablesOfANewerProgramAreRefusedAndNobodyLeads) {
  Lead(options_).reset();
  Ask("UPDATE schema_version SET version = 99");

  const absl::Status status = TryToLead(options_).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(Ask("SELECT count(*) FROM terms WHERE ended IS NULL"), "0");
}

TEST_F(SharedStoreTest, WhatIsWrongWithADatabaseIsSaid) {
  SharedStoreOptions wrong = options_;
  wrong.address.replace(wrong.address.find("/postgres?"), 9, "/missing");
  EXPECT_EQ(TryToLead(wrong).status().code(), absl::StatusCode::kNotFound);
  wrong.address = "postgresql://127.0.0.1:1/tactus";
  EXPECT_EQ(TryToLead(wrong).status().code(), absl::StatusCode::kUnavailable);
}

TEST(PostgresTextTest, ParametersAreNumbered) {
  EXPECT_EQ(NumberedParameters("a ?1, ?2 AND ?1"), "a $1, $2 AND $1");
  EXPECT_EQ(NumberedParameters("(a, b) > (?, ?) LIMIT ?"), "(a, b) > ($1, $2) LIMIT $3");
}

TEST(PostgresTextTest, ANameTellsNoSecret) {
  EXPECT_EQ(*PostgresName("postgresql://me:secret@db.example:5433/tactus?sslmode=verify-full"),
            "postgresql://db.example:5433/tactus");
  for (const std::string wrong : {"", "host=db password=secret", "mysql://me:secret@db/x",
                                  "postgresql://me:secret@db:port:x/?secret"}) {
    const absl::Status status = PostgresName(wrong).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_EQ(std::string(status.message()).find("secret"), std::string::npos) << status;
  }
}

TEST(PostgresTextTest, StatesHaveCodes) {
  const std::pair<const char*, absl::StatusCode> expected[] = {
      {"", absl::StatusCode::kUnavailable},
      {"23505", absl::StatusCode::kAlreadyExists},
      {"53100", absl::StatusCode::kResourceExhausted},
      {"53300", absl::StatusCode::kUnavailable},
      {"57P01", absl::StatusCode::kUnavailable},
      {"28P01", absl::StatusCode::kPermissionDenied},
      {"XX001", absl::StatusCode::kDataLoss},
      {"42601", absl::StatusCode::kInternal}};
  for (const auto& [state, code] : expected) EXPECT_EQ(CodeOfSqlState(state), code) << state;
}

}  // namespace
}  // namespace tactus::store
