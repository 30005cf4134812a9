#include "coordinator/backup/backups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "coordinator/files/folder_blobs.h"
#include "metrics/exposition.h"
#include "runtime/now.h"
#include "tests/coordinator/backup/state_to_back_up.h"

namespace tactus::backup {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

bool Eventually(const std::function<bool()>& so) {
  const auto deadline = std::chrono::steady_clock::now() + minutes(1);
  while (!so() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return so();
}

class BackupsTest : public testing::Test {
 protected:
  ~BackupsTest() override {
    Stop();
    for (runtime::ControlThread* thread : {&thread_, &files_, &storage_}) thread->Stop();
  }

  void Start(const std::string& folder, Duration every = hours(1)) {
    backups_ = std::make_unique<Backups>(Backups::Surroundings{
        .storage = storage_,
        .files = files_,
        .backups = thread_,
        .store = state_.store(),
        .blobs = blobs_,
        .metrics = metrics_,
        .copy_slot = slot_,
        .state_folder = state_.path(),
        .options = {
            .every = every, .folder = folder, .first = Duration::zero(), .busy = milliseconds(1)}});
    backups_->Start();
  }
  // It stays until the threads are stopped.
  void Stop() {
    if (backups_ != nullptr && !std::exchange(stopped_, true)) backups_->Stop();
  }

  std::string Metrics() const { return metrics::WriteText(*metrics_.registry()); }
  int Failures() const {
    const std::string metrics = Metrics();
    const std::string name = "\ntactus_backup_failures_total ";
    const std::size_t at = metrics.find(name);
    return at == std::string::npos ? 0 : std::stoi(metrics.substr(at + name.size()));
  }
  bool ShowsOne() const {
    return Metrics().find("tactus_backup_last_success_timestamp_seconds 1") != std::string::npos;
  }

  // What is not there is left only while all is kept.
  bool KeepsAll() {
    bool keeps = false;
    files_.RunAndWait([&] { keeps = !blobs_.Remove({HashOf("absent")}, 0).empty(); });
    return keeps;
  }

  StateToBackUp state_;
  const TemporaryFolder to_;
  runtime::ControlThread storage_, files_, thread_;
  service::FolderBlobs blobs_{state_.path() + "/" + service::kBlobsName};
  metrics::CoordinatorMetrics metrics_{"1"};
  const service::CopySlot slot_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<Backups> backups_;
  bool stopped_ = false;
};

TEST_F(BackupsTest, OneIsMadeSoonAfterTheStartAndShown) {
  state_.AddJob(1, "one");

  Start(to_.path());

  EXPECT_TRUE(Eventually([&] { return ShowsOne(); })) << Metrics();
  EXPECT_THAT(NamesSorted(to_.path()), SizeIs(1));
  EXPECT_THAT(Metrics(), HasSubstr("tactus_backup_interval_seconds 3600\n"));
  EXPECT_THAT(Metrics(), HasSubstr("tactus_backup_failures_total 0\n"));
  EXPECT_FALSE(*slot_);
  EXPECT_FALSE(std::filesystem::exists(state_.path() + "/" + service::kCopyName));
}

TEST_F(BackupsTest, WithoutAFolderNothingIsMadeOrShown) {
  Start("", Duration::zero());
  thread_.RunAndWait([] {});

  EXPECT_THAT(Metrics(), Not(HasSubstr("tactus_backup_interval_seconds ")));
}

TEST_F(BackupsTest, WhatFailsIsCountedAndTriedAgainWhenTheNextIsDue) {
  const std::string folder = to_.File("not mounted");
  Start(folder, milliseconds(5));
  EXPECT_TRUE(Eventually([&] { return Failures() >= 2; })) << Metrics();
  EXPECT_THAT(NamesSorted(to_.path()), IsEmpty());

  std::filesystem::create_directory(folder);

  EXPECT_TRUE(Eventually([&] { return ShowsOne(); })) << Metrics();
}

TEST_F(BackupsTest, OneThatLacksAFileIsAFailureThoughItIsKept) {
  state_.AddJob(1, "one");
  std::filesystem::remove(state_.BlobOf("one"));

  Start(to_.path());

  EXPECT_TRUE(Eventually([&] { return Failures() == 1; })) << Metrics();
  EXPECT_THAT(NamesSorted(to_.path()), SizeIs(1));
  EXPECT_FALSE(ShowsOne());
}

TEST_F(BackupsTest, OneWaitsForWhoeverCopiesTheDatabase) {
  *slot_ = true;
  Start(to_.path());
  thread_.RunAndWait([] {});
  EXPECT_THAT(NamesSorted(to_.path()), IsEmpty());

  *slot_ = false;

  EXPECT_TRUE(Eventually([&] { return ShowsOne(); }));
}

TEST_F(BackupsTest, NoBlobIsRemovedFromBeforeTheCopyUntilTheBackupIsMade) {
  std::promise<void> held;
  storage_.Post([&] { held.get_future().wait(); });

  Start(to_.path());

  EXPECT_TRUE(Eventually([&] { return KeepsAll(); }));
  held.set_value();
  EXPECT_TRUE(Eventually([&] { return ShowsOne(); }));
  EXPECT_TRUE(Eventually([&] { return !KeepsAll(); }));
}

TEST_F(BackupsTest, OneThatIsUnderWayAtTheEndIsGivenUp) {
  std::promise<void> held;
  storage_.Post([&] { held.get_future().wait(); });
  Start(to_.path());
  EXPECT_TRUE(Eventually([&] { return KeepsAll(); }));

  Stop();
  held.set_value();
  storage_.Stop();
  thread_.Stop();

  EXPECT_THAT(NamesSorted(to_.path()), IsEmpty());
  EXPECT_THAT(Metrics(), HasSubstr("tactus_backup_failures_total 0\n"));
}

TEST(WaitOfFirstTest, TheNewestIsAsOldAsTheIntervalAtLeast) {
  const BackupOptions options = {.every = hours(6), .first = minutes(1)};
  const job::WallTime now = Duration(hours(1000)).count();
  const auto wait = [&](Duration age) { return WaitOfFirst(options, now - age.count(), now); };

  EXPECT_EQ(WaitOfFirst(options, std::nullopt, now), minutes(1));
  EXPECT_EQ(wait(hours(7)), minutes(1));
  EXPECT_EQ(wait(hours(6)), minutes(1));
  EXPECT_EQ(wait(hours(2)), hours(4));
  EXPECT_EQ(wait(-hours(500)), hours(6)) << "the clock was set back";
}

TEST(BackupOptionsTest, WrongOnesAreNamed) {
  const auto message = [](const BackupOptions& options) {
    return std::string(options.Validate("/var/lib/tactus").message());
  };

  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.every = minutes(5), .folder = "/mnt/backups"}), "");
  EXPECT_EQ(message({.every = hours(1), .folder = "/var/lib/tactus-backups"}), "");
  EXPECT_EQ(message({.every = std::chrono::seconds(10), .folder = "/mnt/backups"}),
            "backup-every: found 10s, allowed is off, or 5m and more");
  EXPECT_EQ(message({.every = hours(1)}),
            "backup-dir: is empty; with backup-every, give a folder on another disk");
  EXPECT_EQ(message({.folder = "/mnt/backups"}),
            "backup-every: is off; with backup-dir, give a time such as 6h");
  EXPECT_EQ(message({.every = hours(1), .folder = "/mnt/backups", .keep = 0}),
            "backup-keep: found 0, allowed are 1 to 1000");
  for (const char* within : {"/var/lib/tactus", "/var/lib/tactus/", "/var/lib/tactus/backups",
                             "/var/lib/other/../tactus/backups"}) {
    EXPECT_EQ(message({.every = hours(1), .folder = within}),
              "backup-dir: found " + std::string(within) +
                  ", within state-dir /var/lib/tactus, which may be lost as a whole");
  }
}

}  // namespace
}  // namespace tactus::backup
