// Passes over transports that put collectives into a device's order, as NCCL's does: nobody waits
// for one before the pass's end, and one that turns out to have failed is not lost on the way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/mesh_groups.h"
#include "agent/model/parallel/partitioned_model.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

using collective::Collective;
using collective::Completion;
using collective::MeshGroups;
using collective::Progress;
using collective::Transport;
using ::testing::HasSubstr;

// What the collectives of a transport have come to.
struct Queue {
  int started = 0;
  int waited = 0;     // by who wants to know how they ended
  int fails = -1;     // the one that turns out to have failed, by the count of starts
  int under_way = 0;  // started and not waited for
  int under_way_max = 0;
};

class QueuedCollective final : public Collective {
 public:
  QueuedCollective(std::unique_ptr<Collective> inner, Queue& queue)
      : inner_(std::move(inner)), queue_(queue), number_(queue.started++) {
    queue_.under_way_max = std::max(queue_.under_way_max, ++queue_.under_way);
  }
  ~QueuedCollective() override { --queue_.under_way; }

  // The device is slow: nothing is done before somebody waits.
  Progress Poll() override { return Progress::kRunning; }
  Completion Wait() override {
    ++queue_.waited;
    if (number_ == queue_.fails) return {.progress = Progress::kFailed, .reason = "a late failure"};
    return inner_->Wait();
  }
  Progress WaitOnDevice() override {
    return inner_->Wait().progress == Progress::kFailed ? Progress::kFailed : Progress::kRunning;
  }

 private:
  const std::unique_ptr<Collective> inner_;
  Queue& queue_;
  const int number_;
};

class QueuedTransport final : public Transport {
 public:
  QueuedTransport(std::unique_ptr<Transport> inner, Queue& queue)
      : inner_(std::move(inner)), queue_(queue) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Collective> Start(const collective::Operation& operation) override {
    return Queued(inner_->Start(operation));
  }
  std::unique_ptr<Collective> StartRootSum(std::span<float> buffer, int root) override {
    return Queued(inner_->StartRootSum(buffer, root));
  }
  std::unique_ptr<Collective> StartAllGather(std::span<const float> own,
                                             std::span<float> all) override {
    return Queued(inner_->StartAllGather(own, all));
  }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  std::unique_ptr<Collective> Queued(std::unique_ptr<Collective> collective) {
    return std::make_unique<QueuedCollective>(std::move(collective), queue_);
  }

  const std::unique_ptr<Transport> inner_;
  Queue& queue_;
};

constexpr int kMembers = 4;

class QueuedCollectivesTest : public ::testing::Test {
 protected:
  // One pass of every member, whose rows are queued. What they say.
  std::vector<absl::Status> Pass() {
    std::vector<MeshGroups> groups =
        collective::MakeInProcessMeshes(kMembers, {2, 2}, [] { return collective::kTestNow; });
    std::vector<absl::Status> statuses(kMembers);
    collective::OnEveryRank(kMembers, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      MeshGroups& own = groups[index];
      own.row = std::make_unique<QueuedTransport>(std::move(own.row), rows_[index]);
      BoundPart part(SmallLm(MeshKind::k2d, kMembers), own);
      statuses[index] = part.model->ForwardBackward(
          ShareOf(examples_, 0, 8, rank, kMembers), [&](SegmentGradient gradient) {
            const cuda::Segment& segment = part.model->segments()[gradient.segment];
            std::copy_n(
                gradient.values, segment.length,
                part.gradients.span().begin() + static_cast<std::ptrdiff_t>(segment.offset));
          });
      gradients_[index].assign(part.gradients.span().begin(), part.gradients.span().end());
      losses_[index] = part.loss_sum;
      EXPECT_EQ(rows_[index].under_way, 0) << "memory is held beyond the pass";
    });
    return statuses;
  }

  const ExampleSet examples_ = Tokens(8, 8);
  std::array<Queue, kMembers> rows_{};
  std::array<std::vector<float>, kMembers> gradients_{};
  std::array<double, kMembers> losses_{};
};

TEST_F(QueuedCollectivesTest, ComeToWhatThoseThatAreWaitedForComeTo) {
  for (const absl::Status& status : Pass()) EXPECT_TRUE(status.ok()) << status;

  OnParts(SmallLm(MeshKind::k2d, kMembers), [&](int rank, BoundPart& part) {
    const auto index = static_cast<std::size_t>(rank);
    const double loss = part.Step(ShareOf(examples_, 0, 8, rank, kMembers));
    EXPECT_EQ(losses_[index], loss);
    const std::vector<float> expected(part.gradients.span().begin(), part.gradients.span().end());
    EXPECT_EQ(gradients_[index], expected);
  });
}

TEST_F(QueuedCollectivesTest, AreNotWaitedForAtOnce) {
  for (const absl::Status& status : Pass()) EXPECT_TRUE(status.ok()) << status;

  for (const Queue& row : rows_) {
    EXPECT_EQ(row.waited, row.started);
    EXPECT_GE(row.under_way_max, 8);
    EXPECT_LE(row.under_way_max, 10);  // some are kept, and two steps of a product are started
  }
}

TEST_F(QueuedCollectivesTest, ThatTurnOutToHaveFailedEndThePass) {
  for (const absl::Status& status : Pass()) EXPECT_TRUE(status.ok()) << status;
  const int all = rows_[3].started;
  for (const int number : {0, all / 2, all - 1}) {
    rows_ = {};
    rows_[3].fails = number;

    const std::vector<absl::Status> statuses = Pass();

    EXPECT_TRUE(absl::IsUnavailable(statuses[3])) << number << ": " << statuses[3];
    EXPECT_THAT(std::string(statuses[3].message()), HasSubstr("a late failure"));
  }
}

}  // namespace
}  // namespace tactus::model
