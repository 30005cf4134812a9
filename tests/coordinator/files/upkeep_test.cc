#include "coordinator/files/upkeep.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "coordinator/files/folder_blobs.h"
#include "runtime/now.h"
#include "runtime/sha256.h"

namespace tactus::service {
namespace {

job::JobRecord OverSince(std::uint64_t id, Duration age) {
  job::JobRecord record;
  record.id = JobId{id};
  record.name = "job-" + std::to_string(id);
  record.uid = record.name;
  record.request_id = "request-" + std::to_string(id);
  record.state = job::JobState::kSucceeded;
  record.create_time = record.end_time = record.update_time = runtime::WallNow() - age.count();
  return record;
}

std::string HashOf(const std::string& content) {
  runtime::Sha256 hash;
  hash.Update(content);
  return hash.Finish();
}

// A job that waits with a checkpoint.
job::JobRecord With(std::uint64_t id, const std::string& checkpoint) {
  job::JobRecord record = OverSince(id, Duration::zero());
  record.state = job::JobState::kPaused;
  record.end_time = 0;
  record.checkpoint = job::CheckpointRecord{.sha256 = HashOf(checkpoint), .size_bytes = 1};
  return record;
}

class UpkeepTest : public testing::Test {
 protected:
  ~UpkeepTest() override {
    if (upkeep_ != nullptr) upkeep_->Stop();
    for (runtime::ControlThread* thread : {&files_, &storage_, &control_}) thread->Stop();
    std::filesystem::remove_all(folder_);
  }

  static std::string MakeFolder() {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  void Start(const store::Retention& retention, const Upkeep::Intervals& intervals) {
    upkeep_ = std::make_unique<Upkeep>(Upkeep::Surroundings{
        .control = control_,
        .storage = storage_,
        .files = files_,
        .store = *store_,
        .blobs = blobs_,
        .forget_files = [this](const std::string& job) { files_of_.set_value(job); },
        .forget_jobs =
            [this](const std::vector<store::GoneJob>& jobs) { forgotten_.set_value(jobs); },
        .tell_set_aside =
            [](const std::vector<store::SetAsideJob>& jobs) { EXPECT_TRUE(jobs.empty()); },
        .retention = retention,
        .intervals = intervals});
    upkeep_->Start();
  }

  // A blob that was used two hours ago: less than what is swept without regard.
  void PutOld(const std::string& content) {
    files_.RunAndWait([&] {
      auto writer = blobs_.Write({.sha256 = HashOf(content), .size_bytes = content.size()});
      ASSERT_TRUE(writer.ok()) << writer.status();
      ASSERT_TRUE(writer->Append(content).ok());
      ASSERT_TRUE(writer->Commit().ok());
    });
    const std::int64_t then = runtime::WallNow() / 1'000'000'000 - 7200;
    const timespec used[] = {{.tv_sec = then, .tv_nsec = 0}, {.tv_sec = then, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, PathOf(content).c_str(), used, 0), 0);
  }

  std::string PathOf(const std::string& content) const {
    const std::string sha256 = HashOf(content);
    return folder_ + "/blobs/" + sha256.substr(0, 2) + "/" + sha256;
  }
  bool IsThere(const std::string& content) const {
    return std::filesystem::exists(PathOf(content));
  }
  bool GoesAway(const std::string& content) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (IsThere(content) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return !IsThere(content);
  }

  // On the storage thread, as it is to be.
  void Write(const job::JobRecord& record) {
    absl::Status status;
    storage_.RunAndWait([&] { status = store_->Write({.jobs = {record}}); });
    ASSERT_TRUE(status.ok()) << status;
  }

  const std::string folder_ = MakeFolder();
  const std::unique_ptr<store::Store> store_ = *store::Store::Open(":memory:");
  runtime::ControlThread control_, storage_, files_;
  FolderBlobs blobs_{folder_ + "/blobs"};
  std::promise<std::string> files_of_;
  std::promise<std::vector<store::GoneJob>> forgotten_;
  std::unique_ptr<Upkeep> upkeep_;
};

TEST_F(UpkeepTest, JobsThatAreOldEnoughGoWithTheirFilesAndWhatIsRememberedOfThem) {
  Write(OverSince(1, std::chrono::hours(3)));
  Write(OverSince(2, std::chrono::minutes(1)));

  Start({.age = std::chrono::hours(2)}, {.first = Duration::zero(), .pause = Duration::zero()});
  auto name = files_of_.get_future();
  auto jobs = forgotten_.get_future();
  ASSERT_EQ(name.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  ASSERT_EQ(jobs.wait_for(std::chrono::minutes(1)), std::future_status::ready);

  EXPECT_EQ(name.get(), "job-1");
  const std::vector<store::GoneJob> gone = jobs.get();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].id, JobId{1});
  EXPECT_EQ(gone[0].request_id, "request-1");
  storage_.RunAndWait([&] {
    EXPECT_TRUE(absl::IsNotFound(store_->FindJob("job-1").status()));
    EXPECT_TRUE(store_->FindJob("job-2").ok());
  });
}

TEST_F(UpkeepTest, AClockThatIsSetYearsAheadRemovesNoHistory) {
  // As far as the store knows, it was written a moment ago.
  const job::JobRecord record = OverSince(1, std::chrono::hours(24 * 365));
  Write(record);
  Start({.age = std::chrono::hours(24 * 90)},
        {.first = Duration::zero(), .prune = std::chrono::milliseconds(1)});

  const auto pruned = [&] {
    job::WallTime time = 0;
    storage_.RunAndWait([&] { time = *store_->RetentionTime(); });
    return time > record.update_time;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!pruned() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();

  EXPECT_TRUE(pruned());
  storage_.RunAndWait([&] { EXPECT_TRUE(store_->FindJob("job-1").ok()); });
}

TEST_F(UpkeepTest, ACheckpointGoesSoonAfterANewerOneTookItsPlace) {
  for (const char* content : {"first", "second", "third"}) PutOld(content);
  Write(With(1, "first"));
  Start({}, {.first = Duration::zero(),
             .release = std::chrono::milliseconds(5),
             .unused = Duration::zero()});

  Write(With(1, "second"));
  EXPECT_TRUE(GoesAway("first"));
  EXPECT_TRUE(IsThere("second"));
  Write(With(1, "third"));
  EXPECT_TRUE(GoesAway("second"));

  EXPECT_TRUE(IsThere("third"));
}

TEST_F(UpkeepTest, ACheckpointThatAnotherJobNamesStaysUntilThatHasANewerOneToo) {
  for (const char* content : {"shared", "a", "b", "c"}) PutOld(content);
  Write(With(1, "shared"));
  Write(With(2, "shared"));
  Start({}, {.first = Duration::zero(),
             .release = std::chrono::milliseconds(5),
             .unused = Duration::zero()});

  Write(With(1, "a"));
  Write(With(1, "b"));
  EXPECT_TRUE(GoesAway("a"));  // both were looked at together, or "shared" before
  EXPECT_TRUE(IsThere("shared"));
  Write(With(2, "c"));

  EXPECT_TRUE(GoesAway("shared"));
}

TEST_F(UpkeepTest, ASupersededCheckpointThatWasUsedLatelyWaits) {
  for (const char* content : {"lately", "long ago", "a", "b"}) PutOld(content);
  Write(With(1, "lately"));
  Write(With(2, "long ago"));
  ASSERT_TRUE(blobs_.Find(HashOf("lately"))->complete);  // which uses it
  Start({}, {.first = Duration::zero(),
             .release = std::chrono::milliseconds(5),
             .unused = std::chrono::hours(1)});

  Write(With(1, "a"));
  Write(With(2, "b"));
  EXPECT_TRUE(GoesAway("long ago"));
  EXPECT_TRUE(IsThere("lately"));
  PutOld("lately");  // it is there already: only its age changes

  EXPECT_TRUE(GoesAway("lately"));
}

}  // namespace
}  // namespace tactus::service
