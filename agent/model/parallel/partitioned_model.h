// bytes-lm split over the members of a mesh: each has a Model whose parameters are its parts of the
// dense model's, and passes go through the mesh.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/collective/places.h"
#include "agent/collective/transport.h"
#include "agent/model/model.h"
#include "agent/model/parallel/volume.h"

namespace tactus::model {

// One member's end. In what differs from a Model that has all of the model:
//
// - A replica's examples are what all its members bring, each its own, or none: in two dimensions a
//   row computes on those of its members, in one all of them do. The least work is done where all
//   bring equally many. So TryOut, ForwardBackward and Evaluate are called by all members, in the
//   same order, with samples of one length; losses and answers that they tell of are those of the
//   member's own examples, and gradients those of the replica's.
// - segments() are this member's parts, of the dense model's names; other replicas have such at the
//   same place. Some of them other members of the replica have as well: counts() is for norms
//   over all of a replica.
// - SaveTorchScript, SaveSafetensors and CopyTensors are called by all members, too.
// - What is saved is the dense model, by the member at row 0 and column 0; on the others nothing is
//   written and no tensor copied. LoadSafetensors takes a file of the dense model.
// - A gradient that belongs to a whole column is handed over at the pass's end.
//
// Additional errors: Unavailable, "model.options.mesh: ...", the mesh is over, and so is the pass.
// Rejoin makes it whole again.
class PartitionedModel : public Model {
 public:
  // Whose parts of the model these are; row and column are the groups of that place and outlive the
  // model, or what follows by Rejoin. Weights are those that the dense model has by the same seed.
  // With the mesh kNone, the whole model in one part.
  // Errors: Model::Open's and MeshShapeOf's (partition.h); InvalidArgument at "model.precision",
  // "model.loss", "model.output" or "workers.device" where a mesh has float32, cross_entropy and
  // the host alone.
  static absl::StatusOr<std::unique_ptr<PartitionedModel>> Open(const ModelOptions& options,
                                                                collective::Transport& row,
                                                                collective::Transport& column);

  // [segments().size()] Whether this member is the one that counts a segment, of those who have it.
  virtual const std::vector<bool>& counts() const = 0;

  // Goes on in other groups of the same place. Requires: no pass is under way.
  virtual void Rejoin(collective::Transport& row, collective::Transport& column) = 0;

  // By this member since the last call, in its row and its column.
  virtual Volume TakeMoved() = 0;
};

}  // namespace tactus::model
