// A worker's place in a mesh of devices, over the doubles of the CUDA runtime and of NCCL, whose
// device memory is shut to the host.

#include "agent/worker/mesh_member.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/endpoint_board.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"

namespace tactus::worker {
namespace {

using collective::MeshShape;
using collective::Progress;
using collective::Transport;

constexpr MeshShape kShape{2, 2};
constexpr int kMembers = 8;  // of two replicas
constexpr std::size_t kPart = 3;

// Vectors cut into equal parts, one a member.
class CutVectors final : public ModelParts {
 public:
  const MeshShape& shape() const override { return kShape; }
  absl::StatusOr<bool> Join(const collective::MeshGroups& groups) override {
    EXPECT_TRUE(groups.unlike);
    row_ = groups.row.get();
    column_ = groups.column.get();
    return false;
  }
  const cuda::SegmentTable& dense_segments() const override { return segments_; }
  const std::vector<bool>& counts() const override { return counts_; }
  const std::vector<bool>& copies() const override { return copies_; }

  // In the host's memory, or it crashes.
  absl::StatusOr<std::vector<float>> Gather(std::span<const float> own) override {
    std::vector<float> of_row(own.size() * 2);
    std::vector<float> whole(of_row.size() * 2);
    if (row_->StartAllGather(own, of_row)->Wait().progress == Progress::kFailed ||
        column_->StartAllGather(of_row, whole)->Wait().progress == Progress::kFailed) {
      return absl::UnavailableError("lost");
    }
    if (row_->rank() + column_->rank() > 0) whole.clear();
    return whole;
  }
  std::vector<float> Cut(std::span<const float> dense) const override {
    const auto place = static_cast<std::size_t>(column_->rank() * 2 + row_->rank());
    const std::span<const float> own = dense.subspan(place * kPart, kPart);
    return {own.begin(), own.end()};
  }
  std::vector<float> PutTogether(std::span<const std::span<const float>> by_rank) const override {
    std::vector<float> whole;
    for (const std::span<const float> own : by_rank) {
      whole.insert(whole.end(), own.begin(), own.end());
    }
    return whole;
  }
  absl::StatusOr<std::vector<std::string>> WriteDense(std::span<const float>,
                                                      const std::string&) override {
    return absl::UnimplementedError("");
  }

 private:
  Transport* row_ = nullptr;
  Transport* column_ = nullptr;
  const cuda::SegmentTable segments_{};
  const std::vector<bool> counts_{true};
  const std::vector<bool> copies_{false};
};

// By NCCL, or staged.
class MeshMemberOnDevicesTest : public collective::NcclMembers,
                                public ::testing::WithParamInterface<bool> {
 protected:
  // What a member has.
  struct Place {
    std::unique_ptr<cuda::Device> device;
    CutVectors parts{};
    MeshMember member{parts};
    cuda::Buffer parameters{};
    std::unique_ptr<Transport> transport{};
  };

  // Every member on a thread of its own, connected and joined; its parameters are its part of 0, 1,
  // and so on.
  void Run(const std::function<void(int rank, Place& place)>& body) {
    collective::EndpointBoard board(kMembers);
    collective::OnEveryRank(kMembers, [&](int rank) {
      Place place{.device = cuda::OpenDevice("cuda:" + std::to_string(rank)).device};
      place.parameters = place.device->Allocate(kPart);
      Fill(place, rank % kShape.devices());
      collective::ConnectedTransport connected = Connect(rank, place, board);
      ASSERT_NE(connected.transport, nullptr) << connected.reason;
      place.transport = std::move(connected.transport);
      ASSERT_TRUE(place.member.Join().ok());
      body(rank, place);
      place.transport.reset();
      place.member.Leave();
    });
  }

  static std::vector<float> Whole() {
    std::vector<float> whole(kPart * 4);
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(i);
    return whole;
  }

 private:
  static void Fill(Place& place, int within) {
    const std::vector<float> whole = Whole();
    place.device->Copy(std::span(whole).subspan(static_cast<std::size_t>(within) * kPart, kPart),
                       place.parameters.span());
  }

  collective::ConnectedTransport Connect(int rank, Place& place, collective::EndpointBoard& board) {
    const collective::DeviceMeeting meeting{
        .rank = rank,
        .size = kMembers,
        .generation = generation_,
        .address = "127.0.0.1",
        .device = rank,
        .compute_stream = place.device->stream(),
        .exchange = [rank, &board](const std::string& own) { return board.Exchange(rank, own); },
        .now = [this] { return clock_.Now(); }};
    if (GetParam()) return place.member.Connect(meeting, place.parameters.span());
    const Staging staging{
        .any = true,
        .own = collective::StagedDevice{
            .device = rank, .compute_stream = meeting.compute_stream, .now = meeting.now}};
    return place.member.Connect(collective::TcpMeetingOf(meeting), staging,
                                place.parameters.span());
  }
};

TEST_P(MeshMemberOnDevicesTest, WhatIsSavedIsGatheredFromTheDevicesOfTheFirstReplica) {
  Run([](int rank, Place& place) {
    PartsToGather own{.parameters = place.parameters.span()};
    own.optimizer = {place.parameters.span(), place.parameters.span()};
    own.block_momentum = place.parameters.span();

    const collective::Completion gathered = place.member.Gather(*place.device, own);

    EXPECT_EQ(gathered.progress, Progress::kDone) << gathered.reason;
    if (rank > 0) return;
    EXPECT_EQ(place.member.dense().parameters, Whole());
    EXPECT_EQ(place.member.dense().optimizer, (std::vector<std::vector<float>>{Whole(), Whole()}));
    EXPECT_EQ(place.member.dense().block_momentum, Whole());
  });
}

TEST_P(MeshMemberOnDevicesTest, ARehearsalLeavesAGroupThatWorksAndSumsOfReplicas) {
  Run([](int rank, Place& place) {
    EXPECT_EQ(place.member.Rehearse(*place.device), "");

    // 0.1 of many is not what float32 makes of it.
    std::vector<double> sums = {0.1 * (rank + 1), 1e300};
    EXPECT_EQ(place.member.AddOverReplica(sums).progress, Progress::kDone);
    const int first = rank / 4 * 4;
    EXPECT_NEAR(sums[0], 0.1 * (4 * first + 10), 1e-12);
    EXPECT_NEAR(sums[1], 4e300, 1e287);
    EXPECT_EQ(place.transport->StartAllReduceSum(place.parameters.span())->Wait().progress,
              Progress::kDone);
    std::vector<float> parameters(kPart);
    place.device->Copy(place.parameters.span(), parameters);
    place.device->Synchronize();
    const std::vector<float> own = place.member.parts().Cut(Whole());
    for (std::size_t i = 0; i < kPart; ++i) EXPECT_EQ(parameters[i], 2 * own[i]);  // two replicas
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, MeshMemberOnDevicesTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Nccl" : "Staged"; });

}  // namespace
}  // namespace tactus::worker
