#include "agent/worker/mesh_member.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "agent/collective/rehearsal.h"
#include "agent/collective/replicas.h"
#include "agent/engine/exact_sum.h"
#include "agent/worker/clock.h"
#include "agent/worker/parameter_hash.h"
#include "base/check.h"

namespace tactus::worker {
namespace {

// Of each member, of what is rehearsed, the most last: how NCCL goes, and what it needs for that,
// it chooses by size. [elements]
constexpr std::array<std::size_t, 2> kRehearsed = {1024, std::size_t{1} << 20};

collective::Completion Lost(const absl::Status& status) {
  return {.progress = collective::Progress::kFailed,
          .finished = Now(),
          .at = Now(),
          .reason = std::string(status.message())};
}

}  // namespace

std::string MeshMember::ReasonAgainst(std::uint32_t members) const {
  const auto devices = static_cast<std::uint32_t>(parts_.shape().devices());
  if (members % devices == 0) return "";
  return "found a group of " + std::to_string(members) + ", allowed is a multiple of " +
         std::to_string(devices) + ", the devices of a replica";
}

collective::ConnectedTransport MeshMember::Connect(const collective::TcpMeeting& meeting,
                                                   const Staging& staging,
                                                   std::span<const float> vector) {
  collective::ConnectedMesh mesh = collective::ConnectTcpMesh(meeting, 1, parts_.shape());
  mesh.groups.unlike = staging.any;
  return Take(staging.own ? collective::StageMesh(std::move(mesh), *staging.own) : std::move(mesh),
              vector);
}

collective::ConnectedTransport MeshMember::Connect(const collective::DeviceMeeting& meeting,
                                                   std::span<const float> vector) {
  return Take(collective::ConnectDeviceMesh(meeting, parts_.shape()), vector);
}

collective::ConnectedTransport MeshMember::Take(collective::ConnectedMesh mesh,
                                                std::span<const float> vector) {
  mesh_ = std::move(mesh);
  if (mesh_.world.empty()) return {.reason = mesh_.reason, .own = mesh_.own};
  return {.transport = std::make_unique<collective::ReplicaTransport>(
              *mesh_.world.front(), mesh_.groups, parts_.shape(), vector)};
}

std::string MeshMember::Rehearse(cuda::Device& device) {
  const auto most = static_cast<std::size_t>(parts_.shape().columns + parts_.shape().rows);
  cuda::Buffer all = device.Allocate(kRehearsed.back() * most);
  for (const std::size_t each : kRehearsed) {
    std::string failure = RehearseWith(all.span().first(each * most), each);
    if (!failure.empty()) return failure;
  }
  // Sums of lanes are by it, behind the first pass.
  return collective::Rehearse(*mesh_.world.front(), all.span().first(kRehearsed.front()));
}

std::string MeshMember::RehearseWith(std::span<float> all, std::size_t each) {
  const std::span<const float> own = all.last(each);
  for (collective::Transport* const group : {mesh_.groups.row.get(), mesh_.groups.column.get()}) {
    if (group->size() == 1) continue;
    const std::span<float> of_all = all.first(each * static_cast<std::size_t>(group->size()));
    std::vector<std::unique_ptr<collective::Collective>> parts;
    parts.push_back(group->StartAllGather(own, of_all));
    parts.push_back(group->StartBroadcast(of_all, 0));
    parts.push_back(group->StartAllReduceSum(of_all));
    parts.push_back(group->StartRootSum(of_all, 0));
    for (const std::unique_ptr<collective::Collective>& part : parts) {
      const collective::Completion completion = part->Wait();
      if (completion.progress == collective::Progress::kFailed) return completion.reason;
    }
  }
  return "";
}

absl::StatusOr<bool> MeshMember::Join() {
  absl::StatusOr<bool> moved = parts_.Join(mesh_.groups);
  if (!moved.ok()) return moved;
  if (joined_ && *moved) {
    return absl::FailedPreconditionError(
        "the group has this worker at another place of its mesh than before; what it holds is of "
        "that one");
  }
  joined_ = true;
  return moved;
}

engine::HashedParameters MeshMember::HashOfReplica(const engine::HashedParameters& own) {
  if (mesh_.world.empty()) return own;
  collective::Transport& world = *mesh_.world.front();
  std::vector<engine::HashedParameters> hashes;
  const collective::Completion completion = engine::Exchange(world, own, hashes);
  if (completion.progress == collective::Progress::kFailed) return own;
  const auto devices = static_cast<std::size_t>(parts_.shape().devices());
  const std::size_t first = static_cast<std::size_t>(PlaceOf(world).replica) * devices;
  return HashOfAll(std::span(hashes).subspan(first, devices));
}

// In float64, as norms decide about clipping and about whether a step is taken at all: sums that
// travel in float32 would round by where the mesh is cut, and overflow where the norm does not.
collective::Completion MeshMember::AddOverReplica(std::span<double> sums) {
  collective::Completion row = engine::SumExactly(*mesh_.groups.row, sums);
  if (row.progress == collective::Progress::kFailed) return row;
  return engine::SumExactly(*mesh_.groups.column, sums);
}

// What is gathered is the host's, as files are.
absl::StatusOr<std::vector<float>> MeshMember::GatherOne(cuda::Device& device,
                                                         std::span<const float> own) {
  if (!device.cuda_index()) return parts_.Gather(own);
  std::vector<float> on_host(own.size());
  device.Copy(own, on_host);
  device.Synchronize();
  return parts_.Gather(on_host);
}

// A barrier behind it: no other replica goes on before the first one's members have succeeded, so
// that all find alike whether there is a copy.
collective::Completion MeshMember::Gather(cuda::Device& device, const PartsToGather& own) {
  TACTUS_CHECK(!mesh_.world.empty());
  collective::Transport& world = *mesh_.world.front();
  if (PlaceOf(world).replica == 0) {
    DenseCopy copy;
    absl::StatusOr<std::vector<float>> whole = GatherOne(device, own.parameters);
    if (!whole.ok()) return Lost(whole.status());
    copy.parameters = *std::move(whole);
    for (const std::span<const float> buffer : own.optimizer) {
      whole = GatherOne(device, buffer);
      if (!whole.ok()) return Lost(whole.status());
      copy.optimizer.push_back(*std::move(whole));
    }
    if (!own.block_momentum.empty()) {
      whole = GatherOne(device, own.block_momentum);
      if (!whole.ok()) return Lost(whole.status());
      copy.block_momentum = *std::move(whole);
    }
    if (world.rank() == 0) dense_ = std::move(copy);
  }
  return world.StartBarrier()->Wait();
}

void MeshMember::MakeWhole(Checkpoint& checkpoint) const {
  checkpoint.parameters = dense_.parameters;
  checkpoint.state.optimizer = dense_.optimizer;
  checkpoint.state.block_momentum = dense_.block_momentum;
  std::vector<engine::Residuals>& residuals = checkpoint.residuals;
  const auto devices = static_cast<std::size_t>(parts_.shape().devices());
  const std::size_t replicas = residuals.size() / devices;
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    const std::span<engine::Residuals> members =
        std::span(residuals).subspan(replica * devices, devices);
    engine::Residuals whole = WholeOf(members);
    for (engine::Residuals& member : members) member.clear();  // each is as long as its part
    residuals[replica] = std::move(whole);
  }
  residuals.resize(replicas);
}

// What says what they are of is the same with all members of a replica.
engine::Residuals MeshMember::WholeOf(std::span<const engine::Residuals> members) const {
  engine::Residuals whole = members.front();
  for (auto& [name, values] : whole) {
    if (!engine::OfVector(values)) continue;
    std::vector<std::span<const float>> by_rank;
    for (const engine::Residuals& member : members) by_rank.push_back(member.at(name));
    values = parts_.PutTogether(by_rank);
  }
  return whole;
}

void MeshMember::Cut(Checkpoint& checkpoint) const {
  checkpoint.parameters = parts_.Cut(checkpoint.parameters);
  for (std::vector<float>& buffer : checkpoint.state.optimizer) buffer = parts_.Cut(buffer);
  std::vector<float>& block_momentum = checkpoint.state.block_momentum;
  if (!block_momentum.empty()) block_momentum = parts_.Cut(block_momentum);
  // Of a job by signs, which no mesh is: the next round begins with what is fresh.
  std::vector<float>& fresh_moment = checkpoint.state.fresh_moment;
  if (!fresh_moment.empty()) fresh_moment = parts_.Cut(fresh_moment);
  checkpoint.best.reset();
}

engine::Residuals MeshMember::Cut(engine::Residuals whole,
                                  const cuda::SegmentTable& segments) const {
  for (auto& [name, values] : whole) {
    if (!engine::OfVector(values)) continue;
    values = parts_.Cut(values);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (!parts_.copies()[i]) continue;
      std::ranges::fill(std::span(values).subspan(segments[i].offset, segments[i].length), 0.0f);
    }
  }
  return whole;
}

}  // namespace tactus::worker
