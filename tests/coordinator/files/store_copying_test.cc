#include "coordinator/files/store_copying.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace tactus::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreCopyingTest : public testing::Test {
 protected:
  StoreCopyingTest() {
    // Some 8 MiB: several pieces.
    for (std::uint64_t id = 1; id <= 8; ++id) Write(id, 1u << 20);
  }
  ~StoreCopyingTest() override {
    storage_.Stop();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  static std::string MakeFolder() {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  void Write(std::uint64_t id, std::size_t bytes) {
    job::JobRecord record;
    record.id = JobId{id};
    record.name = "job-" + std::to_string(id);
    record.uid = record.name;
    record.spec.assign(bytes, 'x');
    const absl::Status status = store_->Write({.jobs = {record}});
    EXPECT_TRUE(status.ok()) << status;
  }

  CopyOrder Order(std::function<bool()> cancelled = [] { return false; }) {
    return {.storage = storage_, .store = *store_, .path = copy_, .cancelled = cancelled};
  }

  absl::Status Copy(const CopyOrder& order) {
    std::promise<absl::Status> done;
    CopyStore(order, [&](const absl::Status& status) { done.set_value(status); });
    return done.get_future().get();
  }

  const std::string folder_ = MakeFolder();
  const std::string copy_ = folder_ + "/copy";
  std::unique_ptr<store::Store> store_ = *store::Store::Open(folder_ + "/db");
  runtime::ControlThread storage_;
};

TEST_F(StoreCopyingTest, AWriteIsDoneBeforeACopyThatBeganBeforeItAndIsInIt) {
  std::vector<std::string> order;
  std::promise<void> both;

  storage_.RunAndWait([&] {
    // As calls that come at one time would: posted while nothing of the copy is done.
    CopyStore(Order(), [&](const absl::Status& status) {
      order.push_back(status.ok() ? "copied" : status.ToString());
      both.set_value();
    });
    storage_.Post([&] {
      Write(9, 1);
      order.push_back("written");
    });
  });
  both.get_future().wait();

  EXPECT_THAT(order, ElementsAre("written", "copied"));
  const auto copy = store::Store::Open(copy_);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_THAT(*(*copy)->CheckIntegrity(), IsEmpty());
  EXPECT_EQ((*copy)->FindJob("job-8")->spec.size(), 1u << 20);
  EXPECT_TRUE((*copy)->FindJob("job-9").ok());
}

TEST_F(StoreCopyingTest, WhatAFormerOneLeftIsReplaced) {
  std::ofstream(copy_) << "left";
  std::ofstream(copy_ + ".partial") << "left";

  EXPECT_TRUE(Copy(Order()).ok());

  EXPECT_TRUE(store::Store::Open(copy_).ok());
}

TEST_F(StoreCopyingTest, ACopyThatNobodyWantsAnyMoreIsGivenUp) {
  int asked = 0;

  const absl::Status status = Copy(Order([&asked] { return ++asked == 3; }));

  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_FALSE(std::filesystem::exists(copy_));
  EXPECT_FALSE(std::filesystem::exists(copy_ + ".partial"));
}

TEST_F(StoreCopyingTest, ACopyThatCannotBeMadeIsSaid) {
  CopyOrder order = Order();
  order.path = folder_ + "/missing/copy";

  EXPECT_TRUE(absl::IsNotFound(Copy(order)));
}

}  // namespace
}  // namespace tactus::service
