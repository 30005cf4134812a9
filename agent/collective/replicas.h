// The group as a member of a mesh sees it whose replica trains beside others: what it has a part of
// is summed with those who have the same part, and all else with everybody.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/mesh_groups.h"
#include "agent/collective/places.h"
#include "agent/collective/transport.h"

namespace tactus::collective {

// A transport of all members in which collectives on `parts` are of equal places: a sum there is
// over the replicas, and a broadcast brings what the member at the same place of the root's replica
// has. So a round engine whose gradients are such parts trains replicas as it trains workers; its
// lanes, behind the gradients, are everybody's: samples and losses count once, as each member has
// its own, and plans and stops are adopted by all together.
//
// Exchanges, conversations and barriers are everybody's: what travels by these must not be parts.
// Those about parts, as Adasum's, are led in of_parts(). When a collective of it fails, all groups
// end.
class ReplicaTransport final : public Transport {
 public:
  // world and groups outlive this; `shape` is what they were made for. parts: this member's
  // memory, of one length on all; a buffer may lie within it, beside it or across its edges.
  ReplicaTransport(Transport& world, MeshGroups& groups, const MeshShape& shape,
                   std::span<const float> parts)
      : world_(world), groups_(groups), shape_(shape), parts_(parts) {}

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  Transport* of_parts() override { return groups_.equal_places.get(); }
  std::unique_ptr<Collective> Start(const Operation& operation) override;
  std::unique_ptr<Collective> StartRootSum(std::span<float> buffer, int root) override {
    return world_.StartRootSum(buffer, root);
  }
  std::unique_ptr<Collective> StartAllGather(std::span<const float> own,
                                             std::span<float> all) override {
    return world_.StartAllGather(own, all);
  }
  // Of the way to other replicas, which vectors take.
  double TakeLinkRate() override { return groups_.equal_places->TakeLinkRate(); }
  Awaiting awaiting() override;
  std::vector<int> failed() override;
  void Abort(const std::string& reason) override;

 private:
  // Ranks of one of this member's groups, as ranks of the world.
  static std::vector<int> InWorld(const std::vector<int>& ranks, const std::vector<int>& members);

  Transport& world_;
  MeshGroups& groups_;
  const MeshShape shape_;
  const std::span<const float> parts_;
};

}  // namespace tactus::collective
