#include "coordinator/service/upkeep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include "runtime/now.h"

namespace tactus::service {
namespace {

job::JobRecord OverSince(std::uint64_t id, Duration age) {
  job::JobRecord record;
  record.id = JobId{id};
  record.name = "job-" + std::to_string(id);
  record.uid = record.name;
  record.state = job::JobState::kSucceeded;
  record.create_time = record.end_time = record.update_time = runtime::WallNow() - age.count();
  return record;
}

TEST(UpkeepTest, JobsThatAreOldEnoughGoWithTheirFiles) {
  std::string pattern = testing::TempDir() + "tactus-XXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  auto store = store::Store::Open(":memory:");
  ASSERT_TRUE(store.ok()) << store.status();
  const std::vector<job::JobRecord> jobs = {OverSince(1, std::chrono::hours(3)),
                                            OverSince(2, std::chrono::minutes(1))};
  ASSERT_TRUE((*store)->Write({.jobs = jobs}).ok());
  runtime::ControlThread control, storage, files;
  BlobStore blobs(folder + "/blobs");
  std::promise<std::string> forgotten;
  Upkeep upkeep({.control = control,
                 .storage = storage,
                 .files = files,
                 .store = **store,
                 .blobs = blobs,
                 .forget_files = [&](const std::string& job) { forgotten.set_value(job); },
                 .retention = {.age = std::chrono::hours(2)},
                 .intervals = {.first = Duration::zero(), .pause = Duration::zero()}});

  upkeep.Start();
  auto name = forgotten.get_future();
  ASSERT_EQ(name.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  upkeep.Stop();
  for (runtime::ControlThread* thread : {&storage, &control, &files}) thread->Stop();

  EXPECT_EQ(name.get(), "job-1");
  EXPECT_TRUE(absl::IsNotFound((*store)->FindJob("job-1").status()));
  EXPECT_TRUE((*store)->FindJob("job-2").ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tactus::service
