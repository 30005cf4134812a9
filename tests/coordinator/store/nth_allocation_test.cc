// The nth allocation of the database fails, for one n after the other: what was said to be durable
// is there, nothing is set aside for it, and the next call finds a store that works.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>

#include "coordinator/store/store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

// SQLite's allocations, of which one can be made to fail. One thread.
class FailingMemory {
 public:
  FailingMemory() {
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &system_);
    sqlite3_mem_methods failing = system_;
    failing.xMalloc = [](int size) { return Fails() ? nullptr : system_.xMalloc(size); };
    failing.xRealloc = [](void* memory, int size) {
      return Fails() ? nullptr : system_.xRealloc(memory, size);
    };
    sqlite3_config(SQLITE_CONFIG_MALLOC, &failing);
  }
  ~FailingMemory() {
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_MALLOC, &system_);
  }

  // The nth from now on fails; 0: none.
  static void FailNth(long nth) {
    left_ = nth;
    failed_ = false;
  }
  static bool failed() { return failed_; }

 private:
  static bool Fails() {
    if (left_ == 0 || --left_ > 0) return false;
    failed_ = true;
    return true;
  }

  static inline sqlite3_mem_methods system_{};
  static inline long left_ = 0;
  static inline bool failed_ = false;
};

// What was done, and whether it was said to be so.
struct Said {
  bool job = false, rounds = false, forgotten = false;
};

// Errors are answers; anything else is a fault of the store.
Said Live(const std::string& path) {
  Said said;
  const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
  if (!store.ok()) return said;
  said.job = (*store)->Write({.jobs = {SmallJob(4)}}).ok();
  said.rounds = said.job && (*store)->Write({.rounds = {Round(4, 0), Round(4, 1)}}).ok();
  const auto found = (*store)->FindJob(FullJob().name);
  if (found.ok()) ExpectEqual(*found, FullJob());
  const auto all = (*store)->UnfinishedJobs();
  const auto page = (*store)->ListJobs({});
  if (page.ok()) {
    EXPECT_EQ(page->items.size(), said.job ? 3u : 2u);
  }
  const auto rounds = (*store)->ListRounds(JobId{4}, 10, "");
  if (said.rounds && rounds.ok()) {
    EXPECT_EQ(rounds->items.size(), 2u);
  }
  said.forgotten = (*store)->DeleteJob(JobId{5}).ok();
  EXPECT_TRUE((*store)->TakeSetAside().empty());
  return said;
}

void Check(const std::string& path, const Said& said) {
  const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->FindJob(FullJob().name).ok());
  if (said.job) {
    EXPECT_TRUE((*store)->FindJob(SmallJob(4).name).ok());
  }
  if (said.rounds) {
    const auto rounds = (*store)->ListRounds(JobId{4}, 10, "");
    ASSERT_TRUE(rounds.ok()) << rounds.status();
    EXPECT_EQ(rounds->items.size(), 2u);
  }
  if (said.forgotten) {
    EXPECT_FALSE((*store)->FindJob(SmallJob(5).name).ok());
  }
  const auto problems = (*store)->CheckIntegrity();
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_TRUE(problems->empty()) << problems->front();
  EXPECT_TRUE((*store)->TakeSetAside().empty());
}

TEST(NthAllocationTest, NothingIsLostSetAsideOrHalfThere) {
  const FailingMemory memory;
  const TemporaryFolder folder;
  {
    const auto store = Store::Open(folder.File("before"));
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Write({.jobs = {FullJob(), SmallJob(5)}}).ok());
  }
  long nth = 0;
  long refused = 0;
  bool failed = true;
  while (failed) {
    SCOPED_TRACE(++nth);
    const std::string path = folder.File("db");
    for (const char* beside : {"", "-wal", "-shm"}) std::filesystem::remove(path + beside);
    std::filesystem::copy_file(folder.File("before"), path);

    FailingMemory::FailNth(nth);
    const Said said = Live(path);
    failed = FailingMemory::failed();
    FailingMemory::FailNth(0);

    refused += !said.job || !said.rounds || !said.forgotten;
    Check(path, said);
    if (HasFatalFailure() || nth > 100'000) break;
  }
  RecordProperty("allocations", static_cast<int>(nth - 1));
  RecordProperty("refused", static_cast<int>(refused));
  EXPECT_GT(nth, 500) << "hardly anything was allocated";
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tactus::store
