// Members on devices that lose their group and go on in the next one, over a communicator of a new
// id, with what stayed in their devices' memory.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/engine/nccl_double/on_devices.h"
#include "tests/agent/engine/survivor.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::engine {
namespace {

using collective::Transport;
using policies::Plan;

class RegroupOnDevicesTest : public OnDevices {
 protected:
  RegroupOnDevicesTest() { MakeMembers(); }

  void MakeMembers() {
    all_.clear();
    for (int rank = 0; rank < 3; ++rank) {
      all_.push_back(std::make_unique<Survivor>(
          EngineOptions{.train_samples = 100,
                        .optimizer = SgdOptions{.learning_rate = 0.01, .momentum = 0.9},
                        .stop = {.epochs = 2}},
          cuda::OpenDevice("cuda:" + std::to_string(rank)).device));
    }
  }

  // The first so many, on threads of their own, over a new communicator.
  void Train(std::size_t members, const Plan& plan, const std::vector<std::uint64_t>& rounds,
             const Survivor::BeforeStep& before_step) {
    std::vector<collective::NcclMeeting> meetings = Meetings(static_cast<int>(members));
    collective::OnEveryRank(static_cast<int>(members), [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      meetings[index].compute_stream = all_[index]->device().stream();
      collective::ConnectedTransport connected = ConnectNccl(std::move(meetings[index]));
      ASSERT_NE(connected.transport, nullptr) << connected.reason;
      all_[index]->TrainIn(*connected.transport, plan, rounds, before_step);
    });
    ++generation_;
  }

  std::vector<std::unique_ptr<Survivor>> all_;
};

TEST_F(RegroupOnDevicesTest, TheOthersGoOnByANewId) {
  nccl_double::TearAborted();
  Train(3, {.batch_sizes = {3, 2, 4}}, {}, [](RoundEngine& engine, Transport& transport) {
    if (engine.rounds() == 4) transport.Abort("told to");
    return true;
  });
  const std::vector<std::uint64_t> rounds = {all_[0]->member().rounds, all_[1]->member().rounds};
  ASSERT_GE(rounds[0], 3u);

  Train(2, {.batch_sizes = {5, 4}}, rounds, [](RoundEngine&, Transport&) { return true; });

  EXPECT_EQ(nccl_double::Calls("ncclGetUniqueId"), 2);
  EXPECT_EQ(all_[0]->reason(), "2 epochs completed");
  EXPECT_EQ(all_[0]->parameters(), all_[1]->parameters());
  EXPECT_NE(all_[0]->parameters(), all_[2]->parameters());
}

// What was to follow the combination stands behind it on the device, over a torn buffer: members'
// own parameters are left alone, and combined once more.
TEST_F(RegroupOnDevicesTest, AWindowThatWasTornInItsCombinationGoesOn) {
  const Plan plan{
      .synchronization = policies::Synchronization::kPeriodic, .period = 3, .batch_sizes = {3, 2}};
  const auto nothing = [](RoundEngine&, Transport&) { return true; };
  Train(2, plan, {}, nothing);
  const std::vector<float> undisturbed = all_[0]->parameters();
  const EngineState state = all_[0]->State();

  MakeMembers();
  nccl_double::TearAborted();
  const auto queries = [] { return nccl_double::Calls("ncclCommGetAsyncError"); };
  std::array<std::atomic<Transport*>, 2> ends{};
  std::atomic<int> before = 0;
  std::thread giving_up([&] {
    EXPECT_TRUE(Eventually([&] { return before > 0 && queries() > before + 500; }));
    for (std::atomic<Transport*>& end : ends) end.load()->Abort("told to");
  });
  Train(2, plan, {}, [&](RoundEngine& engine, Transport& transport) {
    const auto rank = static_cast<std::size_t>(transport.rank());
    if (engine.rounds() != 4 || ends[rank] != nullptr) return true;
    ends[rank] = &transport;
    // Both are there: nothing of the round is under way.
    while (ends[1 - rank] == nullptr) std::this_thread::yield();
    nccl_double::StallRank(1);
    before = queries();
    return true;
  });
  giving_up.join();
  nccl_double::Release();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(all_[static_cast<std::size_t>(rank)]->member().rounds, 4u);
    EXPECT_TRUE(all_[static_cast<std::size_t>(rank)]->member().window.has_value());
  }
  Train(2, plan, {4, 4}, nothing);

  EXPECT_EQ(all_[0]->reason(), "2 epochs completed");
  EXPECT_EQ(all_[0]->parameters(), undisturbed);
  EXPECT_EQ(all_[1]->parameters(), undisturbed);
  EXPECT_EQ(all_[0]->State(), state);
}

TEST_F(RegroupOnDevicesTest, WhoIsBehindTakesOverWhatTheDonorsDeviceHolds) {
  Train(1, {.batch_sizes = {5}}, {}, [](RoundEngine& engine, Transport& transport) {
    if (engine.rounds() == 5) transport.Abort("told to");
    return true;
  });
  ASSERT_EQ(all_[0]->member().rounds, 5u);

  Train(2, {.batch_sizes = {3, 3}}, {5, 0}, [](RoundEngine&, Transport&) { return true; });

  EXPECT_EQ(all_[1]->reason(), "2 epochs completed");
  EXPECT_EQ(all_[0]->parameters(), all_[1]->parameters());
  EXPECT_EQ(all_[0]->State(), all_[1]->State());
}

}  // namespace
}  // namespace tactus::engine
