#include "coordinator/files/transfer_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tactus::service {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(TransferSlotsTest, WhoeverWatchesIsToldHowManyAreUnderWay) {
  std::vector<std::pair<Transfer, std::size_t>> told;
  TransferSlots slots({.downloads = 2}, [&told](Transfer transfer, std::size_t calls) {
    told.emplace_back(transfer, calls);
  });
  {
    const auto first = slots.Take(Transfer::kDownload);
    const auto second = slots.Take(Transfer::kDownload);
    const auto refused = slots.Take(Transfer::kDownload);
    const auto upload = slots.Take(Transfer::kAgentUpload);
    ASSERT_TRUE(second.ok());
    ASSERT_FALSE(refused.ok());
  }

  EXPECT_THAT(told, ElementsAre(Pair(Transfer::kDownload, 1), Pair(Transfer::kDownload, 2),
                                Pair(Transfer::kAgentUpload, 1), Pair(Transfer::kAgentUpload, 0),
                                Pair(Transfer::kDownload, 1), Pair(Transfer::kDownload, 0)));
}

}  // namespace
}  // namespace tactus::service
