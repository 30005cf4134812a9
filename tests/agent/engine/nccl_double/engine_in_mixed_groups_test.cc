// Engines on devices of the double of the CUDA runtime and on hosts, in one group over real TCP.

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/staged_transport.h"
#include "agent/collective/tcp_transport.h"
#include "agent/engine/round_engine.h"
#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/agent/engine/encodings.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using collective::ConnectedTransport;
using policies::Synchronization;

struct Case {
  std::string name{};
  std::string kinds{};  // one letter a member: d has a device, h has none
  GroupRun run{};
  bool other_order = false;  // of sums on a device, so that it is not to the bits of hosts
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class EngineInMixedGroupsTest : public collective::NcclMembers,
                                public testing::WithParamInterface<Case> {
 protected:
  std::unique_ptr<cuda::Device> OpenFor(std::size_t rank) {
    if (GetParam().kinds[rank] == 'h') return cuda::MakeHostDevice("cpu:0");
    cuda::OpenedDevice opened = cuda::OpenDevice("cuda:" + std::to_string(rank));
    EXPECT_NE(opened.device, nullptr) << opened.reason;
    return std::move(opened.device);
  }

  // Between the hosts, one a member.
  std::vector<std::unique_ptr<collective::Transport>> ConnectHosts() {
    const int size = static_cast<int>(GetParam().kinds.size());
    std::vector<collective::TcpMeeting> meetings = collective::MeetInMemory(size);
    std::vector<std::unique_ptr<collective::Transport>> hosts(meetings.size());
    collective::OnEveryRank(size, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      meetings[index].now = [this] { return clock_.Now(); };
      ConnectedTransport connected = ConnectTcp(meetings[index]);
      EXPECT_NE(connected.transport, nullptr) << connected.reason;
      hosts[index] = std::move(connected.transport);
    });
    return hosts;
  }

  std::vector<MemberRun> TrainMixed() {
    World world;
    std::vector<std::unique_ptr<cuda::Device>> devices;
    world.transports = ConnectHosts();
    for (std::size_t rank = 0; rank < world.transports.size(); ++rank) {
      devices.push_back(OpenFor(rank));
      const cuda::Device& device = *devices.back();
      if (!device.cuda_index()) continue;
      ConnectedTransport staged =
          collective::MakeStagedTransport({.device = *device.cuda_index(),
                                           .compute_stream = device.stream(),
                                           .host = std::move(world.transports[rank]),
                                           .now = [this] { return clock_.Now(); }});
      EXPECT_NE(staged.transport, nullptr) << staged.reason;
      world.transports[rank] = std::move(staged.transport);
    }
    world.open_device = [&](int rank) {
      return std::move(devices[static_cast<std::size_t>(rank)]);
    };
    return TrainIn(std::move(world), GetParam().run);
  }
};

TEST_P(EngineInMixedGroupsTest, AllMembersTrainToTheParametersOfHostsAlone) {
  const std::vector<MemberRun> expected = Train(GetParam().run);

  const std::vector<MemberRun> found = TrainMixed();

  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    EXPECT_EQ(found[rank].outcome, expected[rank].outcome) << found[rank].reason;
    EXPECT_EQ(found[rank].parameters, found[0].parameters);  // to the last bit
    if (!GetParam().other_order) {
      EXPECT_EQ(found[rank].parameters, expected[rank].parameters);
      continue;
    }
    ASSERT_EQ(found[rank].parameters.size(), expected[rank].parameters.size());
    for (std::size_t i = 0; i < expected[rank].parameters.size(); ++i) {
      EXPECT_NEAR(found[rank].parameters[i], expected[rank].parameters[i], 1e-5) << i;
    }
  }
}

GroupRun EveryStep(std::vector<std::uint32_t> batch_sizes, OptimizerOptions optimizer) {
  return {.options = {.train_samples = 500,
                      .micro_batch = 4,
                      .optimizer = optimizer,
                      .stop = {.rounds = 8},
                      .bucket_bytes = 64},
          .plan = {.batch_sizes = std::move(batch_sizes)}};
}

std::vector<Case> Cases() {
  const SgdOptions sgd{.learning_rate = 0.01};
  const SgdOptions momentum{.learning_rate = 0.01, .momentum = 0.9};
  const AdamOptions adam{.learning_rate = 0.01, .weight_decay = 0.01, .decoupled = true};
  const LambOptions lamb{.learning_rate = 0.01, .weight_decay = 0.01};
  std::vector<Case> cases = {{"EveryStep", "hdd", EveryStep({8, 4, 6}, momentum)},
                             {"EveryStepWithAdam", "dh", EveryStep({8, 4}, adam)},
                             {"Overlapped", "dhd", EveryStep({8, 4, 6}, momentum)},
                             {"Periodic", "dhh", EveryStep({8, 4, 5}, momentum)},
                             {"BlockMomentum", "hd", EveryStep({8, 4}, sgd)},
                             {"Adasum", "hddh", EveryStep({8, 4, 6, 2}, sgd), true},
                             {"Suspended", "dh", EveryStep({8, 4}, momentum)},
                             {"Float16", "dhd", EveryStep({8, 4, 6}, momentum)},
                             {"OneBit", "dhd", EveryStep({8, 4, 6}, adam)},
                             {"OneBitOfLamb", "ddd", EveryStep({8, 4, 6}, lamb), true}};
  cases[2].run.announce = GroupRun::Announce::kByOwnThread;
  for (const std::size_t periodic : {3, 4, 6}) {
    cases[periodic].run.plan.synchronization = Synchronization::kPeriodic;
    cases[periodic].run.plan.period = 3;
  }
  cases[4].run.options.block_momentum = 0.3;
  cases[7].run.options.encoding.dense = SixteenBits(kFloat16Format);
  cases[7].run.announce = GroupRun::Announce::kByOwnThread;
  for (const std::size_t signs : {8, 9}) {
    cases[signs].run.announce = GroupRun::Announce::kByOwnThread;
    cases[signs].run.plan.encoding = policies::Encoding::kOneBit;
    cases[signs].run.options.encoding.one_bit.warm_up = 3;
    cases[signs].run.options.learning_rate.base_batch = 18;
  }
  cases[5].run.plan.aggregation = policies::Aggregation::kAdasum;
  cases[6].run.before_step = [](int, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 4) engine.RequestStop("enough", StopKind::kSuspend);
  };
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Every, EngineInMixedGroupsTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tactus::engine
