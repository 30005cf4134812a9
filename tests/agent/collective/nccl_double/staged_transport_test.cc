// The staged transport: devices of the double of the CUDA runtime and hosts in one group, over real
// TCP. The double's device memory is shut to the host, so that whoever skips the staging crashes.

#include "agent/collective/staged_transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/mesh_costs.h"
#include "agent/collective/mesh_pieces.h"
#include "agent/collective/tcp_transport.h"
#include "base/rng.h"
#include "cuda/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/counting_conversation.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kPieceBytes = kPieceLength * sizeof(float);

// Floats in the memory of a member's device, or of its host.
class MemberFloats {
 public:
  MemberFloats(bool on_device, std::vector<float> values) : host_(std::move(values)) {
    if (on_device) device_.emplace(host_);
  }

  std::span<float> span() { return device_ ? device_->span() : std::span(host_); }
  std::span<std::byte> bytes(std::size_t count) {
    return std::as_writable_bytes(span()).first(count);
  }
  std::vector<float> values() const { return device_ ? device_->values() : host_; }

 private:
  std::vector<float> host_;
  std::optional<DeviceFloats> device_;
};

// One letter a member: d has a device, h has none.
class StagedMembersTest : public NcclMembers, public ::testing::WithParamInterface<std::string> {
 protected:
  // `compute_stream`: of the members' devices.
  void ConnectAs(const std::string& kinds, cuda::Stream compute_stream = nullptr) {
    kinds_ = kinds;
    members_ = MakeGroup({.kind = Kind::kTcp, .size = size()});
    for (int rank = 0; rank < size(); ++rank) {
      if (!on_device(rank)) continue;
      ConnectedTransport staged =
          MakeStagedTransport({.device = rank,
                               .compute_stream = compute_stream,
                               .host = std::move(members_[static_cast<std::size_t>(rank)]),
                               .now = [this] { return clock_.Now(); }});
      ASSERT_NE(staged.transport, nullptr) << staged.reason;
      members_[static_cast<std::size_t>(rank)] = std::move(staged.transport);
    }
  }
  ~StagedMembersTest() override {
    members_.clear();
    EXPECT_EQ(cuda_double::PinnedBytes(), 0u);
  }

  int size() const { return static_cast<int>(kinds_.size()); }
  bool on_device(int rank) const { return kinds_[static_cast<std::size_t>(rank)] == 'd'; }
  Transport& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  void Leave(int rank) { members_[static_cast<std::size_t>(rank)].reset(); }
  MemberFloats On(int rank, std::vector<float> values) const {
    return {on_device(rank), std::move(values)};
  }

  void ExpectTheSum(std::size_t length, std::uint64_t seed) {
    const std::vector<float> expected = ExpectedSum(size(), length, seed);
    OnEveryRank(size(), [&](int rank) {
      MemberFloats buffer = On(rank, RandomValues(length, seed + static_cast<std::uint64_t>(rank)));
      const Completion completion = member(rank).StartAllReduceSum(buffer.span())->Wait();
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      EXPECT_TRUE(SameBits(buffer.values(), expected)) << rank << " of " << length;
    });
  }

 private:
  std::string kinds_;
  std::vector<std::unique_ptr<Transport>> members_;
};

using StagedGroupsTest = StagedMembersTest;

TEST_P(StagedGroupsTest, SumsHaveTheBitsOfTheSumInRankOrder) {
  ConnectAs(GetParam());
  Rng rng(7);
  for (const std::size_t length : {std::size_t{1}, std::size_t{31}, kPieceLength + 1}) {
    ExpectTheSum(length, length);
  }
  for (int i = 0; i < 20; ++i) ExpectTheSum(rng.Below(20'000), static_cast<std::uint64_t>(i));
}

TEST_P(StagedGroupsTest, ALongSumIsCutAndComesTogether) {
  ConnectAs(GetParam());
  ExpectTheSum(5 * kPieceLength + 12'345, 3);
}

TEST_P(StagedGroupsTest, OneGetsALongSumInPieces) {
  ConnectAs(GetParam());
  const std::size_t length = 2 * kPieceLength + 12'345;
  const std::vector<float> expected = ExpectedSum(size(), length, 3);
  for (int root = 0; root < size(); ++root) {
    OnEveryRank(size(), [&](int rank) {
      MemberFloats buffer = On(rank, RandomValues(length, 3 + static_cast<std::uint64_t>(rank)));
      EXPECT_EQ(member(rank).StartRootSum(buffer.span(), root)->Wait().progress, Progress::kDone);
      if (rank == root) {
        EXPECT_TRUE(SameBits(buffer.values(), expected)) << "at " << root;
      }
    });
  }
}

TEST_P(StagedGroupsTest, ALongGatheringComesTogetherInItsPlaces) {
  ConnectAs(GetParam());
  const std::size_t length = 2 * PieceOfGathering(static_cast<std::size_t>(size())) + 7;
  std::vector<float> expected;
  for (int rank = 0; rank < size(); ++rank) {
    const std::vector<float> own = RandomValues(length, static_cast<std::uint64_t>(rank));
    expected.insert(expected.end(), own.begin(), own.end());
  }
  OnEveryRank(size(), [&](int rank) {
    MemberFloats own = On(rank, RandomValues(length, static_cast<std::uint64_t>(rank)));
    MemberFloats all = On(rank, std::vector<float>(expected.size()));
    EXPECT_EQ(member(rank).StartAllGather(own.span(), all.span())->Wait().progress,
              Progress::kDone);
    EXPECT_TRUE(SameBits(all.values(), expected)) << rank;
  });
}

TEST_P(StagedGroupsTest, ConversationsAreOfTheHostsInTheirPlace) {
  ConnectAs(GetParam());
  const std::vector<float> expected = ExpectedSum(size(), kPieceLength + 5, 4);
  OnEveryRank(size(), [&](int rank) {
    MemberFloats before =
        On(rank, RandomValues(kPieceLength + 5, 4 + static_cast<std::uint64_t>(rank)));
    CountingConversation conversation(rank, size());
    const auto sum = member(rank).StartAllReduceSum(before.span());
    const auto talk = member(rank).StartConversation(conversation);

    EXPECT_EQ(talk->Wait().progress, Progress::kDone);

    EXPECT_EQ(sum->Poll(), Progress::kDone);
    EXPECT_TRUE(SameBits(before.values(), expected));
    EXPECT_TRUE(conversation.as_expected());
  });
}

TEST_P(StagedGroupsTest, EveryoneGetsTheRootsBuffer) {
  ConnectAs(GetParam());
  for (const std::size_t length : {std::size_t{10}, 2 * kPieceLength + 7}) {
    for (int root = 0; root < size(); ++root) {
      const std::vector<float> sent = RandomValues(length, static_cast<std::uint64_t>(root));
      OnEveryRank(size(), [&](int rank) {
        MemberFloats buffer = On(rank, rank == root ? sent : std::vector<float>(length));
        EXPECT_EQ(member(rank).StartBroadcast(buffer.span(), root)->Wait().progress,
                  Progress::kDone);
        EXPECT_TRUE(SameBits(buffer.values(), sent)) << rank << " from " << root;
      });
    }
  }
}

// What a member sends in a turn: nothing, odd bytes, several pieces; the two directions differ.
std::size_t BytesSent(int rank, int turn) {
  constexpr std::array<std::size_t, 5> kBytes = {0, 7, 4096, kPieceBytes, 2 * kPieceBytes + 9};
  return kBytes[static_cast<std::size_t>(rank + 2 * turn) % kBytes.size()];
}
std::vector<float> Sent(int rank, int turn) {
  return RandomValues(2 * kPieceLength + 4, static_cast<std::uint64_t>(100 * rank + turn));
}

TEST_P(StagedGroupsTest, AnExchangeGivesEachWhatTheOtherSent) {
  ConnectAs(GetParam());
  for (int turn = 0; turn < 5; ++turn) {
    OnEveryRank(size(), [&](int rank) {
      const int peer = (turn + size() - rank % size()) % size();
      if (peer == rank) return;
      MemberFloats outgoing = On(rank, Sent(rank, turn));
      MemberFloats incoming = On(rank, std::vector<float>(2 * kPieceLength + 4));
      const std::size_t bytes = BytesSent(peer, turn);
      const Completion completion =
          member(rank)
              .StartExchange(peer, outgoing.bytes(BytesSent(rank, turn)), incoming.bytes(bytes))
              ->Wait();
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      const std::vector<float> received = incoming.values();
      const std::vector<float> expected = Sent(peer, turn);
      EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(received)).first(bytes),
                                     std::as_bytes(std::span(expected)).first(bytes)));
    });
  }
}

TEST_P(StagedGroupsTest, CollectivesKeepTheirOrder) {
  ConnectAs(GetParam());
  constexpr std::size_t kLength = kPieceLength + 1000;
  const std::vector<float> expected = ExpectedSum(size(), kLength, 3);
  OnEveryRank(size(), [&](int rank) {
    MemberFloats first = On(rank, RandomValues(kLength, 3 + static_cast<std::uint64_t>(rank)));
    MemberFloats second = On(rank, std::vector<float>(100, 1.0f));
    std::vector<float> on_host(10, 2.0f);
    std::vector<std::unique_ptr<Collective>> handles;
    handles.push_back(member(rank).StartAllReduceSum(first.span()));
    handles.push_back(member(rank).StartBarrier());
    handles.push_back(member(rank).StartAllReduceSum(on_host));
    handles.push_back(member(rank).StartAllReduceSum(second.span()));

    EXPECT_EQ(handles.back()->Wait().progress, Progress::kDone);

    for (const auto& handle : handles) EXPECT_EQ(handle->Poll(), Progress::kDone);
    EXPECT_TRUE(SameBits(first.values(), expected));
    EXPECT_EQ(on_host, std::vector<float>(10, 2.0f * static_cast<float>(size())));
    EXPECT_EQ(second.values(), std::vector<float>(100, static_cast<float>(size())));
  });
}

TEST_P(StagedGroupsTest, AMemberThatDiesFailsTheOthersWithTheReasonOfTheHosts) {
  ConnectAs(GetParam());
  OnEveryRank(size(), [&](int rank) {
    if (rank == 0) return Leave(rank);
    MemberFloats buffer = On(rank, std::vector<float>(200'000));
    const Completion completion = member(rank).StartAllReduceSum(buffer.span())->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_THAT(completion.reason, HasSubstr("rank"));
    EXPECT_EQ(member(rank).StartBarrier()->Wait().progress, Progress::kFailed);
  });
}

// At whatever moment it comes: nobody hangs, and what is reported done is done.
TEST_P(StagedGroupsTest, AnAbortAtAnyMomentEndsEveryCollective) {
  constexpr std::size_t kLength = 3 * kPieceLength;
  Rng rng(11);
  for (int round = 0; round < 8; ++round) {
    ConnectAs(GetParam());
    const int aborter = static_cast<int>(rng.Below(static_cast<std::uint64_t>(size())));
    const std::uint64_t yields = rng.Below(4000);
    OnEveryRank(size(), [&](int rank) {
      MemberFloats buffer = On(rank, std::vector<float>(kLength, 1.0f));
      const std::unique_ptr<Collective> handle = member(rank).StartAllReduceSum(buffer.span());
      if (rank == aborter) {
        for (std::uint64_t i = 0; i < yields; ++i) std::this_thread::yield();
        member(rank).Abort("told to stop");
      }
      const Completion completion = handle->Wait();
      if (completion.progress == Progress::kDone) {
        EXPECT_EQ(buffer.values(), std::vector<float>(kLength, static_cast<float>(size())));
      } else if (rank == aborter) {
        EXPECT_EQ(completion.reason, "told to stop");
      }
      if (rank == aborter) {
        EXPECT_EQ(member(rank).StartBarrier()->Wait().reason, "told to stop");
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Every, StagedGroupsTest,
                         ::testing::Values("dd", "dh", "hd", "hdd", "dhdh"),
                         [](const auto& test) { return test.param; });

TEST_F(StagedMembersTest, ADoneCollectiveHasFollowedTheWorkQueuedBeforeIt) {
  const cuda::OpenedDevice opened = cuda::OpenDevice("cuda:0");
  ConnectAs("dh", opened.device->stream());
  OnEveryRank(2, [&](int rank) {
    if (rank == 1) {
      std::vector<float> buffer(1000, 1.0f);
      EXPECT_EQ(member(rank).StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
      EXPECT_EQ(buffer, std::vector<float>(1000, 4.0f));
      return;
    }
    cuda::Device& device = *opened.device;
    cuda::Buffer buffer = device.Allocate(1000);
    device.Fill(3.0f, buffer.span());
    EXPECT_EQ(member(rank).StartAllReduceSum(buffer.span())->Wait().progress, Progress::kDone);
    std::vector<float> values(1000);
    device.Copy(buffer.span(), values);
    device.Synchronize();
    EXPECT_EQ(values, std::vector<float>(1000, 4.0f));
  });
}

TEST_F(StagedMembersTest, MemoryOfTheHostIsNotCopied) {
  ConnectAs("dd");
  const int before = cuda_double::Calls("cudaMemcpyAsync");
  OnEveryRank(2, [&](int rank) {
    std::vector<float> buffer(kPieceLength + 5, 1.0f);
    EXPECT_EQ(member(rank).StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
    EXPECT_EQ(buffer.back(), 2.0f);
  });
  EXPECT_EQ(cuda_double::Calls("cudaMemcpyAsync"), before);
}

TEST_F(StagedMembersTest, ALongerBufferTakesNoMorePinnedMemory) {
  ConnectAs("dh");
  const std::size_t before = cuda_double::PinnedBytes();
  EXPECT_EQ(before, 6 * kPieceBytes);
  ExpectTheSum(4 * kPieceLength, 5);
  EXPECT_EQ(cuda_double::PinnedBytes(), before);
}

// While the device has yet to bring a piece down, its memory is not given back to the caller.
TEST_F(StagedMembersTest, AnAbortedCollectiveFailsOnceTheDeviceIsPastIt) {
  ConnectAs("dh");
  const DeviceFloats buffer({1, 2, 3});
  std::atomic<bool> free = false;
  cuda_double::Queue(nullptr, [&free] { return free.load(); });
  const int copies = cuda_double::Calls("cudaMemcpyAsync");
  const std::unique_ptr<Collective> handle = member(0).StartAllReduceSum(buffer.span());
  while (cuda_double::Calls("cudaMemcpyAsync") == copies) std::this_thread::yield();

  member(0).Abort("told to stop");

  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(handle->Poll(), Progress::kRunning);
    std::this_thread::yield();
  }
  free = true;
  cuda_double::Wake();
  EXPECT_EQ(handle->Wait().reason, "told to stop");
}

TEST_F(StagedMembersTest, AnAbortWhileAPieceTravelsFailsIt) {
  ConnectAs("dh");
  DeviceFloats buffer({1, 2, 3});
  const std::unique_ptr<Collective> handle = member(0).StartAllReduceSum(buffer.span());
  EXPECT_EQ(handle->Poll(), Progress::kRunning);  // the other never starts it

  member(0).Abort("told to stop");

  EXPECT_EQ(handle->Wait().reason, "told to stop");
}

// A call that fails: of the copies down and up, of the marks, of the waits.
TEST_F(StagedMembersTest, AFailureOfTheDeviceEndsTheGroupInItsWords) {
  for (const std::string call :
       {"cudaMemcpyAsync", "cudaEventRecord", "cudaEventSynchronize", "cudaStreamWaitEvent"}) {
    for (const int nth : {1, 2}) {
      ConnectAs("dh");
      DeviceFloats buffer({1, 2, 3});
      cuda_double::FailCall(call, nth, cudaErrorUnknown);
      OnEveryRank(2, [&](int rank) {
        std::vector<float> on_host(3);
        const Completion completion =
            member(rank).StartAllReduceSum(rank == 0 ? buffer.span() : std::span(on_host))->Wait();
        if (rank == 0) {
          EXPECT_EQ(completion.progress, Progress::kFailed) << call << nth;
          EXPECT_THAT(completion.reason, HasSubstr(call));
        }
        // What the device could not take in had reached the other, perhaps; no more does.
        EXPECT_EQ(member(rank).StartBarrier()->Wait().progress, Progress::kFailed);
      });
    }
  }
}

TEST_F(StagedMembersTest, WithoutMemoryForItThereIsNoTransport) {
  for (const std::string call : {"cudaMallocHost", "cudaStreamCreateWithPriority",
                                 "cudaEventCreateWithFlags", "cudaSetDevice"}) {
    std::vector<std::unique_ptr<Transport>> hosts = MakeGroup({.kind = Kind::kTcp, .size = 2});
    cuda_double::FailCall(call, 1, cudaErrorMemoryAllocation);
    const ConnectedTransport made =
        MakeStagedTransport({.host = std::move(hosts[0]), .now = [] { return kTestNow; }});
    EXPECT_EQ(made.transport, nullptr);
    EXPECT_THAT(made.reason, HasSubstr(call));
  }
}

}  // namespace
}  // namespace tactus::collective
