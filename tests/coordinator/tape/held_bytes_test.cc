#include "coordinator/tape/held_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tactus::tape {
namespace {

std::size_t Added(const Step& step) {
  return HeldBytes(step) - HeldBytes(Step{.event = job::Ticked{}});
}

TEST(HeldBytesTest, AFrameOwnsItsTextsAndLists) {
  const std::string text(1000, 'x');
  const std::vector<std::uint32_t> sizes(1000, 32);

  EXPECT_EQ(HeldBytes(End{}), sizeof(Frame));
  EXPECT_EQ(Added({.event = job::NodeLost{.reason = text}}), 1000u);
  EXPECT_EQ(Added({.event = job::Ticked{},
                   .actions = {job::PublishDecision{.plan = {.batch_sizes = sizes}}}}),
            sizeof(job::Action) + 4000);
  EXPECT_EQ(
      Added({.event = job::WorkerSaid{.message = job::FinishedMessage{.files = {text, text}}}}),
      2 * (sizeof(std::string) + 1000));
}

TEST(HeldBytesTest, WhatIsNestedCounts) {
  const job::JobRecord record = {.labels = {{"team", std::string(500, 'x')}},
                                 .progress = {.workers = std::vector<job::WorkerProgress>(10)},
                                 .result = job::ResultRecord{.stop_reason = std::string(500, 'x')}};

  const std::size_t added =
      HeldBytes(Start{.records = {record}}) - HeldBytes(Start{.records = {job::JobRecord{}}});

  EXPECT_EQ(added, sizeof(std::pair<const std::string, std::string>) + 4 + 500 +
                       10 * sizeof(job::WorkerProgress) + 500);
}

}  // namespace
}  // namespace tactus::tape
