// A worker's place in a mesh: the groups that it has there, and the way of what it has a part of
// into the dense model's files.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/collective/device_mesh.h"
#include "agent/collective/mesh_groups.h"
#include "agent/collective/tcp_transport.h"
#include "agent/collective/transport.h"
#include "agent/engine/combine/residuals.h"
#include "agent/engine/comparison.h"
#include "agent/worker/checkpoint_file.h"
#include "agent/worker/model_parts.h"
#include "cuda/device.h"

namespace tactus::worker {

// What was gathered at an edge, in the dense model's layout; of rank 0.
struct DenseCopy {
  std::vector<float> parameters{};
  std::vector<std::vector<float>> optimizer{};  // buffers as Optimizer::State has them
  std::vector<float> block_momentum{};          // as LocalSteps::Momentum
};

// One member's part of it, in its device's memory.
struct PartsToGather {
  std::span<const float> parameters{};
  std::vector<std::span<float>> optimizer{};
  std::span<const float> block_momentum{};  // empty: on all members
};

// Whose memory goes by way of their hosts'.
struct Staging {
  bool any = false;  // that of some members, or of all
  // Of this one, whose device has the vector and the model's parts; nothing: they are the host's.
  std::optional<collective::StagedDevice> own{};
};

// Of one group after another, in which the worker keeps its place. One thread.
class MeshMember {
 public:
  // Outlives this.
  explicit MeshMember(ModelParts& parts) : parts_(parts) {}

  // Why there is no group of so many members; empty: there may be one.
  std::string ReasonAgainst(std::uint32_t members) const;

  // Meets the others: the transport of all, by which `vector`, this member's memory of parts, is
  // summed between equal places. Valid until Leave. By TCP.
  collective::ConnectedTransport Connect(const collective::TcpMeeting& meeting,
                                         const Staging& staging, std::span<const float> vector);
  // The same of devices alone, by NCCL.
  collective::ConnectedTransport Connect(const collective::DeviceMeeting& meeting,
                                         std::span<const float> vector);

  // Takes every kind of collective that passes make through row and column, so that what their
  // transports need of the device's memory is theirs. Why the group is over, empty where it is not.
  std::string Rehearse(cuda::Device& device);
  // The model goes on in the groups that were connected. True: at another place than before, where
  // the parameters are the initial ones. Errors: ModelParts::Join's; FailedPrecondition, a member
  // that has trained is at another place now.
  absl::StatusOr<bool> Join();
  // The group is left; its transport is gone already.
  void Leave() { mesh_ = {}; }

  // Of all that the replica's members hold, the same for all of them; by all members of the group.
  // Of a group that is lost: this member's.
  engine::HashedParameters HashOfReplica(const engine::HashedParameters& own);

  // As collective::ReplicaSums::add.
  collective::Completion AddOverReplica(std::span<double> sums);

  // Brings what this member has of the first replica to rank 0, by all members of the group, which
  // have done the same round last. Fails where the group is lost.
  collective::Completion Gather(cuda::Device& device, const PartsToGather& own);
  // Of the last Gather. Requires: rank 0, and there was one.
  const DenseCopy& dense() const { return dense_; }
  // What a checkpoint is of, in the dense layout, in the place of this member's parts. Residuals,
  // which are the members' then, become the replicas', each as if one worker had all of it.
  void MakeWhole(Checkpoint& checkpoint) const;
  // The opposite, of a checkpoint that was read.
  void Cut(Checkpoint& checkpoint) const;
  // This member's part of what a worker that has all of the model was left with, at the place that
  // it has joined at. Of what other members have a copy of nothing is taken: it travels as it is,
  // and leaves nothing. segments: of this member's buffers.
  engine::Residuals Cut(engine::Residuals whole, const cuda::SegmentTable& segments) const;

  ModelParts& parts() const { return parts_; }

 private:
  // Of row and column, by so many elements of each member.
  std::string RehearseWith(std::span<float> zeros, std::size_t each);
  collective::ConnectedTransport Take(collective::ConnectedMesh mesh,
                                      std::span<const float> vector);
  engine::Residuals WholeOf(std::span<const engine::Residuals> members) const;
  absl::StatusOr<std::vector<float>> GatherOne(cuda::Device& device, std::span<const float> own);
  collective::Place PlaceOf(const collective::Transport& group) const {
    return collective::PlaceOf(group.rank(), parts_.shape());
  }

  ModelParts& parts_;
  collective::ConnectedMesh mesh_;
  bool joined_ = false;
  DenseCopy dense_;
};

}  // namespace tactus::worker
