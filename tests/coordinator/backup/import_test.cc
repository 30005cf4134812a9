// What of an import is wrong before any database is asked; the store's tests have the rest.

#include "coordinator/backup/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/process.h"
#include "tests/coordinator/backup/state_to_back_up.h"

namespace tactus::backup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImportTest : public testing::Test {
 protected:
  absl::Status Run(const std::string& from) const {
    return Import({.from = from,
                   .state_folder = around_.File("state"),
                   .files_folder = around_.File("state"),
                   .to = {.address = "postgresql://127.0.0.1:1/tactus"}})
        .status();
  }

  const TemporaryFolder around_;
};

TEST_F(ImportTest, WhatIsNoStateFolderIsSaidToBeNone) {
  const absl::Status status = Run(around_.path());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("give the --state-dir of a coordinator"));
}

TEST_F(ImportTest, AFolderThatACoordinatorHasIsRefused) {
  auto state = std::make_unique<StateToBackUp>();
  state->AddJob(1, "one");
  const absl::StatusOr<runtime::LockFile> held =
      runtime::LockFile::Acquire(state->path() + "/lock");
  ASSERT_TRUE(held.ok());
  const absl::Status status = Run(state->path());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is held by process"));
}

TEST_F(ImportTest, WithoutADatabaseNothingIsLeftBehind) {
  const TemporaryFolder kept;
  {
    StateToBackUp state;
    state.AddJob(1, "one");
    state.CopyDatabase();
    std::filesystem::copy(state.path() + "/" + service::kCopyName,
                          kept.File(service::kDatabaseName));
  }
  const absl::Status status = Run(kept.path());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(NamesSorted(around_.File("state")), ElementsAre("lock"));
  EXPECT_THAT(NamesSorted(kept.path()), ElementsAre(service::kDatabaseName));
}

TEST_F(ImportTest, ADamagedStoreIsNotImported) {
  const TemporaryFolder kept;
  WriteFile(kept.File(service::kDatabaseName), std::string(100'000, 'x'));
  EXPECT_TRUE(absl::IsDataLoss(Run(kept.path())));
}

}  // namespace
}  // namespace tactus::backup
